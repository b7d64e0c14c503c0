//! Every command against a real server, as somebody types it.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::process::{Place, Server, wait_for};

/// The command line in the directory of a server.
struct Cli<'a>(&'a Place);

impl Cli<'_> {
    fn command(&self, line: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_outflow"));
        command
            .current_dir(&self.0.dir)
            .env_remove("OUTFLOW_SERVER")
            .env_remove("OUTFLOW_TOKEN")
            .env("OUTFLOW_DATA_DIR", "data")
            .args(line)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// What a command that succeeds prints.
    fn says(&self, line: &[&str]) -> String {
        succeeded(line, self.command(line).output().unwrap())
    }

    /// The same, and what it reads from stdin.
    fn told(&self, line: &[&str], input: &str) -> String {
        let mut child = self.command(line).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        succeeded(line, child.wait_with_output().unwrap())
    }

    /// What a command answers with `--json`.
    fn json(&self, line: &[&str]) -> Value {
        serde_json::from_str(&self.says(&[line, &["--json"]].concat())).unwrap()
    }

    /// How a command fails, and what it says to that.
    fn fails(&self, line: &[&str]) -> (Option<i32>, String) {
        let output = self.command(line).output().unwrap();
        assert!(output.stdout.is_empty(), "{line:?} printed something");
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), said)
    }

    fn state(&self, id: &str) -> String {
        let message = self.json(&["messages", "show", id]);
        message["state"].as_str().unwrap().to_owned()
    }

    fn wait(&self, id: &str, state: &str) {
        wait_for(&format!("{id} {state}"), || {
            (self.state(id) == state).then_some(())
        });
    }
}

