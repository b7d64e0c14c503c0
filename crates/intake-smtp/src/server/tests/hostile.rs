//! What hostile clients say.

use super::super::{LINE_BYTES_MAX, feed};
use super::*;

#[test]
fn nothing_is_taken_without_a_token() {
    let envelope = "MAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.net>\r\nDATA\r\n";
    let says = format!("{envelope}EHLO me\r\n{envelope}HELO me\r\n{envelope}");
    let told = all_at_once(&says);
    assert_eq!(
        told.codes(),
        [220, 530, 503, 503, 250, 530, 503, 503, 250, 530, 503, 503]
    );
    assert!(told.replies.contains("530 5.7.0"));
    let wrong = "EHLO me\r\nAUTH PLAIN AHVzZXIAd3Jvbmc=\r\n";
    let told = all_at_once(&format!("{wrong}{envelope}"));
    assert_eq!(told.codes(), [220, 250, 535, 530, 503, 503]);
    assert!(told.replies.contains("535 5.7.8"));
    assert!(told.handed.is_empty());
}

#[test]
fn a_token_is_shown_three_times_at_most() {
    let wrong = "AUTH PLAIN AHVzZXIAd3Jvbmc=\r\n".repeat(10);
    let told = all_at_once(&format!("EHLO me\r\n{wrong}"));
    assert_eq!(told.codes(), [220, 250, 535, 535, 535]);
    assert!(told.is_closed && told.shown == 3);
}

#[test]
fn tokens_do_not_go_over_open_lines() {
    for can_tls in [true, false] {
        let open = Line {
            can_tls,
            is_trusted: false,
        };
        let says = format!("EHLO me\r\n{AUTH}AUTH LOGIN\r\nMAIL FROM:<a@example.com>\r\n");
        let told = told(small(), open, [says.as_bytes()]);
        assert_eq!(told.codes(), [220, 250, 538, 538, 530]);
        assert_eq!(told.shown, 0);
    }
}

#[test]
fn what_follows_starttls_in_the_open_ends_the_connection() {
    let line = Line {
        can_tls: true,
        is_trusted: true,
    };
    let injected = "STARTTLS\r\nEHLO evil\r\nMAIL FROM:<a@example.com>\r\n";
    let told = told(small(), line, [injected.as_bytes()]);
    assert_eq!(told.codes(), [554]);
    assert!(told.is_closed);
    // In a packet of its own, before the handshake.
    let mut session = Session::new(Arc::new(small()), line);
    session.on_bytes(b"EHLO me\r\nSTARTTLS\r\n");
    session.on_bytes(b"E");
    assert_eq!(session.next_output(), Some(Output::Close));
    // What was said before the handshake is forgotten.
    let says = [
        &b"EHLO me\r\n"[..],
        AUTH.as_bytes(),
        b"STARTTLS\r\n",
        b"MAIL FROM:<a@b.example>\r\n",
    ];
    let told = super::told(small(), line, says);
    assert_eq!(told.codes(), [220, 250, 235, 220, 530]);
}

#[test]
fn lines_are_bounded() {
    let long = "x".repeat(1 << 20);
    let told = all_at_once(&long);
    assert_eq!(told.codes(), [220, 500]);
    assert!(told.is_closed);
    let pieces = long.as_bytes().chunks(1).chain([&b"\r\nNOOP\r\n"[..]]);
    let dripped = super::told(small(), local(), pieces);
    assert_eq!(dripped, told);
    // A line without end that is short enough just waits.
    let waits = all_at_once(&"x".repeat(LINE_BYTES_MAX));
    assert!(!waits.is_closed && waits.codes() == [220]);
}

#[test]
fn garbage_is_counted() {
    let garbage = "\u{0}\u{1}\r\n".repeat(500);
    let told = all_at_once(&garbage);
    assert!(told.is_closed && told.last().starts_with("421 4.7.0"));
    assert_eq!(told.codes().len(), 1 + 21 + 1);
    let mut bytes: Vec<u8> =
        b"GET / HTTP/1.1\r\n\xff\xfe\r\nNOOP\nNOOP\r\r\nNOOP\rNOOP\r\n".to_vec();
    bytes.extend_from_slice(b"QUIT\r\n");
    let told = super::told(small(), local(), [&bytes[..]]);
    assert_eq!(told.codes(), [220, 500, 500, 500, 500, 500, 221]);
    let rules = Rules {
        commands_max: 10,
        ..small()
    };
    let noops = "NOOP\r\n".repeat(50);
    let told = super::told(rules, local(), [noops.as_bytes()]);
    assert_eq!(told.codes().len(), 1 + 10 + 1);
    assert!(told.is_closed && told.last().starts_with("421 4.7.0"));
}

#[test]
fn recipients_and_sizes_are_bounded() {
    let more = "RCPT TO:<c@example.net>\r\n".repeat(4);
    let told = all_at_once(&begun(&format!("{more}DATA\r\nx\r\n.\r\n")));
    assert_eq!(told.codes()[3..], [250, 250, 250, 250, 452, 452, 354, 250]);
    assert!(told.replies.contains("452 4.5.3"));
    assert_eq!(told.handed[0].recipients.len(), 3);
    let said = all_at_once(&format!(
        "EHLO me\r\n{AUTH}MAIL FROM:<a@b.example> SIZE=1001\r\n"
    ));
    assert!(said.last().starts_with("552 5.3.4"));
    let line = format!("{}\r\n", "y".repeat(70));
    let data = format!("DATA\r\n{}.\r\nNOOP\r\n", line.repeat(20));
    let sent = all_at_once(&begun(&data));
    assert_eq!(sent.codes()[5..], [354, 552, 250]);
    assert!(sent.handed.is_empty());
    // One that never ends is not heard out.
    let mut session = Session::new(Arc::new(small()), local());
    session.on_bytes(begun("").as_bytes());
    take(&mut session, &mut Told::default());
    session.on_bytes(b"MAIL FROM:<a@example.com>\r\nRCPT TO:<b@example.net>\r\nDATA\r\n");
    let mut told = Told::default();
    while !told.is_closed {
        session.on_bytes(line.as_bytes());
        assert!(session.held() < 4_096, "{}", session.held());
        take(&mut session, &mut told);
    }
    assert!(told.last().starts_with("552 5.3.4"));
}

