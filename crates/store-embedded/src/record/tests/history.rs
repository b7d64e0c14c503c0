//! What was sent where, in slices.

use std::path::Path;

use outflow_core::time::{Nanos, Wall};
use outflow_ports::history::{Attempts, History, RateInForce, Refusal, SLICE_S, Slice, Span};
use rusqlite::Connection;

use super::{Scratch, ago, eventually};
use crate::record::{Record, RecordSettings, schema};

/// A full minute.
const START: i64 = 1_790_000_040;

fn at(seconds: i64) -> Wall {
    Wall((START + seconds) * 1_000_000_000)
}

fn slice(seconds: i64, destination: &str, attempts: u64, refused: u64) -> Slice {
    Slice {
        at: at(seconds),
        destination: destination.to_owned(),
        account: None,
        attempts: Attempts {
            attempts,
            accepted: attempts - refused,
            refused,
            ..Attempts::default()
        },
        peak: attempts,
        refusal: (refused > 0).then(|| Refusal {
            at: at(seconds + 3),
            class: "rate".to_owned(),
            code: Some(421),
            said: format!("after {seconds} s"),
        }),
    }
}

/// Keeps all: the times here are fixed.
fn open(path: &Path) -> Record {
    let settings = RecordSettings {
        history_for: Nanos::MAX,
        ..RecordSettings::default()
    };
    Record::open(path, settings).unwrap()
}

fn rate(seconds: i64, rate: f64) -> RateInForce {
    RateInForce {
        at: at(seconds),
        limit: "isp:google".to_owned(),
        destination: "isp:google".to_owned(),
        rate: Some(rate),
    }
}

fn span(since: i64, until: i64) -> Span {
    Span {
        since: at(since),
        until: at(until),
        destination: None,
        step_s: SLICE_S,
        rows_max: 1_000,
    }
}

#[test]
fn slices_come_back_as_they_were_and_are_added_up() {
    let scratch = Scratch::new();
    let record = open(&scratch.file());
    let google: Vec<Slice> = (0..12)
        .map(|n| slice(n * 10, "isp:google", 10 + n as u64, u64::from(n > 6)))
        .collect();
    let rates = [rate(-600, 40.0), rate(-901, 1.0), rate(60, 20.0)];
    record.write(&google, &rates).unwrap();
    record
        .write(&[slice(0, "isp:yahoo", 3, 0)], &[rate(60, 10.0)])
        .unwrap();
    let page = record.read(&span(0, 120)).unwrap();
    assert_eq!(page.slices.len(), 13);
    assert_eq!(page.next, None);
    let own = page
        .slices
        .iter()
        .filter(|it| it.destination == "isp:google");
    assert_eq!(own.cloned().collect::<Vec<_>>(), google);
    assert_eq!(page.rates, [rate(-600, 40.0), rate(60, 10.0)]);

    let minutes = record
        .read(&Span {
            destination: Some("isp:google".to_owned()),
            step_s: 60,
            ..span(0, 120)
        })
        .unwrap();
    let [first, second] = &minutes.slices[..] else {
        panic!("{:?}", minutes.slices);
    };
    assert_eq!((first.attempts.attempts, first.peak), (75, 15));
    assert_eq!((second.at, second.attempts.refused), (at(60), 5));
    assert_eq!(second.refusal.as_ref().unwrap().said, "after 70 s");
}

#[test]
fn a_page_ends_between_two_steps_and_says_where_to_go_on() {
    let scratch = Scratch::new();
    let record = open(&scratch.file());
    let slices: Vec<Slice> = (0..10)
        .flat_map(|n| ["a", "b", "c"].map(|name| slice(n * 10, name, 1, 0)))
        .collect();
    record.write(&slices, &[]).unwrap();
    let mut seen = Vec::new();
    let mut asked = Span {
        rows_max: 4,
        ..span(0, 100)
    };
    for _ in 0..20 {
        let page = record.read(&asked).unwrap();
        assert!(page.slices.len() <= 6);
        seen.extend(page.slices);
        match page.next {
            Some(next) => asked.since = next,
            None => break,
        }
    }
    assert_eq!(seen, slices);
}

#[test]
fn a_rate_that_is_gone_is_gone_and_of_a_step_the_last_counts() {
    let scratch = Scratch::new();
    let record = open(&scratch.file());
    let gone = RateInForce {
        rate: None,
        ..rate(30, 0.0)
    };
    let rates = [rate(-20, 40.0), rate(-10, 30.0), rate(20, 20.0), gone];
    record.write(&[], &rates).unwrap();
    let page = record.read(&span(0, 60)).unwrap();
    assert_eq!(page.rates, rates[1..]);
    let minutes = Span {
        step_s: 60,
        ..span(0, 60)
    };
    let page = record.read(&minutes).unwrap();
    assert_eq!(page.rates, [rates[1].clone(), rates[3].clone()]);
    let later = record.read(&span(60, 120)).unwrap();
    assert_eq!(later.rates, [], "what was gone before is not in force");
}