fn succeeded(line: &[&str], output: Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

const SETTINGS: &str = "[retry]\non_uncertain = \"dead\"\n\
    [[account]]\nid = \"good\"\ntransport = \"sandbox\"\n\
    [[account]]\nid = \"lossy\"\npool = \"lossy\"\ntransport = \"sandbox\"\n\
    sandbox = { failures = [{ share = 1.0, kind = \"uncertain\" }] }\n";

fn started(name: &str) -> (Place, Server) {
    let place = Place::new(name);
    place.configure(SETTINGS);
    let server = place.start();
    (place, server)
}

#[test]
fn a_message_is_sent_seen_held_and_explained() {
    let (place, server) = started("cli-messages");
    let cli = Cli(&place);
    let send = ["send", "--to", "user@gmail.com", "--from", "a@shop.example"];

    let id = cli.told(
        &[&send[..], &["--text", "-", "--quiet"]].concat(),
        "Hello!\n",
    );
    let id = id.trim();
    cli.wait(id, "delivered");
    let shown = cli.says(&["messages", "show", id]);
    assert!(shown.contains("delivered: it was accepted"), "{shown}");
    assert!(shown.contains("default/isp:google"), "{shown}");
    let explained = cli.says(&["explain", id]);
    assert!(explained.contains("It does not wait"), "{explained}");
    let raw = "From: a@shop.example\r\nTo: user@gmail.com\r\nSubject: Raw\r\n\r\nHi\r\n";
    let line = ["send", "--to", "user@gmail.com", "--file", "-", "--json"];
    let sent: Value = serde_json::from_str(&cli.told(&line, raw)).unwrap();
    cli.wait(sent["id"].as_str().unwrap(), "delivered");
    let listed = cli.says(&[
        "messages",
        "list",
        "--state",
        "delivered",
        "--destination",
        "gmail",
    ]);
    assert_eq!(listed.lines().count(), 3, "{listed}");

    let pause = [
        "pauses",
        "add",
        "--tenant",
        "held",
        "--reason",
        "they complain",
        "--until",
        "2h",
    ];
    let paused = cli.says(&pause);
    assert!(paused.starts_with("Paused tenant:held until "), "{paused}");
    let held = [
        &send[..],
        &["--subject", "Wait", "--tenant", "held", "--quiet"],
    ]
    .concat();
    let ids: Vec<String> = (0..3).map(|_| cli.says(&held).trim().to_owned()).collect();
    let explained = cli.says(&["explain", &ids[1]]);
    assert!(
        explained.contains("It waits for a pause to be lifted"),
        "{explained}"
    );
    assert!(explained.contains("paused by admin ("), "{explained}");
    assert!(
        explained.contains("they complain (tenant:held)"),
        "{explained}"
    );
    assert_eq!(
        cli.json(&["explain", &ids[1]])["waiting_on"][0]["reason"],
        "paused"
    );

    let dry = cli.says(&["messages", "cancel", &ids[0], "--dry-run"]);
    assert_eq!(dry, format!("Would cancel {}, which is queued.\n", ids[0]));
    let done = cli.says(&["messages", "cancel", &ids[0]]);
    assert_eq!(done, format!("{} is cancelled.\n", ids[0]));
    let all = ["messages", "cancel", "--tenant", "held"];
    let dry = cli.says(&[&all[..], &["--dry-run"]].concat());
    assert!(dry.starts_with("Would cancel at most "), "{dry}");
    assert_eq!(cli.state(&ids[2]), "queued");
    cli.says(&[&all[..], &["--yes"]].concat());
    cli.wait(&ids[2], "cancelled");
    let (code, said) = cli.fails(&["messages", "cancel", &ids[2]]);
    assert_eq!(code, Some(1));
    assert!(said.contains("(409 already_settled)"), "{said}");
    assert!(said.contains("/docs/errors/already_settled.md"), "{said}");

    let later = [&send[..], &["--text", "T", "--not-before", "2h", "--quiet"]].concat();
    let later = cli.says(&later);
    let explained = cli.says(&["explain", later.trim()]);
    assert!(
        explained.contains("It waits for its time until "),
        "{explained}"
    );
    // A retry hurries what was deferred, not what its submitter wants later.
    cli.says(&["messages", "retry", later.trim()]);
    let explained = cli.says(&["explain", later.trim()]);
    assert!(
        explained.contains("It waits for its time until "),
        "{explained}"
    );
    cli.says(&["messages", "cancel", later.trim()]);
    cli.wait(later.trim(), "cancelled");
    cli.says(&["messages", "retry", "--tenant", "nobody"]);

    let lists = cli.json(&["pauses", "list"]);
    let pause = lists["pauses"][0]["id"].as_str().unwrap();
    assert!(cli.says(&["pauses", "list"]).contains("they complain"));
    cli.says(&["pauses", "remove", pause]);
    assert_eq!(cli.says(&["pauses", "list"]), "Nothing is paused.\n");
    server.stop();
}

#[test]
fn lanes_limits_accounts_policies_and_tokens_are_set() {
    let (place, server) = started("cli-settings");
    let cli = Cli(&place);

    let lane = "default/isp:google";
    cli.says(&["lanes", "pause", lane, "--reason", "blocked"]);
    let waits = ["send", "--to", "user@gmail.com", "--from", "a@shop.example"];
    let waits = cli.says(&[&waits[..], &["--subject", "Wait", "-q"]].concat());
    wait_for("the paused lane", || {
        let lanes = cli.says(&["lanes"]);
        let row = lanes.lines().find(|row| row.starts_with(lane))?.to_owned();
        row.contains("PAUSED").then_some(())
    });
    assert!(
        cli.json(&["lanes"])["lanes"][0]["paused"]
            .as_bool()
            .unwrap()
    );
    let moved = [
        "messages",
        "move",
        "--destination",
        "google",
        "--to-pool",
        "second",
    ];
    cli.says(&moved);

    let added = cli.says(&[
        "accounts",
        "add",
        "extra",
        "pool=second",
        "transport=sandbox",
    ]);
    assert!(added.contains("set over the API"), "{added}");
    cli.wait(waits.trim(), "delivered");
    let (code, said) = cli.fails(&["accounts", "add", "extra", "transport=sandbox"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("already"), "{said}");
    let set = [
        "accounts",
        "set",
        "extra",
        "limits=600/min, 50k/day",
        "max_connections=3",
    ];
    cli.says(&[&set[..], &["sandbox.latency=1ms"]].concat());
    let account = cli.json(&["accounts", "show", "extra"]);
    assert_eq!(account["limits"][1], "50k/day", "{account}");
    assert!(cli.says(&["accounts", "list"]).contains("600/min, 50k/day"));
    let (code, said) = cli.fails(&["accounts", "set", "extra", "limitz=1/s"]);
    assert_eq!(code, Some(1));
    assert!(
        said.contains("limits"),
        "a typing error is corrected: {said}"
    );
    cli.says(&["accounts", "remove", "extra"]);
    assert_eq!(cli.fails(&["accounts", "show", "extra"]).0, Some(1));
    assert!(
        cli.says(&["lanes", "resume", lane])
            .starts_with("1 pause of lane")
    );

    cli.says(&["policies", "set", "isp/Gmail", "rate=2/s", "burst=5"]);
    let storm = ["--mitigation", "421 storm", "--until", "2h"];
    cli.says(&[&["policies", "set", "isp/google", "rate=1/s"], &storm[..]].concat());
    let policy = cli.json(&["policies", "show", "isp/google"]);
    assert_eq!(policy["rate"], "1/s", "{policy}");
    assert_eq!(policy["base"]["rate"], "2/s", "{policy}");
    assert!(cli.says(&["policies", "list"]).contains("421 storm"));
    cli.says(&["policies", "set", "isp/google", "--lift"]);
    assert_eq!(cli.json(&["policies", "show", "isp/google"])["rate"], "2/s");
    let limits = wait_for("the limit", || {
        let limits = cli.says(&["limits"]);
        limits.contains("isp:google").then_some(limits)
    });
    assert!(limits.starts_with("LIMIT"), "{limits}");
    assert_eq!(cli.json(&["limits", "isp:google"])["key"], "isp:google");
    cli.says(&["policies", "delete", "isp/google"]);
    assert_eq!(cli.fails(&["policies", "show", "isp/google"]).0, Some(1));

    let token = cli.says(&["tokens", "add", "shop", "--tenant", "shop", "--quiet"]);
    let (code, said) = cli.fails(&["accounts", "list", "--token", token.trim()]);
    assert_eq!(code, Some(1));
    assert!(said.contains("(403 forbidden)"), "{said}");
    let tokens = cli.json(&["tokens", "list"]);
    let tokens = tokens["tokens"].as_array().unwrap();
    let shop = tokens.iter().find(|token| token["name"] == "shop").unwrap();
    assert!(!cli.says(&["tokens", "list"]).contains(token.trim()));
    cli.says(&["tokens", "remove", shop["id"].as_str().unwrap()]);
    let (_, said) = cli.fails(&["messages", "list", "--token", token.trim()]);
    assert!(said.contains("(401 unauthorized)"), "{said}");
    assert!(!said.contains(token.trim()), "a token was printed");

    let audit = cli.says(&["audit", "--since", "2h"]);
    for action in ["account.set", "policy.set", "token.remove", "pause.add"] {
        assert!(audit.contains(action), "{action} is missing in {audit}");
    }
    server.stop();
}

#[test]
fn dead_letters_are_reviewed_replayed_and_discarded() {
    let (place, server) = started("cli-dead");
    let cli = Cli(&place);
    let send = [
        "send",
        "--to",
        "user@gmail.com",
        "--from",
        "a@shop.example",
        "--pool",
        "lossy",
    ];
    let id = cli.says(&[&send[..], &["--subject", "Lost", "--quiet"]].concat());
    let id = id.trim();
    cli.wait(id, "dead");
    wait_for("the record", || {
        let causes = cli.says(&["dead-letters", "list", "--causes"]);
        causes.contains("isp:google").then_some(())
    });
    assert!(cli.says(&["dead-letters", "list"]).contains(id));
    let shown = cli.says(&["dead-letters", "show", id]);
    assert!(
        shown.contains("nobody knows whether it was taken"),
        "{shown}"
    );

    let review = cli.says(&[
        "dead-letters",
        "review",
        "--destination",
        "google",
        "--since",
        "2h",
    ]);
    assert!(review.contains("1 dead letter\n"), "{review}");
    assert!(review.contains(id), "{review}");
    assert!(
        review.contains("outflow dead-letters replay 1 --pace 10/s"),
        "{review}"
    );
    cli.says(&["accounts", "set", "lossy", "sandbox=null"]);
    cli.says(&["dead-letters", "replay", "1", "--pace", "600/min"]);
    wait_for("the replay", || {
        let review = cli.json(&["dead-letters", "reviews", "1"]);
        (review["state"] == "replayed").then_some(())
    });
    let delivered = [
        "messages",
        "list",
        "--state",
        "delivered",
        "--pool",
        "lossy",
    ];
    wait_for("the replayed message", || {
        let found = cli.json(&delivered);
        (found["messages"].as_array().unwrap().len() == 1).then_some(())
    });
    let (code, said) = cli.fails(&["dead-letters", "discard", "1"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("review_closed"), "{said}");
    cli.says(&["dead-letters", "review"]);
    cli.says(&["dead-letters", "discard", "2", "--yes"]);
    assert!(cli.says(&["dead-letters", "reviews"]).contains("discard"));
    server.stop();
}

#[test]
fn lanes_are_watched_until_nobody_looks() {
    let (place, server) = started("cli-watch");
    let mut child = Cli(&place).command(&["lanes", "--watch"]).spawn().unwrap();
    let mut line = String::new();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    assert!(line.contains("waiting in"), "{line}");
    drop(out);
    assert!(child.wait().unwrap().success(), "a closed pipe is no error");
    server.stop();
}

#[test]
fn what_cannot_be_done_says_why() {
    let place = Place::new("cli-none");
    let cli = Cli(&place);
    let (code, said) = cli.fails(&["lanes", "--server", "127.0.0.1:1"]);
    assert_eq!(code, Some(1));
    assert!(
        said.contains("cannot reach a server at http://127.0.0.1:1"),
        "{said}"
    );
    assert!(said.contains("outflow serve"), "{said}");
    for wrong in [
        &["messages", "cancel"][..],
        &["pauses", "add"],
        &["accounts", "set", "a"],
        &["audit", "--since", "yesterday"],
        &["classify", "hello"],
        &["frobnicate"],
    ] {
        assert_eq!(cli.fails(wrong).0, Some(2), "{wrong:?}");
    }
    let line = [
        "classify",
        "421 4.7.28 Too many messages",
        "--destination",
        "google",
    ];
    let said = cli.json(&line);
    assert_eq!(said["verdict"], "retry", "{said}");
    assert_eq!(said["class"], "rate", "{said}");
    assert_eq!(said["scope"], "account", "{said}");
    assert_eq!(said["action"], "slow_down", "{said}");
    assert_eq!(said["lasts_s"], 1_800, "{said}");
    assert_eq!(said["rule"], "google.flood_by_code", "{said}");
}

#[test]
fn a_message_is_taken_out_while_the_server_is_stopped() {
    let place = Place::new("cli-take-out");
    place.configure("");
    let server = place.start();
    let cli = Cli(&place);
    cli.says(&["pauses", "add", "--tenant", "held", "--reason", "a test"]);
    let line = "send --from a@shop.example --to b@gmail.com --text x --tenant held --quiet";
    let line: Vec<&str> = line.split(' ').collect();
    let ids = [cli.says(&line), cli.says(&line)].map(|id| id.trim().to_owned());
    let take_out = ["store", "take-out", ids[0].as_str()];
    let (code, said) = cli.fails(&take_out);
    assert_eq!(code, Some(1), "a server uses it: {said}");
    server.stop();
    assert!(cli.says(&take_out).contains(&ids[0]));
    let (code, said) = cli.fails(&take_out);
    assert_eq!(code, Some(1));
    assert!(said.contains("there is no message"), "{said}");
    let server = place.start();
    assert_eq!(cli.state(&ids[0]), "cancelled");
    assert_ne!(cli.state(&ids[1]), "cancelled");
    server.stop();
}
