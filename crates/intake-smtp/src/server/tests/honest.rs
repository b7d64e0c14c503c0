//! What honest clients say.

use super::super::login::Step;
use super::super::reply::Reply;
use super::*;

/// All there is, pipelined.
fn whole() -> String {
    format!(
        "EHLO me.example\r\n{AUTH}\
         MAIL FROM:<a@example.com> SIZE=100 BODY=8BITMIME\r\nRCPT TO:<b@example.net>\r\n\
         RCPT TO:<c@example.net>\r\nDATA\r\nSubject: x\r\n\r\n..dot\r\n...\r\nb\u{fc}cher\r\n.\r\n\
         NOOP\r\nMAIL FROM:<> SMTPUTF8\r\nRCPT TO:<j\u{fc}rgen@b\u{fc}cher.example>\r\n\
         BDAT 14\r\nSubject: y\r\n\r\nBDAT 8 LAST\r\n\n.\n\r\n.\r\n\
         RSET\r\nMAIL FROM:<a@example.com>\r\nRCPT TO:<nobody>\r\nRSET\r\nQUIT\r\n"
    )
}

#[test]
fn a_session_is_the_same_wherever_it_is_split() {
    let text = whole();
    let bytes = text.as_bytes();
    let once = all_at_once(&text);
    assert_eq!(
        once.codes(),
        [
            220, 250, 235, 250, 250, 250, 354, 250, 250, 250, 250, 250, 250, 250, 250, 501, 250,
            221
        ],
        "{}",
        once.replies
    );
    assert!(once.is_closed);
    let [first, second] = &once.handed[..] else {
        panic!("{once:?}");
    };
    assert_eq!(
        first.bytes,
        "Subject: x\r\n\r\n.dot\r\n..\r\nb\u{fc}cher\r\n".as_bytes()
    );
    assert_eq!(first.recipients.len(), 2);
    assert_eq!(second.bytes, b"Subject: y\r\n\r\n\n.\n\r\n.\r\n");
    assert_eq!(second.sender, None);
    assert_eq!(
        second.recipients[0].as_str(),
        "j\u{fc}rgen@xn--bcher-kva.example"
    );
    for at in 0..=bytes.len() {
        let (left, right) = bytes.split_at(at);
        assert_eq!(told(small(), local(), [left, right]), once, "split at {at}");
    }
    assert_eq!(told(small(), local(), bytes.chunks(1)), once);
    assert_eq!(told(small(), local(), bytes.chunks(7)), once);
}

#[test]
fn the_offers_are_what_is_possible() {
    let open = Line {
        can_tls: true,
        is_trusted: false,
    };
    let before = told(small(), open, [&b"EHLO me\r\n"[..]]);
    assert!(before.replies.contains("250-STARTTLS") && !before.replies.contains("AUTH"));
    for offer in [
        "PIPELINING",
        "SIZE 1000",
        "8BITMIME",
        "SMTPUTF8",
        "CHUNKING",
    ] {
        assert!(before.replies.contains(offer), "{offer}");
    }
    let says = ["EHLO me\r\n", "STARTTLS\r\n", "EHLO me\r\n", AUTH];
    let after = told(small(), open, says.map(str::as_bytes));
    assert_eq!(after.codes(), [220, 250, 220, 250, 235]);
    let inside = after.replies.rsplit("220 2.0.0").next().unwrap();
    assert!(inside.contains("AUTH PLAIN LOGIN") && !inside.contains("STARTTLS"));
}

#[test]
fn tokens_are_shown_by_every_way() {
    let ways = [
        AUTH.to_owned(),
        "AUTH PLAIN\r\nAHVzZXIAdG9rZW4=\r\n".to_owned(),
        "AUTH LOGIN\r\ndXNlcg==\r\ndG9rZW4=\r\n".to_owned(),
        "AUTH LOGIN dXNlcg==\r\ndG9rZW4=\r\n".to_owned(),
        "auth login =\r\ndG9rZW4=\r\n".to_owned(),
    ];
    for way in ways {
        let told = all_at_once(&format!("EHLO me\r\n{way}AUTH PLAIN x\r\n"));
        let codes = told.codes();
        assert_eq!(codes[codes.len() - 2..], [235, 503], "{way}: {codes:?}");
    }
    assert_eq!(Step::User.question(), b"334 VXNlcm5hbWU6\r\n");
}

