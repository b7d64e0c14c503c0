//! What was composed is parsed back by another parser's eyes.

use mail_parser::{MessageParser, MimeHeaders};

use super::letters::{self, Letter, bytes, letters};
use crate::compose::{Can, Mail, Utf8, compose};

const ANY: Can = Can { eight_bit: true };
const SEVEN: Can = Can { eight_bit: false };

fn made(letter: &Letter, can: Can) -> Mail {
    compose(&letter.envelope, &letter.content, can)
        .unwrap_or_else(|wrong| panic!("{}: {wrong}", letter.name))
}

fn find(name: &str) -> Letter {
    let found = letters().into_iter().find(|letter| letter.name == name);
    found.unwrap_or_else(|| panic!("no letter is called {name}"))
}

/// The text as it is meant: line ends aside.
fn unix(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

#[test]
fn every_line_is_fit_for_the_wire() {
    for letter in letters() {
        for can in [ANY, SEVEN] {
            let mail = made(&letter, can);
            let name = letter.name;
            assert!(mail.bytes.ends_with(b"\r\n"), "{name}");
            let text = &mail.bytes[..mail.bytes.len() - 2];
            for line in text.split(|byte| *byte == b'\n') {
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                assert!(line.len() <= 998, "{name}: {} octets", line.len());
                assert!(!line.contains(&b'\r') && !line.contains(&0), "{name}");
            }
            let ends = text.iter().filter(|byte| **byte == b'\n').count();
            let pairs = text.windows(2).filter(|pair| pair == b"\r\n").count();
            assert_eq!(ends, pairs, "{name}: a bare LF");
            assert_eq!(mail.eight_bit, !mail.bytes.is_ascii(), "{name}");
            if can == SEVEN && mail.utf8 == Utf8::No {
                assert!(!mail.eight_bit, "{name}");
            }
        }
    }
}

#[test]
fn what_was_written_is_read() {
    for letter in letters().iter().filter(|it| it.content.raw.is_none()) {
        let (name, content) = (letter.name, &letter.content);
        let mail = made(letter, SEVEN);
        let message = MessageParser::default().parse(&mail.bytes).unwrap();
        assert_eq!(message.message_id(), Some("1.2.3@example.com"), "{name}");
        assert_eq!(
            message.date().unwrap().to_timestamp(),
            content.date,
            "{name}"
        );
        assert_eq!(message.subject(), content.subject.as_deref(), "{name}");
        let from = message.from().unwrap().first().unwrap();
        assert_eq!(from.name(), Some("A Sender"), "{name}");
        assert_eq!(from.address(), Some("sender@example.com"), "{name}");
        assert_eq!(
            message.to().unwrap().iter().count(),
            content.to.len(),
            "{name}"
        );
        let text = message.body_text(0).unwrap();
        let meant = unix(content.text.as_deref().unwrap());
        assert_eq!(unix(&text).trim_end(), meant.trim_end(), "{name}");
        assert_eq!(
            message.attachment_count(),
            content.attachments.len(),
            "{name}"
        );
        for (field, value) in &content.headers {
            let read = message.header(field.as_str()).unwrap().as_text().unwrap();
            let unfolded = read.replace("\r\n", "");
            assert_eq!(unfolded.trim(), value.trim(), "{name}");
        }
    }
}

#[test]
fn files_and_images_are_where_they_belong() {
    let mail = made(&find("html, image and file"), ANY);
    let message = MessageParser::default().parse(&mail.bytes).unwrap();
    let kinds: Vec<String> = message
        .parts
        .iter()
        .map(|part| {
            let kind = part.content_type().unwrap();
            format!("{}/{}", kind.ctype(), kind.subtype().unwrap())
        })
        .collect();
    let expected = [
        "multipart/mixed",
        "multipart/alternative",
        "text/plain",
        "multipart/related",
        "text/html",
        "image/png",
        "application/pdf",
    ];
    assert_eq!(kinds, expected);
    let image = &message.parts[5];
    assert_eq!(image.content_id(), Some("logo@example.com"));
    assert!(image.content_disposition().unwrap().is_inline());
    assert_eq!(image.contents(), bytes(300));
    let file = &message.parts[6];
    assert_eq!(file.attachment_name(), Some("Übersicht 2026.pdf"));
    let large = made(&find("1 MB attachment"), ANY);
    let message = MessageParser::default().parse(&large.bytes).unwrap();
    let file = message.attachments().next().unwrap();
    assert_eq!(file.contents(), bytes(1 << 20));
}

#[test]
fn names_and_scripts_survive() {
    let mail = made(&find("60 names"), ANY);
    let message = MessageParser::default().parse(&mail.bytes).unwrap();
    let last = message.to().unwrap().last().unwrap();
    assert_eq!(last.name(), Some("Größe, Nr. 59"));
    assert_eq!(last.address(), Some("user59@example.org"));
    assert_eq!(mail.utf8, Utf8::No, "names are encoded words");
    let idn = made(&find("idn domain"), ANY);
    assert_eq!(idn.recipient.as_str(), "info@xn--bcher-kva.example");
    assert_eq!(idn.utf8, Utf8::No, "a domain has an ASCII form");
    let local = made(&find("idn recipient"), ANY);
    assert_eq!(local.recipient.as_str(), "jürgen@xn--bcher-kva.example");
    assert_eq!(local.utf8, Utf8::Required);
}

#[test]
fn leaving_the_list_takes_one_click() {
    let mail = made(&find("30 headers"), ANY);
    let text = String::from_utf8(mail.bytes).unwrap().replace("\r\n ", " ");
    let list = "List-Unsubscribe: <https://example.com/leave?id=1>, \
                <mailto:leave@example.com?subject=leave>\r\n";
    assert!(text.contains(list), "{text}");
    assert!(text.contains("List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"));
}

#[test]
fn a_whole_message_is_changed_only_where_it_must_be() {
    let nested = find("nested raw");
    let mail = made(&nested, ANY);
    let text = String::from_utf8(mail.bytes.clone()).unwrap();
    assert!(
        !text.contains("secret@example.net"),
        "Bcc is nobody's business"
    );
    assert!(
        text.contains("Message-ID: <1.2.3@example.com>\r\n"),
        "{text}"
    );
    assert!(
        text.contains("Date: Thu, 9 Oct 2025 08:53:20 +0000\r\n"),
        "{text}"
    );
    assert!(
        text.contains("Grüße\r\n.\r\n..two dots\r\n--inner"),
        "{text}"
    );
    assert!(mail.eight_bit);
    assert_eq!(mail.utf8, Utf8::No);
    assert_eq!(mail.author_domain, "example.com");
    for can in [ANY, SEVEN] {
        let mail = made(&nested, can);
        let message = MessageParser::default().parse(&mail.bytes).unwrap();
        assert_eq!(
            message.body_text(0).unwrap().trim_end(),
            "Grüße\r\n.\r\n..two dots"
        );
        let html = format!("<p>{}</p>", "0123456789".repeat(500));
        assert_eq!(message.body_html(0).unwrap().trim_end(), html);
        let file = message.attachments().next().unwrap();
        assert_eq!(file.contents(), [0, 1, 2, 3, 4, 5]);
    }
    let loose = made(&find("raw with bare ends"), ANY);
    assert!(loose.bytes.ends_with(b"\r\n\r\none\r\n.\r\ntwo\r\n"));
}

#[test]
fn a_body_without_an_empty_line_before_it_stays_a_body() {
    let content = letters::raw(b"Subject: x\r\nthis is no field\r\nBcc: y\r\n");
    let mail = compose(&letters::envelope("a@example.org"), &content, ANY).unwrap();
    assert!(
        mail.bytes
            .ends_with(b"\r\n\r\nthis is no field\r\nBcc: y\r\n")
    );
    let mbox = letters::raw(b"From x Mon Jan 1\nSubject: x\n\nbody\n");
    let mail = compose(&letters::envelope("a@example.org"), &mbox, ANY).unwrap();
    assert!(mail.bytes.starts_with(b"Subject: x\r\n"));
}

#[test]
fn bounces_go_where_they_are_told() {
    let (mut envelope, content) = (
        letters::envelope("a@example.org"),
        letters::content("x", "y"),
    );
    let sender = |envelope: &_| compose(envelope, &content, ANY).unwrap().sender;
    let from = |path: Option<&str>| path.map(str::to_owned);
    let text = sender(&envelope).map(|sender| sender.to_string());
    assert_eq!(text.as_deref(), Some("sender@example.com"));
    envelope.return_path = from(Some("bounce@example.com"));
    let text = sender(&envelope).map(|sender| sender.to_string());
    assert_eq!(text.as_deref(), Some("bounce@example.com"));
    envelope.return_path = from(Some("<>"));
    assert_eq!(sender(&envelope), None);
}
