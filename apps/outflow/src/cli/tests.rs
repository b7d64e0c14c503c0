//! How commands are read and results written.

use clap::{CommandFactory as _, Parser};
use jiff::Timestamp;
use outflow_config::keys::{ACCOUNT, POLICY};
use serde_json::json;

use super::failure::{Failure, Problem, Refusal};
use super::table::{Column, Table};
use super::when::{self, Direction};
use super::{Command, GlobalOptions, client, fields, lanes, pace, plain};

#[derive(Debug, Parser)]
struct Outflow {
    #[command(flatten)]
    _global: GlobalOptions,
    #[command(subcommand)]
    command: Command,
}

fn read(line: &[&str]) -> Result<Outflow, clap::Error> {
    Outflow::try_parse_from([&["outflow"], line].concat())
}

fn now() -> Timestamp {
    "2026-01-31T12:00:00Z".parse().expect("a time")
}

#[test]
fn commands_are_consistent() {
    Outflow::command().debug_assert();
}

#[test]
fn every_command_of_the_contract_is_read() {
    let lines = [
        "send --to a@b.example --from c@d.example --subject S --text - --class critical --tenant t",
        "send --to a@b.example --file - --quiet",
        "messages list --state queued --destination google --tenant t --class low --json",
        "messages show 0198",
        "messages cancel 0198",
        "messages cancel --tenant t --campaign c --destination isp:google --dry-run",
        "messages retry --tenant t --yes",
        "messages move --tenant t --to-pool other",
        "pauses list",
        "pauses add --tenant t --campaign c --class low --account a --destination d --until 2h",
        "pauses remove 7",
        "explain 0198 --json",
        "lanes",
        "lanes --watch",
        "lanes --json",
        "lanes pause default/isp:google --reason blocked",
        "lanes resume default/isp:google",
        "accounts add primary transport=smtp host=smtp.example.com",
        "accounts list",
        "accounts show primary",
        "accounts set primary port=465",
        "accounts remove primary",
        "policies list",
        "policies show isp/google",
        "policies set isp/google rate=2/s --mitigation storm --until 2h",
        "policies delete isp/google",
        "limits",
        "limits isp:google --json",
        "dead-letters list --since 2h",
        "dead-letters show 0198",
        "dead-letters review --destination google --cause age",
        "dead-letters replay 1 --pace 10/s",
        "dead-letters discard 1 --yes",
        "tokens list",
        "tokens add shop --scope submit --tenant t",
        "tokens remove 1",
        "audit --since 2h",
        "report --since 2h",
        "report --since 2h --until 1h --destination isp:google --out DIR --json",
        "--server http://a.example audit",
        "audit --server http://a.example --token T",
    ];
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        assert!(read(&words).is_ok(), "{line}: {:?}", read(&words).err());
    }
    assert!(read(&["classify", "421 4.7.28 Too fast", "--destination", "google"]).is_ok());
}

#[test]
fn wrong_use_is_refused_before_anybody_is_asked() {
    let lines = [
        "send --from a@b.example",
        "send --to a@b.example --file f --text t",
        "messages list --class urgent",
        "messages move --tenant t",
        "lanes --watch pause default/isp:google",
        "policies set isp/google --mitigation storm",
        "dead-letters replay 1 --pace fast",
        "tokens add shop --scope king",
    ];
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let error = read(&words).expect_err(line);
        assert_eq!(error.exit_code(), 2, "{line}");
    }
}

