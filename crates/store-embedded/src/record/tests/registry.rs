//! Documents, their versions, and the audit.

use outflow_core::message::State;
use outflow_core::time::Wall;
use outflow_ports::registry::{Audit, Change, Document, Kind, Registry, RegistryError};

use super::{LONG, Scratch, ago, eventually, open, open_eager, receipt};
use crate::record::{Record, RecordSettings};

const SECOND: i64 = 1_000_000_000;

fn audit(at: i64, action: &'static str) -> Audit<'static> {
    Audit {
        at: Wall(at * SECOND),
        actor: "ops",
        action,
        target: "account/ses-1",
        detail: "{\"rate\":\"40/s\"}",
    }
}

fn set(
    record: &Record,
    id: &str,
    value: Option<&str>,
    expected: Option<u64>,
) -> Result<u64, RegistryError> {
    let kind = Kind::Account;
    let change = Change {
        kind,
        id,
        value,
        expected,
    };
    record.change(change, audit(5, "account.set"))
}

fn conflict(changed: Result<u64, RegistryError>) -> u64 {
    match changed {
        Err(RegistryError::Conflict {
            kind: "account",
            version,
            ..
        }) => version,
        other => panic!("no conflict: {other:?}"),
    }
}

#[test]
fn documents_have_versions_and_leave_tombstones() {
    let scratch = Scratch::new();
    let record = open(&scratch.file());
    assert_eq!(conflict(set(&record, "b", Some("{}"), Some(3))), 0);
    assert_eq!(set(&record, "b", Some("{}"), Some(0)).unwrap(), 1);
    assert_eq!(conflict(set(&record, "b", Some("[]"), Some(0))), 1);
    assert_eq!(set(&record, "b", Some("[]"), Some(1)).unwrap(), 2);
    assert_eq!(conflict(set(&record, "b", None, Some(1))), 2);
    assert_eq!(set(&record, "b", None, Some(2)).unwrap(), 3);
    assert_eq!(set(&record, "a", None, None).unwrap(), 1);
    drop(record);

    let record = open(&scratch.file());
    let document = |id: &str, value: Option<&str>, version| Document {
        kind: Kind::Account,
        id: id.to_owned(),
        value: value.map(str::to_owned),
        version,
        changed_at: Wall(5 * SECOND),
    };
    let taken_away = [document("a", None, 1), document("b", None, 3)];
    assert_eq!(Registry::list(&record, Kind::Account).unwrap(), taken_away);
    assert_eq!(
        Registry::get(&record, Kind::Account, "b").unwrap().as_ref(),
        taken_away.last()
    );
    assert_eq!(Registry::get(&record, Kind::Policy, "b").unwrap(), None);
    assert!(Registry::list(&record, Kind::Policy).unwrap().is_empty());
    // It is new to whoever makes it again, and an old version never fits.
    assert_eq!(set(&record, "b", Some("1"), Some(0)).unwrap(), 4);
    assert_eq!(
        Registry::get(&record, Kind::Account, "b").unwrap(),
        Some(document("b", Some("1"), 4))
    );
}

#[test]
fn the_audit_has_every_change_that_was_made_and_no_other() {
    let scratch = Scratch::new();
    let record = open(&scratch.file());
    set(&record, "a", Some("1"), None).unwrap();
    conflict(set(&record, "a", Some("2"), Some(7)));
    for at in 10..20 {
        record.audit(audit(at, "messages.cancel")).unwrap();
    }
    let entries = |since: i64, before, max| {
        let times = Wall(since * SECOND)..Wall::NEVER;
        let entries = record.audit_entries(times, before, max).unwrap();
        entries
            .into_iter()
            .map(|entry| (entry.no, entry.at.0 / SECOND))
            .collect::<Vec<_>>()
    };
    let all = entries(0, None, 99);
    assert_eq!(all.len(), 11);
    assert_eq!(all.first().map(|entry| entry.1), Some(19));
    assert_eq!(all.last().map(|entry| entry.1), Some(5));
    let mut paged = entries(0, None, 4);
    while let Some(last) = paged.last().copied() {
        let more = entries(0, Some(last.0), 4);
        if more.is_empty() {
            break;
        }
        paged.extend(more);
    }
    assert_eq!(paged, all);
    assert_eq!(entries(15, None, 99).len(), 5);
    let until = record.audit_entries(Wall(10 * SECOND)..Wall(15 * SECOND), None, 99);
    assert_eq!(until.unwrap().len(), 5);
    let first = record
        .audit_entries(Wall(0)..Wall::NEVER, None, 99)
        .unwrap()
        .pop()
        .unwrap();
    assert_eq!(
        (
            &*first.actor,
            &*first.action,
            &*first.target,
            &*first.detail
        ),
        ("ops", "account.set", "account/ses-1", "{\"rate\":\"40/s\"}")
    );
}

#[test]
fn changes_get_through_while_receipts_stream_in_and_each_version_is_given_once() {
    let scratch = Scratch::new();
    let record = open_eager(&scratch.file());
    let mut versions: Vec<u64> = std::thread::scope(|scope| {
        let changes: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let change = |_| set(&record, "a", Some("1"), None).unwrap();
                    (0..25).map(change).collect::<Vec<u64>>()
                })
            })
            .collect();
        for seq in 1..=5_000 {
            record.settle(vec![receipt(seq, State::Delivered)], seq);
        }
        changes
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    versions.sort_unstable();
    assert_eq!(versions, (1..=100).collect::<Vec<u64>>());
    let whole = Wall(0)..Wall::NEVER;
    assert_eq!(record.audit_entries(whole, None, 999).unwrap().len(), 100);
    assert!(record.wait_applied(5_000, LONG));
}

#[test]
fn old_lines_of_the_audit_go_and_of_too_many_the_oldest() {
    let scratch = Scratch::new();
    let record = open(&scratch.file());
    let day = 86_400;
    let line = |age| Audit {
        at: ago(age),
        ..audit(0, "messages.cancel")
    };
    for age in [400 * day, 300 * day, 3 * day, 2 * day, day] {
        record.audit(line(age)).unwrap();
    }
    drop(record);
    let left = |record: &Record| {
        let entries = record
            .audit_entries(Wall(0)..Wall::NEVER, None, 99)
            .unwrap();
        entries.into_iter().map(|it| it.no).collect::<Vec<u64>>()
    };
    let settings = RecordSettings::default();
    let record = Record::open(&scratch.file(), settings).unwrap();
    eventually("the oldest goes", || left(&record) == [5, 4, 3, 2]);
    drop(record);
    let settings = RecordSettings {
        audit_rows_max: 2,
        ..RecordSettings::default()
    };
    let record = Record::open(&scratch.file(), settings).unwrap();
    eventually("the surplus goes", || left(&record) == [5, 4]);
    // Numbers are not used again.
    record.audit(line(1)).unwrap();
    assert_eq!(left(&record).first(), Some(&6));
}