#[test]
fn what_the_outside_says_is_passed_on() {
    let mut session = Session::new(Arc::new(small()), local());
    let mut told = Told::default();
    session.on_bytes(format!("EHLO me\r\n{AUTH}").as_bytes());
    take(&mut session, &mut told);
    for (code, status) in [(452, "4.3.1"), (451, "4.3.0"), (550, "5.7.1")] {
        session.on_bytes(
            b"MAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.net>\r\nDATA\r\nx\r\n.\r\nNOOP\r\n",
        );
        let Some(Output::Deliver(_)) = session.next_output() else {
            panic!("nothing to deliver");
        };
        session.replies().clear();
        // What was sent behind it waits for the answer.
        session.on_bytes(b"NOOP\r\n");
        assert!(session.replies().is_empty());
        session.on_stored(Err(Reply::new(code, status, "so\r\n250 it")));
        let replies = String::from_utf8(session.replies().clone()).unwrap();
        let expected = format!("{code} {status} so  250 it\r\n250 2.0.0 Ok\r\n250 2.0.0 Ok\r\n");
        assert_eq!(replies, expected);
        session.replies().clear();
    }
}

#[test]
fn overload_is_said_before_the_data() {
    let mut session = Session::new(Arc::new(small()), local());
    session.on_bytes(format!("EHLO me\r\n{AUTH}").as_bytes());
    take(&mut session, &mut Told::default());
    let envelope = b"MAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.net>\r\n";
    let mut says = |is_overloaded: bool, text: &[u8]| {
        session.set_overloaded(is_overloaded);
        let mut told = Told::default();
        session.on_bytes(text);
        take(&mut session, &mut told);
        told
    };
    assert!(
        says(true, b"MAIL FROM:<a@example.com>\r\n")
            .last()
            .starts_with("452 4.3.1")
    );
    says(false, envelope);
    assert!(says(true, b"DATA\r\n").last().starts_with("452 4.3.1"));
    says(false, envelope);
    let chunk = says(true, b"BDAT 3 LAST\r\nabcNOOP\r\n");
    assert_eq!(chunk.codes(), [452, 250]);
    assert!(chunk.handed.is_empty());
    assert_eq!(says(false, envelope).codes(), [250, 250]);
}

#[test]
fn shutdown_lets_a_message_finish() {
    let start = |text: &str| {
        let mut session = Session::new(Arc::new(small()), local());
        let mut told = Told::default();
        session.on_bytes(text.as_bytes());
        take(&mut session, &mut told);
        session.on_closing();
        take(&mut session, &mut told);
        (session, told)
    };
    let (_, idle) = start(&begun(""));
    assert!(idle.is_closed && idle.last().starts_with("421 4.3.2"));
    for text in ["DATA\r\nhalf", "BDAT 6 LAST\r\nabc"] {
        let (mut session, mut busy) = start(&begun(text));
        assert!(!busy.is_closed, "{busy:?}");
        session.on_bytes(b"abc\r\n.\r\nNOOP\r\n");
        take(&mut session, &mut busy);
        assert_eq!(busy.handed.len(), 1);
        let codes = busy.codes();
        assert_eq!(codes[codes.len() - 2..], [250, 421]);
        assert!(busy.is_closed);
    }
    let mut late = Session::new(Arc::new(small()), local());
    let mut told = Told::default();
    late.on_timeout();
    take(&mut late, &mut told);
    assert!(told.is_closed && told.last().starts_with("421 4.4.2"));
}
