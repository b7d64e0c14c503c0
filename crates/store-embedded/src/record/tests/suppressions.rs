//! The suppression list on the disk.

use outflow_core::suppression::Reason;
use outflow_core::time::Wall;
use outflow_ports::registry::Audit;
use outflow_ports::suppression::{
    PAGE_MAX, Placed, Suppression, SuppressionChange, SuppressionFilter, Suppressions as _,
};
use rusqlite::Connection;

use super::{Scratch, open};
use crate::record::verify;

const SECOND: i64 = 1_000_000_000;

fn entry(tenant: &str, recipient: &str, reason: Reason, since_s: i64) -> Suppression {
    Suppression {
        tenant: tenant.to_owned(),
        recipient: recipient.to_owned(),
        reason,
        is_held: false,
        since: Wall(since_s * SECOND),
        source: "reply".to_owned(),
        destination: "isp:google".to_owned(),
        message: String::new(),
        detail: "550 5.1.1 no".to_owned(),
    }
}

fn all() -> SuppressionFilter {
    SuppressionFilter::default()
}

fn audit(action: &'static str) -> Audit<'static> {
    Audit {
        at: Wall(SECOND),
        actor: "ops",
        action,
        target: "x",
        detail: "{}",
    }
}

#[test]
fn entries_survive_and_stay_as_they_are() {
    let scratch = Scratch::new();
    let record = open(&scratch.file());
    let first = entry("acme", "a@b.c", Reason::HardBounce, 10);
    let entries = [first.clone(), entry("acme", "a@b.c", Reason::Complaint, 11)];
    let put = record
        .put(&entries, Some(audit("suppressions.add")))
        .unwrap();
    assert_eq!(put.placed, [Placed::New; 2]);
    assert_eq!((put.added, put.known), (2, 0));
    // Put again, later and with other words: nothing changes.
    let again = Suppression {
        since: Wall(99 * SECOND),
        detail: "other".to_owned(),
        ..first.clone()
    };
    let put = record.put(&[again], None).unwrap();
    assert_eq!(put.placed, [Placed::Known]);
    assert_eq!((put.added, put.known), (0, 1));
    record.close();
    drop(record);
    assert_eq!(verify(&scratch.file()).unwrap(), [""; 0]);
    let record = open(&scratch.file());
    let listed = record.list(&all(), None, 10).unwrap();
    assert_eq!(listed.len(), 2);
    assert_eq!(
        listed.iter().find(|it| it.reason == Reason::HardBounce),
        Some(&first)
    );
    let mut loaded = Vec::new();
    record
        .load(&mut |tenant, recipient, reason, since| {
            loaded.push((tenant.to_owned(), recipient.to_owned(), reason, since));
        })
        .unwrap();
    assert_eq!(loaded.len(), 2);
    let whole = Wall(0)..Wall::NEVER;
    let lines = outflow_ports::registry::Registry::audit_entries(&record, whole, None, 10).unwrap();
    assert_eq!(lines.len(), 1, "one line with the first put");
}

#[test]
fn what_is_held_is_not_loaded_until_it_is_approved() {
    let scratch = Scratch::new();
    let record = open(&scratch.file());
    let held = Suppression {
        is_held: true,
        ..entry("acme", "a@b.c", Reason::HardBounce, 10)
    };
    record.put(std::slice::from_ref(&held), None).unwrap();
    let in_force = || {
        let mut count = 0;
        record.load(&mut |_, _, _, _| count += 1).unwrap();
        count
    };
    assert_eq!(in_force(), 0);
    let filter = SuppressionFilter {
        is_held: Some(true),
        ..all()
    };
    let approved = record.change(&filter, SuppressionChange::Approve).unwrap();
    assert_eq!(approved, [(held.key(), held.since)]);
    assert_eq!(in_force(), 1);
    record.change(&all(), SuppressionChange::Hold).unwrap();
    assert_eq!(in_force(), 0);
    // Somebody who is sure puts it into force; somebody who is not, and another
    // bounce, does not.
    let bounced = Suppression {
        is_held: false,
        ..held.clone()
    };
    for learnt in [held, bounced.clone()] {
        let put = record.put(&[learnt], None).unwrap();
        assert_eq!((put.placed, in_force()), (vec![Placed::Held], 0));
    }
    let sure = Suppression {
        source: "api".to_owned(),
        ..bounced
    };
    let put = record.put(&[sure], None).unwrap();
    assert_eq!((put.placed, in_force()), (vec![Placed::Approved], 1));
}

#[test]
fn entries_are_undone_by_time_and_destination() {
    let scratch = Scratch::new();
    let record = open(&scratch.file());
    let mut entries: Vec<Suppression> = (0..10)
        .map(|at| entry("acme", &format!("{at}@b.c"), Reason::HardBounce, 100 + at))
        .collect();
    entries[9].destination = "isp:yahoo".to_owned();
    entries[8].source = "api".to_owned();
    entries[7].reason = Reason::Complaint;
    record.put(&entries, None).unwrap();
    let filter = SuppressionFilter {
        destination: Some("isp:google".to_owned()),
        reason: Some(Reason::HardBounce),
        since: Some(Wall(105 * SECOND)),
        until: Some(Wall(109 * SECOND)),
        is_learnt: true,
        ..all()
    };
    assert_eq!(record.count(&filter).unwrap(), 2);
    let removed = record.change(&filter, SuppressionChange::Remove).unwrap();
    let mut removed: Vec<&str> = removed
        .iter()
        .map(|(it, _)| it.recipient.as_str())
        .collect();
    removed.sort_unstable();
    assert_eq!(removed, ["5@b.c", "6@b.c"]);
    assert_eq!(record.count(&all()).unwrap(), 8);
}

#[test]
fn pages_follow_one_another() {
    let scratch = Scratch::new();
    let record = open(&scratch.file());
    let entries: Vec<Suppression> = (0..25)
        .flat_map(|at| {
            let to = format!("{at:02}@b.c");
            [
                entry("acme", &to, Reason::HardBounce, at),
                entry("other", &to, Reason::OptOut, at),
            ]
        })
        .collect();
    record.put(&entries, None).unwrap();
    let filter = SuppressionFilter {
        tenant: Some("acme".to_owned()),
        ..all()
    };
    let (mut after, mut seen) = (None, Vec::new());
    loop {
        let page = record.list(&filter, after.as_ref(), 10).unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.key());
        seen.extend(page.into_iter().map(|it| it.recipient));
    }
    let wanted: Vec<String> = (0..25).map(|at| format!("{at:02}@b.c")).collect();
    assert_eq!(seen, wanted);
}

