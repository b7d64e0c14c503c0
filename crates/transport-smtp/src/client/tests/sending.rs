//! Messages, and what becomes of them.

use outflow_core::reply::{Enhanced, Reply, Stage};
use outflow_mail::Utf8;

use super::super::transaction::dotted;
use super::super::{Output, Tls};
use super::{PIPELINING, PLAIN, Talk, mail, network, settings};

#[test]
fn a_dialogue_may_be_split_at_any_byte() {
    let replies = [
        "220-mx.example\r\n220 ready\r\n",
        "250-mx.example hi\r\n250-SIZE\r\n250-AUTH=LOGIN\r\n250 8BITMIME\r\n",
        "250 2.1.0 Ok\r\n",
        "250 2.1.5 Ok\r\n",
        "354 go\r\n",
        "250 2.0.0 Ok: queued as 4711\r\n",
    ];
    let expected = "EHLO client.example\r\nMAIL FROM:<a@example.com> SIZE=30\r\n\
                    RCPT TO:<b@example.org>\r\nDATA\r\nSubject: x\r\n\r\n..\r\n..dot\r\nend\r\n\
                    \r\n.\r\n";
    let longest = replies.iter().map(|reply| reply.len()).max().unwrap();
    for at in 0..longest {
        let mut talk = Talk::new(settings(Tls::None));
        for (no, reply) in replies.iter().enumerate() {
            if no == 2 {
                assert_eq!(talk.others.pop(), Some(Output::Ready));
                talk.send(mail(".\r\n.dot\r\nend\r\n"));
            }
            let (first, second) = reply.split_at(at.min(reply.len()));
            talk.hear(first);
            talk.hear(second);
        }
        assert_eq!(talk.written, expected, "split at {at}");
        let (reply, lives) = talk.replied();
        assert!(reply.is_accepted() && lives, "{reply:?}");
        let expected = Reply::said(Stage::Data, 250, "2.0.0 Ok: queued as 4711");
        assert_eq!(reply, expected);
    }
}

#[test]
fn commands_go_together_where_that_is_offered() {
    let mut talk = Talk::ready(PIPELINING);
    talk.send(mail("hello"));
    let commands = "MAIL FROM:<a@example.com> SIZE=21\r\nRCPT TO:<b@example.org>\r\nDATA\r\n";
    assert_eq!(talk.written, commands);
    talk.hear("250 Ok\r\n250 Ok\r\n354 go\r\n");
    assert!(
        talk.written
            .ends_with("DATA\r\nSubject: x\r\n\r\nhello\r\n.\r\n")
    );
    talk.hear("250 Ok\r\n");
    assert!(talk.replied().0.is_accepted());
    talk.written.clear();
    talk.send(mail("again"));
    assert!(
        talk.written.starts_with("MAIL FROM"),
        "no RSET after a success"
    );
}

#[test]
fn a_small_message_goes_along_in_a_chunk() {
    let ehlo = "250-mx\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250 CHUNKING\r\n";
    let mut talk = Talk::ready(ehlo);
    let mut utf8 = mail(".dot ü");
    (utf8.utf8, utf8.eight_bit) = (Utf8::Required, true);
    talk.send(utf8);
    let expected = "MAIL FROM:<a@example.com> BODY=8BITMIME SMTPUTF8\r\n\
                    RCPT TO:<b@example.org>\r\nBDAT 23 LAST\r\nSubject: x\r\n\r\n.dot ü\r\n";
    assert_eq!(talk.written, expected, "and dots are not stuffed");
    talk.client.on_closed("gone");
    talk.drain();
    assert_eq!(talk.replied().0, Reply::Uncertain, "it may have been taken");
    let mut talk = Talk::ready(ehlo);
    talk.send(mail("hello"));
    talk.hear("250 Ok\r\n550 5.1.1 nobody\r\n503 no recipients\r\n");
    let (reply, lives) = talk.replied();
    assert_eq!(reply, Reply::said(Stage::Recipient, 550, "5.1.1 nobody"));
    assert!(lives);
    let mut talk = Talk::ready(ehlo);
    talk.send(mail(&"x".repeat(100_000)));
    assert!(
        talk.written.ends_with("RCPT TO:<b@example.org>\r\n"),
        "a large one waits"
    );
    talk.hear("250 Ok\r\n250 Ok\r\n");
    assert!(talk.written.contains("BDAT 100016 LAST\r\n"));
}

