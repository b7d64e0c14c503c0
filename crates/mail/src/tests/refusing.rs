//! What must not get in does not get in.

use outflow_ports::letter::Unsubscribe as Said;

use super::letters::{content, envelope, file, raw};
use crate::address::{Address, Mailbox};
use crate::compose::{Can, ComposeError, compose};
use crate::header::{HeaderName, HeaderValue};
use crate::unsubscribe::Unsubscribe;

const ANY: Can = Can { eight_bit: true };

#[test]
fn no_command_can_be_put_into_an_address() {
    for text in [
        "a@b.example\r\nDATA",
        "a@b.example\nRSET",
        "a@b.example> SIZE=1",
        "a@b.example SIZE=1",
        "<a@b.example>",
        "\"a b\"@b.example",
        "\"a>b\"@b.example",
        "a\0@b.example",
        "a\u{a0}b@b.example",
        "a@b.example\u{2028}",
        "@b.example",
        "a@",
        "a@-b.example",
        "a@[1.2.3]",
        "a@[1.2.3.4] x",
        "a..b@c.example",
        "",
    ] {
        assert!(Address::parse(text).is_err(), "{text:?}");
        let named = Mailbox::parse(&format!("Name <{text}>"));
        assert!(named.is_err(), "{text:?}");
    }
    for text in [
        "a\r\nBcc: x@y.example <a@b.example>",
        "a<b <a@b.example>",
        "x\" <a@b.example>",
    ] {
        assert!(Mailbox::parse(text).is_err(), "{text:?}");
    }
    for text in [
        "a@[192.0.2.1]",
        "a@[IPv6:2001:db8::1]",
        "\"a..b\"@c.example",
        "ü@ü.example",
    ] {
        assert!(Address::parse(text).is_ok(), "{text:?}");
    }
}

#[test]
fn no_field_can_be_put_into_another() {
    for value in ["a\r\nBcc: x", "a\nb", "a\rb", "a\0b", "\u{85}"] {
        assert!(HeaderValue::new(value).is_err(), "{value:?}");
        let mut letter = content(value, "text");
        let subject = compose(&envelope("a@b.example"), &letter, ANY);
        assert!(matches!(subject, Err(ComposeError::Field(..))), "{value:?}");
        letter = content("fine", "text");
        letter.headers.insert("X-Own".to_owned(), value.to_owned());
        let own = compose(&envelope("a@b.example"), &letter, ANY);
        assert!(matches!(own, Err(ComposeError::Field(..))), "{value:?}");
        let mut letter = content("fine", "text");
        letter.attachments = vec![file(value, "image/png", b"x")];
        let named = compose(&envelope("a@b.example"), &letter, ANY);
        assert!(
            matches!(named, Err(ComposeError::Attachment(0, _))),
            "{value:?}"
        );
    }
    for name in ["", "A B", "A:", "Ä", "A\r\nB", &"a".repeat(77)] {
        assert!(HeaderName::new(name).is_err(), "{name:?}");
    }
    for name in ["Bcc", "content-type", "MESSAGE-ID"] {
        let mut letter = content("fine", "text");
        letter.headers.insert(name.to_owned(), "x".to_owned());
        let own = compose(&envelope("a@b.example"), &letter, ANY);
        assert!(matches!(own, Err(ComposeError::Reserved(_))), "{name}");
    }
    let mut letter = content("fine", "text");
    letter.message_id = "<a@b>\r\nX: y".to_owned();
    let own = compose(&envelope("a@b.example"), &letter, ANY);
    assert_eq!(own, Err(ComposeError::MessageId));
}

#[test]
fn a_line_that_nothing_can_break_is_refused() {
    let letter = raw(format!("X-Long: {}\r\n\r\nbody\r\n", "x".repeat(2_000)).as_bytes());
    let long = compose(&envelope("a@b.example"), &letter, ANY);
    assert_eq!(long, Err(ComposeError::LongLine(2_008)));
    let mut letter = content("fine", "text");
    letter
        .headers
        .insert("X-Long".to_owned(), "x".repeat(5_000));
    let mail = compose(&envelope("a@b.example"), &letter, ANY).unwrap();
    assert!(
        mail.bytes
            .split(|byte| *byte == b'\n')
            .all(|line| line.len() < 100)
    );
}

#[test]
fn nul_is_not_on_the_wire() {
    let letter = content("fine", "a\0b\u{7}c\n");
    let mail = compose(&envelope("a@b.example"), &letter, ANY).unwrap();
    assert!(!mail.bytes.contains(&0));
    let letter = raw(b"Subject: x\r\n\r\na\0b\r\n");
    let mail = compose(&envelope("a@b.example"), &letter, ANY).unwrap();
    assert!(
        !mail.bytes.contains(&0),
        "{:?}",
        String::from_utf8_lossy(&mail.bytes)
    );
}

#[test]
fn leaving_a_list_is_said_right_or_not_at_all() {
    let said = |url: Option<&str>, mailto: Option<&str>, one_click| {
        Unsubscribe::new(&Said {
            url: url.map(str::to_owned),
            mailto: mailto.map(str::to_owned),
            one_click,
        })
    };
    assert!(said(Some("https://example.com/u"), None, true).is_ok());
    assert!(said(None, Some("mailto:u@example.com"), false).is_ok());
    for wrong in [
        said(None, None, false),
        said(None, Some("u@example.com"), true),
        said(Some("http://example.com/u"), None, true),
        said(Some("https://example.com/>\r\nX: y"), None, false),
        said(Some("https://example.com/>, <x"), None, false),
        said(None, Some("u@example.com?subject=a,b"), false),
        said(None, Some("nobody"), false),
    ] {
        assert!(wrong.is_err(), "{wrong:?}");
    }
}

#[test]
fn what_was_stored_before_it_was_refused_is_refused_when_it_is_sent() {
    let deep = "Content-Type: message/rfc822\r\n\r\n".repeat(60_000);
    let mail = format!("From: a@b.example\r\n{deep}");
    let composed = compose(&envelope("a@b.example"), &raw(mail.as_bytes()), ANY);
    assert_eq!(composed.unwrap_err(), ComposeError::TooDeep);
}