#[test]
fn a_change_goes_over_so_many_at_a_time() {
    let scratch = Scratch::new();
    let record = open(&scratch.file());
    let entries: Vec<Suppression> = (0..PAGE_MAX as i64 + 5)
        .map(|at| entry("acme", &format!("{at}@b.c"), Reason::HardBounce, 1))
        .collect();
    record.put(&entries, None).unwrap();
    let change = || {
        record
            .change(&all(), SuppressionChange::Remove)
            .unwrap()
            .len()
    };
    assert_eq!([change(), change(), change()], [PAGE_MAX, 5, 0]);
}

/// A record of the format before this one has no list, and gets one.
#[test]
fn an_earlier_record_is_brought_up() {
    let scratch = Scratch::new();
    open(&scratch.file()).close();
    let connection = Connection::open(scratch.file()).unwrap();
    connection
        .execute_batch(
            "DROP TABLE suppressions; DROP TABLE history; DROP TABLE history_rates; \
             DROP TABLE history_size; DROP TABLE store; \
             ALTER TABLE documents DROP COLUMN row_check; PRAGMA user_version = 1;",
        )
        .unwrap();
    drop(connection);
    let record = open(&scratch.file());
    assert_eq!(record.count(&all()).unwrap(), 0);
    record.close();
    assert_eq!(verify(&scratch.file()).unwrap(), [""; 0]);
}