#[test]
fn a_refusal_says_where_and_the_session_goes_on() {
    let cases = [
        ("450 4.1.8 no\r\n503 x\r\n503 x\r\n", Stage::Sender, 450),
        ("250 Ok\r\n550 no\r\n503 x\r\n", Stage::Recipient, 550),
        ("250 Ok\r\n250 Ok\r\n452 no\r\n", Stage::Data, 452),
        (
            "250 Ok\r\n250 Ok\r\n354 go\r\n554 spam\r\n",
            Stage::Data,
            554,
        ),
    ];
    for (said, at, expected) in cases {
        let mut talk = Talk::ready(PIPELINING);
        talk.send(mail("hello"));
        said.split_inclusive('\n').for_each(|line| talk.hear(line));
        let (reply, lives) = talk.replied();
        assert!(lives, "{said}");
        assert!(
            matches!(reply, Reply::Said { stage, code, .. } if stage == at && code == expected)
        );
        talk.written.clear();
        talk.send(mail("next"));
        assert!(
            talk.written.starts_with("RSET\r\nMAIL FROM"),
            "{}",
            talk.written
        );
        talk.hear("250 Ok\r\n250 Ok\r\n250 Ok\r\n354 go\r\n");
        talk.hear("250 Ok\r\n");
        assert!(talk.replied().0.is_accepted());
    }
}

#[test]
fn permission_after_a_refusal_gets_an_empty_message() {
    let mut talk = Talk::ready(PIPELINING);
    talk.send(mail("secret"));
    talk.hear("250 Ok\r\n550 no\r\n354 go\r\n");
    assert!(talk.written.ends_with("DATA\r\n.\r\n"), "{}", talk.written);
    talk.hear("250 Ok\r\n");
    let (reply, lives) = talk.replied();
    assert_eq!(reply, Reply::said(Stage::Recipient, 550, "no"));
    assert!(lives);
}

#[test]
fn after_421_the_session_is_over() {
    for (said, stage) in [
        ("421 4.7.0 bye\r\n", Stage::Sender),
        ("250 Ok\r\n421 4.7.0 bye\r\n", Stage::Recipient),
        ("250 Ok\r\n250 Ok\r\n421 4.7.0 bye\r\n", Stage::Data),
        (
            "250 Ok\r\n250 Ok\r\n354 go\r\n421 4.7.0 bye\r\n",
            Stage::Data,
        ),
    ] {
        let mut talk = Talk::ready(PIPELINING);
        talk.send(mail("hello"));
        for line in said.split_inclusive('\n') {
            talk.hear(line);
        }
        let (reply, lives) = talk.replied();
        assert_eq!(reply, Reply::said(stage, 421, "4.7.0 bye"));
        assert!(!lives);
    }
    let mut talk = Talk::ready(PLAIN);
    talk.hear("421 idle too long\r\n");
    assert_eq!(talk.others, [Output::Close]);
}

#[test]
fn a_lost_connection_is_uncertain_only_after_the_last_byte() {
    let steps = ["", "250 Ok\r\n", "250 Ok\r\n"];
    let stages = [Stage::Sender, Stage::Recipient, Stage::Data];
    for count in 1..=3 {
        let mut talk = Talk::ready(PLAIN);
        talk.send(mail("hello"));
        steps.iter().take(count).for_each(|said| talk.hear(said));
        talk.client.on_closed("reset by peer");
        talk.drain();
        let (reply, _) = talk.replied();
        assert_eq!(reply, network(stages[count - 1], "reset by peer"));
    }
    for is_written in [false, true] {
        let mut talk = Talk::ready(PLAIN);
        talk.send(mail("hello"));
        talk.hear("250 Ok\r\n");
        talk.hear("250 Ok\r\n");
        talk.client.on_bytes(b"354 go\r\n");
        talk.drain_unwritten();
        if is_written {
            talk.client.on_written();
        }
        talk.client.on_timeout();
        talk.drain();
        let expected = match is_written {
            true => Reply::Uncertain,
            false => network(Stage::Data, "timed out"),
        };
        assert_eq!(talk.replied().0, expected);
    }
}

#[test]
fn a_verdict_before_the_end_ends_the_session() {
    for (said, expected) in [
        (
            "552 5.3.4 too big\r\n",
            Reply::said(Stage::Data, 552, "5.3.4 too big"),
        ),
        (
            "250 Ok\r\n",
            network(Stage::Data, "the server answered before the end"),
        ),
    ] {
        let mut talk = Talk::ready(PIPELINING);
        talk.send(mail("hello"));
        talk.client.on_bytes(b"250 Ok\r\n250 Ok\r\n354 go\r\n");
        talk.client.on_bytes(said.as_bytes());
        talk.drain();
        assert_eq!(talk.replied(), (expected, false));
    }
}

