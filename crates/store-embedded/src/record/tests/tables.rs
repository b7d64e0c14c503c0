//! The file as others see it: other releases, a person with `sqlite3`, a check.

use outflow_core::message::State;
use rusqlite::Connection;

use super::{Scratch, open, receipt};
use crate::record::{Record, RecordError, RecordSettings, schema, verify};

fn filled(scratch: &Scratch) -> Connection {
    let record = open(&scratch.file());
    record.settle(vec![receipt(258, State::Dead)], 77);
    record.close();
    drop(record);
    Connection::open(scratch.file()).unwrap()
}

#[test]
fn a_person_can_read_it() {
    let scratch = Scratch::new();
    let connection = filled(&scratch);
    let line: String = connection
        .query_row(
            "SELECT concat_ws(' ', id_ends_with, state, cause, tenant, destination, \
             error_enhanced, timeline ->> '$[1].error.text', length(settled_at)) \
             FROM receipts_readable",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(
        line,
        "000000000102 dead age acme isp:google 4.7.28 later 24"
    );
    let position: i64 = connection
        .query_row("SELECT journal FROM position", [], |row| row.get(0))
        .unwrap();
    assert_eq!(position, 77);
}

#[test]
fn questions_use_the_indexes_and_never_sort() {
    let scratch = Scratch::new();
    let connection = filled(&scratch);
    let ways = [
        ("receipts INDEXED BY receipts_by_tenant", "tenant = 'a'"),
        (
            "receipts INDEXED BY receipts_not_delivered",
            "tenant = 'a' AND state <> 'delivered' AND state = 'dead'",
        ),
        ("receipts NOT INDEXED", "class = 'low'"),
    ];
    for (from, wanted) in ways {
        let sql = format!(
            "EXPLAIN QUERY PLAN SELECT * FROM {from} WHERE {wanted} AND seq < 9 ORDER BY seq DESC"
        );
        let mut plan = connection.prepare(&sql).unwrap();
        let plan: Vec<String> = plan
            .query_map([], |row| row.get(3))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        assert!(plan.iter().all(|step| step.contains("SEARCH")), "{plan:?}");
    }
}

#[test]
fn formats_of_others_are_refused() {
    let scratch = Scratch::new();
    let connection = filled(&scratch);
    let opened = || Record::open(&scratch.file(), RecordSettings::default()).map(drop);
    opened().unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    assert!(matches!(
        opened(),
        Err(RecordError::Newer {
            found: 99,
            known: schema::FORMAT
        })
    ));
    assert!(matches!(
        verify(&scratch.file()),
        Err(RecordError::Newer { .. })
    ));
    connection.pragma_update(None, "application_id", 5).unwrap();
    assert!(matches!(opened(), Err(RecordError::Foreign)));

    let other = scratch.0.join("other.db");
    let connection = Connection::open(&other).unwrap();
    connection.execute_batch("CREATE TABLE mine (a)").unwrap();
    let opened = Record::open(&other, RecordSettings::default()).map(drop);
    assert!(matches!(opened, Err(RecordError::Foreign)));
    let mode = connection.pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0));
    assert_eq!(mode.unwrap(), "delete", "a file of others was changed");
    std::fs::write(
        scratch.0.join("text"),
        "not a database, but long enough to be one",
    )
    .unwrap();
    let opened = Record::open(&scratch.0.join("text"), RecordSettings::default()).map(drop);
    assert!(matches!(opened, Err(RecordError::Sqlite(_))));
}

#[test]
fn a_check_says_what_is_wrong() {
    let scratch = Scratch::new();
    assert!(verify(&scratch.0.join("none")).is_err());
    let connection = filled(&scratch);
    assert_eq!(verify(&scratch.file()).unwrap(), Vec::<String>::new());
    connection
        .execute_batch(
            "UPDATE receipts SET state = 'lost', timeline = '[';
             INSERT INTO documents (kind, id, value, version, changed_at_ms)
                 VALUES ('account', 'a', '{', 1, 0);
             UPDATE position SET journal = -1;",
        )
        .unwrap();
    assert_eq!(
        verify(&scratch.file()).unwrap(),
        [
            "1 receipts have a timeline that is not JSON",
            "1 documents are not JSON",
            "1 positions are before the beginning of the journal",
            "1 receipts have the unknown state \"lost\"",
            "the account a is not what was written",
        ]
    );
    connection
        .execute_batch("DROP INDEX receipts_by_tenant")
        .unwrap();
    assert_eq!(
        verify(&scratch.file()).unwrap(),
        ["receipts_by_tenant is missing"]
    );
}

#[test]
fn a_damaged_page_is_found() {
    let scratch = Scratch::new();
    let record = open(&scratch.file());
    record.settle(
        (0..500).map(|seq| receipt(seq, State::Bounced)).collect(),
        1,
    );
    record.close();
    drop(record);
    let mut bytes = std::fs::read(scratch.file()).unwrap();
    let third = bytes.len() / 3;
    bytes[third..third + 20_000].fill(0x5a);
    std::fs::write(scratch.file(), bytes).unwrap();
    let found = verify(&scratch.file());
    assert!(
        !matches!(found, Ok(ref wrong) if wrong.is_empty()),
        "{found:?}"
    );
}
