//! A far end that takes each message and loses each answer gets a bounded number
//! of copies, also if the server dies in between.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::process::{Place, submit, wait_for, wait_state};

/// A mail server that hangs up after the final dot.
struct Dropper {
    address: SocketAddr,
    copies: Arc<AtomicUsize>,
}

impl Dropper {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let copies: Arc<AtomicUsize> = Arc::default();
        let count = Arc::clone(&copies);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let count = Arc::clone(&count);
                // A client may hang up whenever it likes.
                thread::spawn(move || drop(talk(stream, &count)));
            }
        });
        Self { address, copies }
    }

    fn copies(&self) -> usize {
        self.copies.load(Ordering::SeqCst)
    }

    /// Settings with an account that speaks to it and the given schedule.
    fn settings(&self, first: &str) -> String {
        format!(
            "[retry]\nemail = {{ first = \"{first}\", factor = 1.0, cap = \"{first}\", \
             jitter = \"none\" }}\n[breaker]\nfailures = 1000\n\
             [[account]]\nid = \"relay\"\nhost = \"127.0.0.1\"\nport = {}\ntls = \"none\"\n\
             helo = \"client.example\"\n",
            self.address.port(),
        )
    }
}

fn talk(stream: TcpStream, copies: &AtomicUsize) -> std::io::Result<()> {
    let mut out = stream.try_clone()?;
    let mut lines = BufReader::new(stream).lines();
    out.write_all(b"220 dropper ESMTP\r\n")?;
    while let Some(line) = lines.next().transpose()? {
        let command = line.to_ascii_uppercase();
        let reply: &[u8] = match command.get(..4) {
            Some("DATA") => {
                out.write_all(b"354 go\r\n")?;
                for line in lines.by_ref() {
                    if line? == "." {
                        copies.fetch_add(1, Ordering::SeqCst);
                        return Ok(());
                    }
                }
                return Ok(());
            }
            _ => b"250 2.0.0 Ok\r\n",
        };
        out.write_all(reply)?;
    }
    Ok(())
}

fn is_dead_of_it(message: &Value) {
    assert_eq!(message["cause"], "uncertain", "{message}");
    assert_eq!(message["attempts"], 3, "{message}");
    let error = &message["last_error"];
    assert_eq!(error["code"], "uncertain", "{message}");
    let said = error["provider_message"].as_str().unwrap();
    assert!(said.contains("lost 3 times"), "{message}");
}

#[test]
fn a_far_end_that_loses_every_answer_gets_three_copies() {
    let dropper = Dropper::start();
    let place = Place::new("lost-answers");
    place.configure(&dropper.settings("10ms"));
    let server = place.start();
    let mut client = server.client();
    let id = submit(&mut client, json!({}));
    is_dead_of_it(&wait_state(&mut client, &id, "dead"));
    assert_eq!(dropper.copies(), 3);
    let causes = client.get("/api/v1/dead-letters/causes").unwrap().json();
    assert_eq!(causes["causes"][0]["cause"], "uncertain", "{causes}");
    server.stop();
}

#[test]
fn a_crash_does_not_forget_lost_answers() {
    let dropper = Dropper::start();
    let place = Place::new("lost-answers-crash");
    // Long enough for the first life to end before the second copy goes.
    place.configure(&dropper.settings("10m"));
    let server = place.start();
    let mut client = server.client();
    let id = submit(&mut client, json!({}));
    wait_state(&mut client, &id, "deferred");
    assert_eq!(dropper.copies(), 1);
    server.kill();
    place.configure(&dropper.settings("10ms"));
    let server = place.start();
    let mut client = server.client();
    wait_for("it is told to try at once", || {
        let path = format!("/api/v1/messages/{id}/retry");
        let answer = client.post(&path, &json!({})).unwrap();
        (answer.status < 300).then_some(())
    });
    is_dead_of_it(&wait_state(&mut client, &id, "dead"));
    assert_eq!(dropper.copies(), 3);
    server.stop();
}
