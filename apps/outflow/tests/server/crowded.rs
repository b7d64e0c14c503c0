//! A mail server that lets few connections in and takes few messages from each,
//! and says so at the door and in the middle.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::process::{Place, message, wait_for};

const CONNECTIONS: usize = 3;
const MESSAGES_EACH: usize = 7;
const MESSAGES: usize = 300;
/// Slow enough that more connections are wanted.
const TAKES: Duration = Duration::from_millis(20);

#[derive(Default)]
struct Book {
    open: AtomicUsize,
    /// Connections that were turned away, and messages.
    turned_away: Mutex<(usize, usize)>,
    taken: AtomicUsize,
}

fn start() -> (SocketAddr, Arc<Book>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let book = Arc::new(Book::default());
    let kept = Arc::clone(&book);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let kept = Arc::clone(&kept);
            thread::spawn(move || {
                let is_in = kept.open.fetch_add(1, Ordering::SeqCst) < CONNECTIONS;
                // A client may hang up whenever it likes.
                drop(talk(stream, &kept, is_in));
                kept.open.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    (address, book)
}

fn talk(stream: TcpStream, book: &Book, is_in: bool) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut out = stream.try_clone()?;
    if !is_in {
        book.turned_away.lock().unwrap().0 += 1;
        return out.write_all(b"421 4.7.0 Too many connections from your host\r\n");
    }
    let mut lines = BufReader::new(stream).lines();
    out.write_all(b"220 crowded ESMTP\r\n")?;
    let mut carried = 0;
    while let Some(line) = lines.next().transpose()? {
        match line.to_ascii_uppercase().get(..4) {
            Some("MAIL") if carried == MESSAGES_EACH => {
                book.turned_away.lock().unwrap().1 += 1;
                let words = b"421 4.7.0 Too many messages on this connection, reconnect\r\n";
                return out.write_all(words);
            }
            Some("DATA") => {
                out.write_all(b"354 go\r\n")?;
                for line in lines.by_ref() {
                    if line? == "." {
                        break;
                    }
                }
                thread::sleep(TAKES);
                carried += 1;
                book.taken.fetch_add(1, Ordering::SeqCst);
                out.write_all(b"250 2.0.0 Ok\r\n")?;
            }
            Some("QUIT") => return out.write_all(b"221 2.0.0 bye\r\n"),
            _ => out.write_all(b"250 2.0.0 Ok\r\n")?,
        }
    }
    Ok(())
}

#[test]
fn who_wants_fewer_and_shorter_connections_gets_them() {
    let (address, book) = start();
    let place = Place::new("crowded");
    place.configure(&format!(
        "[[account]]\nid = \"a\"\nhost = \"127.0.0.1\"\nport = {}\ntls = \"none\"\n\
         max_connections = 12\nmax_connections_per_destination = 10\n",
        address.port()
    ));
    let server = place.start();
    let mut client = server.client();
    let messages: Vec<Value> = (0..MESSAGES)
        .map(|no| message(json!({ "to": format!("u{no}@example.org") })))
        .collect();
    let answer = client.post("/api/v1/messages", &json!({ "messages": messages }));
    assert_eq!(answer.unwrap().status, 202);
    // The lane may be gone soon after its last message: it is watched meanwhile.
    let mut welcome = None;
    wait_for("all are taken", || {
        let lanes = server.client().get("/api/v1/lanes").unwrap().json();
        let now = lanes["lanes"][0]["sessions_welcome"].as_u64();
        welcome = now.or(welcome);
        (book.taken.load(Ordering::SeqCst) >= MESSAGES).then_some(())
    });
    let (doors, middles) = *book.turned_away.lock().unwrap();
    // Some of those that were begun together, and a few that raced with one that
    // was being closed. Without learning, each of 43 connections would be full.
    assert!((1..=25).contains(&doors), "{doors} were turned away");
    assert!((1..=12).contains(&middles), "{middles} came too late");
    // The first connection may have been idle for too long by now.
    let mut client = server.client();
    let most = CONNECTIONS as u64;
    assert!(
        welcome.is_some_and(|it| (1..=most).contains(&it)),
        "{welcome:?} are welcome"
    );
    let audit = client.get("/api/v1/audit?limit=100").unwrap().json();
    let entries = audit["entries"].as_array().unwrap();
    let capped = entries
        .iter()
        .find(|it| it["action"] == "connections.capped");
    let capped = capped.unwrap_or_else(|| panic!("{audit}"));
    assert_eq!(capped["actor"], "rule:control");
    server.stop();
}
