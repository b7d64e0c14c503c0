//! A data directory that is damaged while no server uses it: nobody is told that
//! nothing happened, what a limit has spent stays spent, and a message whose
//! content does not hold ends for that cause.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::{Value, json};

use crate::process::{PATIENCE, Place, metric, show, submit, wait_for, wait_state};
use crate::sink::Sink;

/// Segments of one kind in a data directory, the oldest first.
fn segments(data: &Path, kind: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(data.join("journal")).unwrap();
    let mut found: Vec<PathBuf> = all
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with(kind) && name.ends_with(".segment")
        })
        .collect();
    found.sort();
    assert!(!found.is_empty(), "no {kind} segment");
    found
}

fn outflow(place: &Place, line: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_outflow"));
    let output = command.current_dir(&place.dir).args(line).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    (output.status.success(), said)
}

/// What a start says that ends by itself. One that becomes ready is ended.
fn refused(place: &Place) -> String {
    let mut command = place.command();
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (sender, lines): (_, Receiver<String>) = channel();
    let out = child.stdout.take().unwrap();
    let errors = child.stderr.take().unwrap();
    for pipe in [
        Box::new(out) as Box<dyn std::io::Read + Send>,
        Box::new(errors),
    ] {
        let sender = sender.clone();
        thread::spawn(move || {
            let lines = std::io::BufRead::lines(std::io::BufReader::new(pipe));
            lines
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
    }
    drop(sender);
    let mut said = String::new();
    let mut is_ready = false;
    while let Ok(line) = lines.recv_timeout(PATIENCE) {
        is_ready |= line.starts_with("ready");
        said = said + &line + "\n";
        if is_ready {
            break;
        }
    }
    let _ = child.kill();
    child.wait().unwrap();
    assert!(!is_ready, "it starts as if nothing had happened:\n{said}");
    said
}

/// What is deleted.
const HARMS: [&str; 3] = ["record", "journal", "newest segment"];

fn harm(place: &Place, what: &str) {
    let data = place.data();
    match what {
        "record" => {
            for end in ["", "-wal", "-shm"] {
                let _ = fs::remove_file(data.join(format!("record.sqlite{end}")));
            }
        }
        "journal" => fs::remove_dir_all(data.join("journal")).unwrap(),
        _ => fs::remove_file(segments(&data, "envelope").pop().unwrap()).unwrap(),
    }
}

/// One message an hour, which has left, and another that waits behind it.
#[test]
fn what_a_limit_has_spent_stays_spent_over_damage_and_salvage() {
    for what in HARMS {
        let place = Place::new("damage-spent");
        place.configure(
            "[[policy]]\nmatch = { tenant = \"acme\" }\nlimits = [\"1/h\"]\n\
             [[account]]\nid = \"main\"\ntransport = \"sandbox\"\n",
        );
        let server = place.start();
        let mut client = server.client();
        let first = submit(&mut client, json!({ "tenant": "acme" }));
        wait_state(&mut client, &first, "delivered");
        server.stop();

        harm(&place, what);
        let (is_sound, said) = outflow(&place, &["store", "check", "--data-dir", "data"]);
        assert!(!is_sound, "{what}: {said}");
        assert!(!said.contains("nothing is damaged"), "{what}: {said}");
        let said = refused(&place);
        assert!(said.contains("outflow store salvage"), "{what}: {said}");

        let (is_saved, said) = outflow(&place, &["store", "salvage", "data", "saved"]);
        assert!(is_saved, "{what}: {said}");
        fs::rename(place.data(), place.dir.join("damaged")).unwrap();
        fs::rename(place.dir.join("saved"), place.data()).unwrap();
        let server = place.start();
        let mut client = server.client();
        let second = submit(&mut client, json!({ "tenant": "acme" }));
        // Whatever could have left before this one has.
        let other = submit(&mut client, json!({ "tenant": "other" }));
        wait_state(&mut client, &other, "delivered");
        let second = show(&mut client, &second);
        assert_eq!(second["state"], "queued", "{what}: {second}");
        assert_eq!(place.taken().len(), 2, "{what}");
        server.stop();
    }
}

fn flip(path: &Path, text: &[u8]) -> bool {
    let mut bytes = fs::read(path).unwrap();
    let found = bytes.windows(text.len()).position(|part| part == text);
    if let Some(at) = found {
        bytes[at] ^= 1;
        fs::write(path, bytes).unwrap();
    }
    found.is_some()
}

#[test]
fn a_message_whose_content_is_damaged_ends_for_that() {
    const TEXT: &str = "these words are in the body and nowhere else";
    let (place, sink) = (Place::new("damage-body"), Sink::start());
    let port = sink.address.port();
    place.configure(&format!(
        "[[account]]\nid = \"relay\"\nhost = \"127.0.0.1\"\nport = {port}\ntls = \"none\"\n\
         helo = \"client.example\"\n"
    ));
    let server = place.start();
    let mut client = server.client();
    let form = json!({ "match": { "tenant": "held" }, "reason": "test" });
    let pause = client.post("/api/v1/pauses", &form).unwrap().json();
    let harmed = submit(&mut client, json!({ "tenant": "held", "text": TEXT }));
    let whole = submit(&mut client, json!({ "tenant": "held" }));
    server.stop();
    let bodies = segments(&place.data(), "body");
    assert!(bodies.iter().any(|path| flip(path, TEXT.as_bytes())));
    let (is_sound, said) = outflow(&place, &["store", "check", "--data-dir", "data"]);
    assert!(!is_sound, "{said}");

    let server = place.start();
    let mut client = server.client();
    let path = format!("/api/v1/pauses/{}", pause["id"].as_str().unwrap());
    assert_eq!(client.call("DELETE", &path, None).unwrap().status, 204);
    wait_state(&mut client, &whole, "delivered");
    let harmed = wait_for("it was tried", || {
        let message: Value = show(&mut client, &harmed);
        (message["state"] != "queued" && message["state"] != "in_flight").then_some(message)
    });
    assert_eq!(harmed["state"], "dead", "{harmed}");
    assert_eq!(harmed["cause"], "storage_damaged", "{harmed}");
    let ready = client.get("/readyz").unwrap().json();
    assert!(ready["notes"].to_string().contains("damaged"), "{ready}");
    let counted = "outflow_dead_letters_total{channel=\"email\",class=\"normal\",\
                   cause=\"storage_damaged\"} ";
    assert_eq!(metric(&mut client, counted), Some(1.0));
    assert_eq!(sink.count(), 1, "and nothing of it was sent");
    server.stop();
}
