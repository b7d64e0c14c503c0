//! Submission over SMTP, as the server counts it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::process::{Place, listed, metric, wait_for};
use crate::submitter::{Submitter, address_of};

#[test]
fn what_is_taken_and_refused_is_counted() {
    let place = Place::new("submission");
    place.configure("[smtp]\nlisten = \"127.0.0.1:0\"\n");
    let server = place.start();
    let address = address_of(&server);
    let mut submitter = Submitter::login(address, &server.token).unwrap();
    let ids = ["one", "two"].map(|subject| submitter.submit("u@gmail.com", subject).unwrap());
    let mut client = server.client();
    wait_for("both are delivered", || {
        let delivered = listed(&mut client, "delivered");
        ids.iter().all(|id| delivered.contains(id)).then_some(())
    });
    // Somebody who does not know a token.
    let mut stranger = BufReader::new(TcpStream::connect(address).unwrap());
    let wrong = STANDARD.encode("\0app\0wrong");
    let said = format!("EHLO app.example\r\nAUTH PLAIN {wrong}\r\nMAIL FROM:<a@b.example>\r\n");
    stranger.get_mut().write_all(said.as_bytes()).unwrap();
    let mut line = String::new();
    while !line.starts_with("530") {
        line.clear();
        assert!(stranger.read_line(&mut line).unwrap() > 0);
    }
    for (line, count) in [
        ("outflow_submission_connections ", 2.0),
        ("outflow_submission_connections_total ", 2.0),
        ("outflow_submission_messages_total ", 2.0),
        ("outflow_submission_logins_total{result=\"known\"} ", 1.0),
        ("outflow_submission_logins_total{result=\"refused\"} ", 1.0),
        (
            "outflow_submission_refused_total{reply=\"535 5.7.8\"} ",
            1.0,
        ),
        (
            "outflow_submission_refused_total{reply=\"530 5.7.0\"} ",
            1.0,
        ),
    ] {
        assert_eq!(metric(&mut client, line), Some(count), "{line}");
    }
    drop((submitter, stranger));
    wait_for("both have left", || {
        let open = metric(&mut client, "outflow_submission_connections ");
        (open == Some(0.0)).then_some(())
    });
    server.stop();
}
