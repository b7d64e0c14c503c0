//! What a mail server says: replies within bounds, the same in whatever pieces
//! they come; and a client that gives each message one answer.

use std::sync::Arc;
use std::time::Duration;

use outflow_core::reply::{Reply, Stage};
use outflow_mail::{Address, Mail, Utf8};
use outflow_transport_smtp::client::offers::Offers;
use outflow_transport_smtp::client::reply::{Garbled, ReplyReader, SmtpReply};
use outflow_transport_smtp::client::{Client, ClientSettings, Output};
use outflow_transport_smtp::{Login, Timeouts, Tls};

pub fn run(bytes: &[u8]) {
    let whole = read(bytes, bytes.len());
    for piece in [1, 7] {
        assert_eq!(read(bytes, piece), whole, "in pieces of {piece}");
    }
    for tls in [Tls::None, Tls::Opportunistic] {
        for piece in [1, 7, bytes.len()] {
            talk(bytes, piece, tls);
        }
    }
}

/// All replies, and what ended them.
fn read(bytes: &[u8], piece: usize) -> (Vec<SmtpReply>, Option<Garbled>) {
    let mut reader = ReplyReader::default();
    let mut replies = Vec::new();
    for piece in bytes.chunks(piece.max(1)) {
        reader.push(piece);
        loop {
            match reader.next_reply() {
                Ok(None) => break,
                Ok(Some(reply)) => {
                    bounded(&reply);
                    replies.push(reply);
                }
                Err(garbled) => {
                    assert!(!garbled.to_string().chars().any(char::is_control));
                    return (replies, Some(garbled));
                }
            }
        }
    }
    (replies, None)
}

fn bounded(reply: &SmtpReply) {
    assert!((200..600).contains(&reply.code));
    assert!((1..=100).contains(&reply.lines().count()));
    // A byte that is no UTF-8 becomes a mark of three.
    assert!(reply.lines().map(str::len).sum::<usize>() <= 3 * 65_536);
    assert!(!reply.lines().any(|line| line.contains(char::is_control)));
    let _ = Offers::parse(reply.lines());
    if let Reply::Said { text, .. } = reply.said(Stage::Data) {
        assert!(text.len() <= 2_000, "{}", text.len());
    }
}

/// A client that sends mail as long as it may.
fn talk(bytes: &[u8], piece: usize, tls: Tls) {
    let mut client = Client::new(Arc::new(ClientSettings {
        helo: "client.example".to_owned(),
        tls,
        login: (tls == Tls::None).then(|| Login {
            user: "user".to_owned(),
            password: "secret".to_owned(),
        }),
        password_in_clear: true,
        chunking: true,
        timeouts: Timeouts::all(Duration::from_secs(1)),
    }));
    let mut sent = 0;
    for piece in bytes.chunks(piece.max(1)) {
        client.on_bytes(piece);
        if drain(&mut client, &mut sent) {
            break;
        }
    }
    client.on_closed("it is over");
    drain(&mut client, &mut sent);
    assert_eq!(sent, 0, "a message without an answer");
}

/// Does what the client wants, and sends when it can; whether it closed.
fn drain(client: &mut Client, sent: &mut usize) -> bool {
    let mut is_closed = false;
    // Some are refused before anything is sent.
    for mails_left in (0..4).rev() {
        while let Some(output) = client.next_output() {
            assert!(!is_closed, "{output:?} after the end");
            match output {
                Output::Write(_) | Output::Ready => {}
                Output::StartTls => client.on_tls(Ok(())),
                Output::Replied { .. } => {
                    assert_eq!(*sent, 1, "an answer to nothing");
                    *sent = 0;
                }
                Output::Failed(_) => assert_eq!(*sent, 0, "it was open"),
                Output::Close => is_closed = true,
            }
            client.on_written();
        }
        // Not idle: a message is under way, or none can be sent.
        if client.timeout().is_some() || mails_left == 0 {
            break;
        }
        client.deliver(mail());
        *sent = 1;
    }
    is_closed
}

fn mail() -> Mail {
    let address = |text| Address::parse(text).expect("an address");
    Mail {
        sender: Some(address("a@example.com")),
        recipient: address("b@example.org"),
        author_domain: "example.com".to_owned(),
        bytes: b"Subject: x\r\n\r\n.\r\n".to_vec(),
        utf8: Utf8::No,
        eight_bit: false,
    }
}
