//! A stored body is changed on the disk while the server is stopped: its message
//! ends dead for that, everybody is told, and all others are delivered.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::client::Client;
use crate::process::{Place, metric, submit, wait_for, wait_state};
use crate::sink::Sink;

const MESSAGES: usize = 6;
const HARMED: usize = 3;

/// Words of a message that stand nowhere else.
fn marker(no: usize) -> String {
    format!("the body of number {no} is whole")
}

fn to(no: usize) -> String {
    format!("u{no}@gmail.com")
}

/// The segments of bodies.
fn body_segments(data: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(data.join("journal")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_body = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("body-") && !name.ends_with(".spare")
    };
    paths.filter(is_body).collect()
}

/// Flips bytes in the middle of these words, wherever the journal has them.
fn harm(data: &Path, words: &str) {
    let mut places = 0;
    for path in body_segments(data) {
        let mut bytes = fs::read(&path).unwrap();
        let found = bytes
            .windows(words.len())
            .position(|it| it == words.as_bytes());
        if let Some(at) = found {
            let middle = at + words.len() / 2;
            bytes[middle..middle + 3]
                .iter_mut()
                .for_each(|it| *it ^= 0x55);
            fs::write(&path, bytes).unwrap();
            places += 1;
        }
    }
    assert_eq!(places, 1, "a body is stored once");
}

fn notes(client: &mut Client) -> (u16, Vec<Value>) {
    let ready = client.get("/readyz").unwrap();
    let notes = ready.json()["notes"].as_array().cloned();
    (ready.status, notes.unwrap_or_default())
}

/// What the log says of dead letters.
fn dead_letters(log: &Path) -> Vec<Value> {
    let text = fs::read_to_string(log).unwrap();
    // The last line may not be whole yet.
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    lines
        .filter(|line: &Value| line["event"] == "dead_letter")
        .collect()
}

#[test]
fn a_damaged_body_ends_its_message_and_is_told_everywhere() {
    let place = Place::new("damaged-body");
    let sink = Sink::start();
    place.configure(&format!(
        "format = \"json\"\n[dns]\nlookups = \"never\"\n[[account]]\nid = \"relay\"\n\
         host = \"127.0.0.1\"\nport = {}\ntls = \"none\"\nhelo = \"client.example\"\n",
        sink.address.port(),
    ));
    let server = place.start();
    let mut client = server.client();
    let pause = json!({ "match": { "class": "normal" }, "reason": "test" });
    let pause = client.post("/api/v1/pauses", &pause).unwrap().json();
    let ids: Vec<String> = (0..MESSAGES)
        .map(|no| submit(&mut client, json!({ "to": to(no), "text": marker(no) })))
        .collect();
    server.stop();
    harm(&place.data(), &marker(HARMED));

    // Whoever asks before the start hears of it.
    let check = || {
        let check = ["store", "check", "--data-dir", "data"];
        let check = Command::new(env!("CARGO_BIN_EXE_outflow"))
            .args(check)
            .current_dir(&place.dir)
            .output();
        let check = check.unwrap();
        let said = String::from_utf8_lossy(&check.stdout).into_owned();
        (check.status.code(), said)
    };
    let (code, said) = check();
    assert_eq!(code, Some(1), "{said}");
    let line = format!("damaged: message {}: ", HARMED + 1);
    assert!(said.contains(&line), "{said}");

    let log = place.dir.join("log");
    let server = place.start_logging(&log);
    let mut client = server.client();
    assert_eq!(notes(&mut client), (200, Vec::new()), "nobody looked yet");
    let path = format!("/api/v1/pauses/{}", pause["id"].as_str().unwrap());
    assert_eq!(client.call("DELETE", &path, None).unwrap().status, 204);
    for (no, id) in ids.iter().enumerate() {
        let state = if no == HARMED { "dead" } else { "delivered" };
        let shown = wait_state(&mut client, id, state);
        if no == HARMED {
            assert_eq!(shown["attempts"], 1, "it is not tried again: {shown}");
        }
    }
    let mut came = sink.recipients();
    came.sort();
    let others = (0..MESSAGES).filter(|no| *no != HARMED).map(to);
    assert_eq!(came, others.collect::<Vec<_>>(), "nothing half is sent");

    let causes = client.get("/api/v1/dead-letters/causes").unwrap().json();
    assert_eq!(causes["causes"][0]["cause"], "storage_damaged", "{causes}");
    let count =
        "outflow_dead_letters_total{channel=\"email\",class=\"normal\",cause=\"storage_damaged\"} ";
    assert_eq!(metric(&mut client, count), Some(1.0));
    let (status, notes) = notes(&mut client);
    assert_eq!((status, notes.len()), (200, 1), "{notes:?}");
    assert!(
        notes[0].as_str().unwrap().contains("storage_damaged"),
        "{notes:?}"
    );
    let lines = wait_for("the log has it", || {
        let lines = dead_letters(&log);
        (!lines.is_empty()).then_some(lines)
    });
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0]["level"], "error", "{lines:?}");
    assert_eq!(lines[0]["cause"], "storage_damaged", "{lines:?}");
    assert_eq!(lines[0]["message_id"], ids[HARMED].as_str(), "{lines:?}");
    server.stop();
}