#[test]
fn memory_that_runs_out_takes_the_message_with_it() {
    let mut session = Session::new(Arc::new(small()), local());
    let mut told = Told::default();
    session.on_bytes(begun("DATA\r\nsome of it\r\n").as_bytes());
    take(&mut session, &mut told);
    session.on_bytes(b"more\r\n");
    assert!(session.held() > 0);
    session.shed();
    assert_eq!(session.held(), 0);
    session.on_bytes(b"and more\r\n.\r\nNOOP\r\n");
    take(&mut session, &mut told);
    let codes = told.codes();
    assert_eq!(codes[codes.len() - 2..], [452, 250]);
    assert!(told.handed.is_empty());
}

#[test]
fn chunks_are_what_they_say() {
    // Out of turn, but its bytes are no commands.
    let early = format!("EHLO me\r\n{AUTH}BDAT 6\r\nQUIT\r\nNOOP\r\n");
    assert_eq!(all_at_once(&early).codes()[3..], [503, 250]);
    // Not worth reading.
    let cases = [
        "BDAT 2000 LAST\r\n",
        "BDAT 18446744073709551616 LAST\r\n",
        "BDAT 184467440737095516160\r\n",
        "BDAT -1\r\n",
        "BDAT\r\n",
        "BDAT 1 0 LAST\r\n",
        "BDAT 5 FIRST\r\n",
        "BDAT +5\r\n",
    ];
    for case in cases {
        let told = all_at_once(&begun(&format!("{case}RSET\r\n")));
        assert!(told.is_closed && told.handed.is_empty(), "{case}: {told:?}");
        assert!(told.last().starts_with('5'), "{case}: {told:?}");
    }
    let stranger = all_at_once("EHLO me\r\nBDAT 100\r\n");
    assert!(stranger.is_closed && stranger.last().starts_with("503"));
    // Too large in small pieces: refused, and so is what follows.
    let part = format!("BDAT 600\r\n{}", "z".repeat(600));
    let told = all_at_once(&begun(&format!("{part}{part}BDAT 1 LAST\r\nxNOOP\r\n")));
    assert_eq!(told.codes()[5..], [250, 552, 503, 250], "{told:?}");
    // DATA does not go with BDAT, nor RCPT behind it.
    let mixed = all_at_once(&begun(
        "BDAT 1\r\nxDATA\r\nRCPT TO:<d@example.net>\r\nBDAT 0 LAST\r\n",
    ));
    assert_eq!(mixed.codes()[5..], [250, 503, 503, 250]);
    assert_eq!(mixed.handed[0].bytes, b"x");
}

#[test]
fn addresses_are_addresses() {
    let said = |text: &str| all_at_once(&begun(text)).codes().last().copied();
    let wrong = [
        "RCPT TO:<b@example.net\u{1}>\r\n",
        "RCPT TO:<\"a b\"@example.net>\r\n",
        "RCPT TO:<b@[192.0.2.1]>\r\n",
        "RCPT TO:<b@-example.net>\r\n",
        "RCPT TO:<>\r\n",
        "RCPT TO:<postmaster>\r\n",
        "RCPT TO:b@example.net\r\n",
    ];
    for text in wrong {
        let code = said(text).unwrap();
        assert!((501..=553).contains(&code), "{text}: {code}");
    }
    assert_eq!(
        said("RCPT TO:<b@example.net> NOTIFY=SUCCESS\r\n"),
        Some(555)
    );
    assert_eq!(said("RCPT TO:<b@example.net> FOO=BAR\r\n"), Some(555));
    assert_eq!(
        said("RSET\r\nMAIL FROM:<a@b.example> BODY=BINARYMIME\r\n"),
        Some(555)
    );
}

#[test]
fn whatever_comes_is_borne() {
    // Parts of sessions, put together by lot, and cut off anywhere.
    let parts: [&[u8]; 16] = [
        b"EHLO me\r\n",
        AUTH.as_bytes(),
        b"MAIL FROM:<a@b.example>\r\n",
        b"RCPT TO:<c@d.example>\r\n",
        b"DATA\r\n",
        b".\r\n",
        b"\r\n.\r\n",
        b"\n.\n",
        b"BDAT 3\r\nabc",
        b"BDAT 0 LAST\r\n",
        b"RSET\r\n",
        b"STARTTLS\r\n",
        b"AUTH LOGIN\r\n",
        b"*\r\n",
        b"\xff\r\n",
        b"MAIL FROM:<",
    ];
    let mut lot: u64 = 1;
    for round in 0..20_000 {
        let mut bytes = Vec::new();
        for _ in 0..12 {
            lot = lot
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            bytes.extend_from_slice(parts[(lot >> 60) as usize]);
        }
        feed(&bytes, 1 + round % 9);
    }
}
