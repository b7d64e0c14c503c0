//! SIGTERM under load: intake is refused with a reason, what is under way ends,
//! nothing is lost and nothing is sent twice.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::json;

use crate::client::Client;
use crate::process::{Place, listed, message, wait_for};

/// Submits until told to stop or the server is gone: the ids that were
/// acknowledged, and how often it was refused.
pub fn submit_until(mut client: Client, stop: &AtomicBool, batch: usize) -> (Vec<String>, usize) {
    let (mut ids, mut refused) = (Vec::new(), 0);
    let body = match batch {
        1 => message(json!({})),
        _ => json!({ "messages": vec![message(json!({})); batch] }),
    };
    while !stop.load(Ordering::Acquire) {
        let Ok(answer) = client.post("/api/v1/messages", &body) else {
            break;
        };
        let json = answer.json();
        match answer.status {
            202 if batch == 1 => ids.push(json["id"].as_str().unwrap().to_owned()),
            202 => {
                let accepted = json["accepted"].as_array().unwrap();
                ids.extend(
                    accepted
                        .iter()
                        .map(|it| it["id"].as_str().unwrap().to_owned()),
                );
            }
            503 => {
                assert!(answer.header("retry-after").is_some(), "{}", answer.text);
                refused += 1;
                thread::yield_now();
            }
            status => panic!("{status}: {}", answer.text),
        }
    }
    (ids, refused)
}

#[test]
fn sigterm_under_load_loses_nothing_and_repeats_nothing() {
    let place = Place::new("sigterm");
    place.configure(
        "[[account]]\nid = \"slow\"\ntransport = \"sandbox\"\n\
         sandbox = { latency = \"300ms\" }\n",
    );
    let server = place.start();
    let stop = AtomicBool::new(false);
    let acknowledged: Vec<String> = thread::scope(|scope| {
        let loads: Vec<_> = [1, 1, 20]
            .into_iter()
            .map(|batch| {
                let (client, stop) = (server.client(), &stop);
                scope.spawn(move || submit_until(client, stop, batch))
            })
            .collect();
        wait_for("some in flight", || {
            (place.taken().len() > 50).then_some(())
        });
        server.terminate();
        let (status, last) = server.wait();
        assert_eq!(status.code(), Some(0), "{last:?}");
        assert!(last.iter().any(|line| line.contains("settled")), "{last:?}");
        let ended = loads.into_iter().flat_map(|load| load.join().unwrap().0);
        ended.collect()
    });
    assert!(!acknowledged.is_empty());
    let server = place.start();
    let mut client = server.client();
    wait_for("all are taken", || {
        let taken = place.taken();
        acknowledged
            .iter()
            .all(|id| taken.contains_key(id))
            .then_some(())
    });
    wait_for("nothing waits", || {
        listed(&mut client, "queued,sending,deferred")
            .is_empty()
            .then_some(())
    });
    let taken = place.taken();
    let twice = taken.values().filter(|times| times.len() > 1).count();
    assert_eq!(twice, 0, "of {}", taken.len());
    server.stop();
}