#[test]
fn fields_have_the_type_of_their_key() {
    let said = [
        "port=587",
        "password=12345",
        "use_tls=true",
        "limits=14/s burst 28, 50k/day",
        "sandbox.latency.p50=20ms",
        "sandbox.latency.p99=2s",
        "sandbox.over=429",
        "helo=null",
    ];
    let said: Vec<String> = said.map(str::to_owned).to_vec();
    let wanted = json!({
        "port": 587,
        "password": "12345",
        "use_tls": true,
        "limits": ["14/s burst 28", "50k/day"],
        "sandbox": { "latency": { "p50": "20ms", "p99": "2s" }, "over": 429 },
        "helo": null,
    });
    assert_eq!(fields::read(ACCOUNT, &said).expect("fields"), wanted);
    let policy = ["rate=2/s".to_owned(), "burst=5".to_owned()];
    let wanted = json!({ "rate": "2/s", "burst": 5 });
    assert_eq!(fields::read(POLICY, &policy).expect("fields"), wanted);
    for wrong in [vec!["rate"], vec!["a..b=1"], vec!["rate=1", "rate=2"]] {
        let wrong: Vec<String> = wrong.into_iter().map(str::to_owned).collect();
        assert!(fields::read(POLICY, &wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn times_are_read_from_now_or_from_a_clock() {
    let of = |text, direction| when::read(text, now(), direction);
    let at = |text: &str| Ok(text.to_owned());
    assert_eq!(of("2h", Direction::Back), at("2026-01-31T10:00:00.000Z"));
    assert_eq!(of("2h", Direction::Ahead), at("2026-01-31T14:00:00.000Z"));
    assert_eq!(
        of("2026-01-30", Direction::Back),
        at("2026-01-30T00:00:00.000Z")
    );
    let zoned = of("2026-01-30T01:00:00+01:00", Direction::Back);
    assert_eq!(zoned, at("2026-01-30T00:00:00.000Z"));
    for wrong in ["", "soon", "2", "99999999999d"] {
        assert!(of(wrong, Direction::Ahead).is_err(), "{wrong:?}");
    }
}

#[test]
fn times_are_shown_both_ways() {
    let shown = |text| when::both(text, now());
    assert_eq!(shown("2026-01-31T12:00:41Z"), "12:00:41Z (in 41 s)");
    assert_eq!(shown("2026-01-31T09:55:00Z"), "09:55:00Z (2 h 5 min ago)");
    assert_eq!(
        shown("2026-02-03T13:00:00Z"),
        "2026-02-03 13:00:00Z (in 3 d 1 h)"
    );
    assert_eq!(shown("2026-01-31T12:00:00.4Z"), "12:00:00Z (now)");
    assert_eq!(shown("whenever"), "whenever");
}

#[test]
fn a_pace_is_messages_per_second() {
    assert_eq!(pace::read("10/s"), Ok(10.0));
    assert_eq!(pace::read("600/min"), Ok(10.0));
    assert_eq!(pace::read("10"), Ok(10.0));
    for wrong in ["", "0/s", "-1/s", "10/fortnight", "inf/s", "NaN"] {
        assert!(pace::read(wrong).is_err(), "{wrong:?}");
    }
    assert_eq!(pace::text(0.5), "30/min");
    assert_eq!(pace::text(10.0), "10/s");
}

#[test]
fn tables_line_up_and_cannot_be_forged() {
    let mut table = Table::new([
        Column::Text("lane"),
        Column::Number("waiting"),
        Column::Text("on"),
    ]);
    table.row(["default/isp:google", "1,204", "isp:google"]);
    table.row(["a\u{1b}[2J\nb", "3", ""]);
    let wanted = "\
LANE                WAITING  ON
default/isp:google    1,204  isp:google
a\u{fffd}[2J b                   3
";
    assert_eq!(table.text("nothing"), wanted);
    assert_eq!(
        Table::new([Column::Text("a")]).text("Nothing."),
        "Nothing.\n"
    );
    assert_eq!(plain::count(1_234_567), "1,234,567");
    assert_eq!(plain::counted(1, "flow", "flows"), "1 flow");
}

#[test]
fn lanes_say_what_they_wait_on() {
    let lanes: lanes::Lanes = serde_json::from_str(
        r#"{"lanes":[
          {"lane":"default/isp:yahoo","waiting":{"critical":0,"high":0,"normal":0,"low":0},
           "in_flight":0,"sessions":1,"sent":9,"waiting_on":[],"paused":true,"oldest_age_s":null},
          {"lane":"default/isp:google","waiting":{"critical":1,"high":0,"normal":1203,"low":0},
           "in_flight":2,"sessions":2,"sent":10,"paused":false,"oldest_age_s":65.2,
           "waiting_on":[{"reason":"limit","limit":"isp:google","until":"2026-01-31T12:00:03Z"},
                         {"reason":"no_account_ready","limit":null,"until":null}]}]}"#,
    )
    .expect("lanes");
    let allowed = [("isp:google".to_owned(), "2/s".to_owned())].into();
    let text = lanes::table(&lanes, &allowed, None, now());
    let rows: Vec<&str> = text.lines().collect();
    assert!(
        rows[1].starts_with("default/isp:google    1,204  1/0/1,203/0"),
        "{text}"
    );
    assert!(
        rows[1].ends_with("1 min 5 s  isp:google until 12:00:03Z (2/s), account busy"),
        "{text}"
    );
    assert!(rows[2].ends_with("PAUSED"), "{text}");
}

#[test]
fn a_refusal_says_all_that_the_server_said() {
    let problem: Problem = serde_json::from_str(
        r#"{"type":"/docs/errors/invalid","title":"Some fields cannot be accepted","status":422,
            "detail":"/to: is required","code":"invalid",
            "errors":[{"pointer":"/to","detail":"is required"}]}"#,
    )
    .expect("a problem");
    let failure = Failure::Refused(Box::new(Refusal {
        problem,
        retry_after_s: Some(5),
        hint: None,
    }));
    let page = concat!(
        env!("CARGO_PKG_REPOSITORY"),
        "/blob/main/docs/errors/invalid.md"
    );
    let wanted = format!(
        "Some fields cannot be accepted (422 invalid)\n  /to: is required\n  \
         Try again in 5 s.\n  See {page}"
    );
    assert_eq!(failure.to_string(), wanted);
}

#[test]
fn names_reach_the_server_as_they_are() {
    assert_eq!(
        client::segment("default/isp:google"),
        "default%2Fisp%3Agoogle"
    );
    assert_eq!(
        client::segments("account:a b/isp:x#day"),
        "account%3Aa%20b/isp%3Ax%23day"
    );
    let asked = client::query([("tenant", Some("a&b=c".to_owned())), ("class", None)]);
    assert_eq!(asked, "?tenant=a%26b%3Dc");
}