#[test]
fn nonsense_after_the_last_byte_is_uncertain() {
    for said in [
        "hello\r\n",
        "334 what\r\n",
        "250-Ok\r\n550 no\r\n",
        "450-later\r\n550 never\r\n",
        "250-Ok\r\nwhat\r\n",
        "999 x\r\n",
    ] {
        let mut talk = Talk::ready(PIPELINING);
        talk.send(mail("hello"));
        talk.hear("250 Ok\r\n250 Ok\r\n354 go\r\n");
        talk.hear(said);
        assert_eq!(talk.replied(), (Reply::Uncertain, false), "{said:?}");
    }
}

#[test]
fn surplus_text_of_a_verdict_is_dropped() {
    let long = |last: &str| {
        let mut said: String = (0..9_999).map(|no| format!("250-line {no}\r\n")).collect();
        said += last;
        said
    };
    for (said, lines) in [
        (long("250 end\r\n"), 100),
        (long("251 end\r\n"), 100),
        (format!("250-{}\r\n250 end\r\n", "x".repeat(1_000_000)), 1),
    ] {
        let mut talk = Talk::ready(PIPELINING);
        talk.send(mail("hello"));
        talk.hear("250 Ok\r\n250 Ok\r\n354 go\r\n");
        for piece in said.as_bytes().chunks(1_000) {
            talk.hear(std::str::from_utf8(piece).unwrap());
        }
        let (reply, lives) = talk.replied();
        let Reply::Said { code, text, .. } = &reply else {
            panic!("{reply:?}");
        };
        assert!(lives && *code == 250 && text.lines().count() <= lines);
        talk.send(mail("next"));
        talk.hear("250 Ok\r\n250 Ok\r\n354 go\r\n");
        talk.hear("250 2.0.0 Ok\r\n");
        assert!(talk.replied().0.is_accepted());
    }
}

#[test]
fn a_verdict_that_has_begun_outlives_the_connection() {
    for (said, expected) in [
        ("250-taken\r\n", Some(250)),
        ("250-taken\r\n250", Some(250)),
        ("250-taken\r\n2", Some(250)),
        ("250 tak", Some(250)),
        ("550-no\r\n", Some(550)),
        ("421-bye\r\n", Some(421)),
        ("", None),
        ("250", None),
        ("2", None),
        ("354-more\r\n", None),
        ("250-taken\r\n5", None),
    ] {
        for is_timeout in [false, true] {
            let mut talk = Talk::ready(PIPELINING);
            talk.send(mail("hello"));
            talk.hear("250 Ok\r\n250 Ok\r\n354 go\r\n");
            talk.hear(said);
            match is_timeout {
                true => talk.client.on_timeout(),
                false => talk.client.on_closed("reset by peer"),
            }
            talk.drain();
            let (reply, lives) = talk.replied();
            assert!(!lives);
            match (&reply, expected) {
                (Reply::Said { stage, code, .. }, Some(expected)) => {
                    assert_eq!((*stage, *code), (Stage::Data, expected), "{said:?}");
                }
                (Reply::Uncertain, None) => {}
                _ => panic!("{said:?}: {reply:?}"),
            }
        }
    }
}

#[test]
fn what_the_server_cannot_take_is_not_sent() {
    let mut talk = Talk::ready(PIPELINING);
    talk.send(mail(&"x".repeat(1_000)));
    let (reply, lives) = talk.replied();
    assert!(matches!(
        reply,
        Reply::Said {
            stage: Stage::Sender,
            code: 552,
            enhanced: Some(Enhanced(5, 3, 4)),
            ..
        }
    ));
    assert!(lives && talk.written.is_empty());
    let mut utf8 = mail("x");
    utf8.utf8 = Utf8::Required;
    talk.send(utf8);
    let (reply, _) = talk.replied();
    assert!(matches!(
        reply,
        Reply::Said {
            code: 553,
            enhanced: Some(Enhanced(5, 6, 7)),
            ..
        }
    ));
    let mut wanted = mail("x");
    wanted.utf8 = Utf8::Wanted;
    talk.send(wanted);
    assert!(
        talk.written
            .starts_with("MAIL FROM:<a@example.com> SIZE=17\r\n")
    );
}

#[test]
fn dots_are_stuffed() {
    for (bytes, wire) in [
        ("", "\r\n.\r\n"),
        ("a", "a\r\n.\r\n"),
        (".\r\n", "..\r\n.\r\n"),
        ("a\r\n.b\r\n..\r\n", "a\r\n..b\r\n...\r\n.\r\n"),
        ("a.b\r\n", "a.b\r\n.\r\n"),
    ] {
        assert_eq!(dotted(bytes.as_bytes()), wire.as_bytes(), "{bytes:?}");
    }
}