/// More rates than one answer holds: none is lost, nor are those counts that
/// go with them.
#[test]
fn too_many_rates_end_a_page_where_a_step_begins() {
    let scratch = Scratch::new();
    let record = open(&scratch.file());
    let steps = 9;
    let rates: Vec<RateInForce> = (0..steps)
        .flat_map(|step| {
            (0..12_000).map(move |limit| RateInForce {
                limit: format!("account:{limit:05}/isp:google"),
                ..rate(step * 10, step as f64)
            })
        })
        .collect();
    let slices: Vec<Slice> = (0..steps)
        .map(|step| slice(step * 10, "isp:google", 1, 0))
        .collect();
    record.write(&slices, &rates).unwrap();
    let first = record.read(&span(0, 90)).unwrap();
    assert_eq!(first.next, Some(at(80)));
    assert_eq!((first.slices.len(), first.rates.len()), (8, 96_000));
    let second = record.read(&span(80, 90)).unwrap();
    assert_eq!(second.next, None);
    assert_eq!(second.slices[..], slices[8..]);
    let newest = second.rates.iter().filter(|it| it.at == at(80));
    assert_eq!(newest.count(), 12_000, "and what held before is there too");
}

/// After a restart within ten seconds the same slice is written again.
#[test]
fn what_is_written_twice_is_added_up_and_keeps_its_first_refusal() {
    let scratch = Scratch::new();
    let record = open(&scratch.file());
    for refused in [0, 2, 5] {
        record
            .write(&[slice(0, "isp:google", 10, refused)], &[])
            .unwrap();
    }
    let page = record.read(&span(0, 10)).unwrap();
    let [one] = &page.slices[..] else {
        panic!("{:?}", page.slices);
    };
    assert_eq!((one.attempts.attempts, one.attempts.refused), (30, 7));
    assert_eq!(one.refusal.as_ref().unwrap().at, at(3));
}

#[test]
fn old_slices_go_and_of_too_many_the_oldest() {
    let scratch = Scratch::new();
    let day = 86_400;
    let ages = [15 * day, 13 * day, 3 * 3_600, 2 * 3_600, 3_600];
    let slices = ages.map(|age| Slice {
        at: Wall(ago(age).0 / 10_000_000_000 * 10_000_000_000),
        ..slice(0, "isp:google", 1, 0)
    });
    let rates = ages.map(|age| RateInForce {
        at: ago(age),
        ..rate(0, 1.0)
    });
    open(&scratch.file()).write(&slices, &rates).unwrap();
    let all = Span {
        since: Wall(0),
        until: Wall::NEVER,
        ..span(0, 0)
    };
    let left = |record: &Record| record.read(&all).unwrap().slices.len();
    let record = super::open(&scratch.file());
    eventually("the oldest goes", || left(&record) == 4);
    drop(record);
    let settings = RecordSettings {
        history_rows_max: 6,
        ..RecordSettings::default()
    };
    let record = Record::open(&scratch.file(), settings).unwrap();
    eventually("the surplus goes", || left(&record) == 2);
    let page = record.read(&all).unwrap();
    assert_eq!(page.slices[..], slices[3..]);
    drop(record);
    let rows = "SELECT rows - (SELECT count(*) FROM history) - \
         (SELECT count(*) FROM history_rates) FROM history_size";
    let connection = Connection::open(scratch.file()).unwrap();
    let wrong: i64 = connection.query_row(rows, [], |row| row.get(0)).unwrap();
    assert_eq!(wrong, 0);
}

#[test]
fn a_record_without_history_gets_one() {
    let scratch = Scratch::new();
    drop(open(&scratch.file()));
    let connection = Connection::open(scratch.file()).unwrap();
    connection
        .execute_batch(
            "DROP TABLE history; DROP TABLE history_rates; DROP TABLE history_size; \
             DROP TABLE store; ALTER TABLE documents DROP COLUMN row_check;",
        )
        .unwrap();
    // They came with the last format but one.
    let before = schema::FORMAT - 2;
    connection
        .pragma_update(None, "user_version", before)
        .unwrap();
    drop(connection);
    let record = open(&scratch.file());
    record.write(&[slice(0, "isp:google", 1, 0)], &[]).unwrap();
    assert_eq!(record.read(&span(0, 10)).unwrap().slices.len(), 1);
}

#[test]
fn long_texts_are_cut_and_nonsense_is_no_error() {
    let scratch = Scratch::new();
    let record = open(&scratch.file());
    let mut one = slice(0, "isp:google", 1, 1);
    one.refusal.as_mut().unwrap().said = "ä".repeat(10_000);
    record.write(&[one], &[]).unwrap();
    let page = record.read(&span(0, 10)).unwrap();
    assert_eq!(page.slices[0].refusal.as_ref().unwrap().said.len(), 300);
    let backwards = record.read(&span(10, 0)).unwrap();
    assert!(backwards.slices.is_empty());
    let nothing = Span {
        since: Wall(i64::MIN),
        until: Wall(i64::MIN),
        step_s: 0,
        rows_max: 0,
        destination: Some("'".to_owned()),
    };
    assert!(record.read(&nothing).unwrap().slices.is_empty());
}
