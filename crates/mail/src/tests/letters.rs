//! Letters that are awkward to write, each by its name.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use outflow_ports::letter::{Attachment, Content, Envelope, Unsubscribe};

/// One letter.
pub struct Letter {
    pub name: &'static str,
    pub envelope: Envelope,
    pub content: Content,
}

pub fn envelope(to: &str) -> Envelope {
    Envelope {
        to: to.to_owned(),
        from: "sender@example.com".to_owned(),
        ..Envelope::default()
    }
}

pub fn content(subject: &str, text: &str) -> Content {
    Content {
        message_id: "<1.2.3@example.com>".to_owned(),
        date: 1_760_000_000,
        from: "\"A Sender\" <sender@example.com>".to_owned(),
        to: vec!["user@example.org".to_owned()],
        subject: Some(subject.to_owned()),
        text: Some(text.to_owned()),
        ..Content::default()
    }
}

pub fn raw(bytes: &[u8]) -> Content {
    Content {
        text: None,
        subject: None,
        raw: Some(STANDARD.encode(bytes)),
        ..content("", "")
    }
}

pub fn file(name: &str, kind: &str, bytes: &[u8]) -> Attachment {
    Attachment {
        filename: name.to_owned(),
        content_type: kind.to_owned(),
        content: STANDARD.encode(bytes),
        content_id: None,
    }
}

/// Bytes of every value, in no simple order.
pub fn bytes(count: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..count).map(next).collect()
}

/// A message of nested parts, one of them 8-bit and one with a long line.
pub fn nested() -> Vec<u8> {
    let long = "0123456789".repeat(500);
    format!(
        "From: Sender <sender@example.com>\r\nTo: user@example.org\r\nBcc: secret@example.net\r\n\
         Subject: nested\r\nMIME-Version: 1.0\r\n\
         Content-Type: multipart/mixed; boundary=outer\r\n\r\npreamble\r\n\
         --outer\r\nContent-Type: multipart/alternative; boundary=inner\r\n\r\n\
         --inner\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Transfer-Encoding: 8bit\r\n\r\nGrüße\r\n.\r\n..two dots\r\n\
         --inner\r\nContent-Type: text/html; charset=us-ascii\r\n\r\n<p>{long}</p>\r\n\
         --inner--\r\n\
         --outer\r\nContent-Type: application/octet-stream\r\n\
         Content-Transfer-Encoding: base64\r\n\r\nAAECAwQF\r\n--outer--\r\n"
    )
    .into_bytes()
}

pub fn letters() -> Vec<Letter> {
    let mut letters = Vec::new();
    let mut add = |name, to: &str, content| {
        let envelope = envelope(to);
        letters.push(Letter {
            name,
            envelope,
            content,
        });
    };
    let to = "user@example.org";
    add("plain", to, content("Hello", "Hello,\nhow are you?\n"));
    add("empty body", to, content("Nothing", ""));
    add(
        "8-bit text",
        to,
        content("Übergröße", "Grüße aus Köln\nµ ½ €\n"),
    );
    add(
        "emoji subject",
        to,
        content("Party 🎉🎉 tonight 🥳", "🎈\n"),
    );
    let folded = "Ünï ".repeat(120);
    add("long subject", to, content(folded.trim(), "see above\n"));
    let dots = ".\n..\n.leading\n\n.\n";
    add("leading dots", to, content("Dots", dots));
    let long = format!("{}\n{}\n", "x".repeat(5_000), "word ".repeat(1_000));
    add("lines of 5,000", to, content("Long", &long));
    let ends = "one\ntwo\r\nthree\rfour\r\n";
    add("bare line ends", to, content("Ends", ends));
    add(
        "idn recipient",
        "jürgen@bücher.example",
        content("IDN", "für dich\n"),
    );
    add(
        "idn domain",
        "info@bücher.example",
        content("IDN", "für dich\n"),
    );
    let mut both = content("Both", "text\n");
    both.html = Some("<p>html <img src=\"cid:logo@example.com\"></p>\n".to_owned());
    let mut logo = file("logo.png", "image/png", &bytes(300));
    logo.content_id = Some("logo@example.com".to_owned());
    both.attachments = vec![
        logo,
        file("Übersicht 2026.pdf", "application/pdf", b"%PDF-"),
    ];
    add("html, image and file", to, both);
    let mut large = content("Large", "attached\n");
    large.attachments = vec![file(
        "large.bin",
        "application/octet-stream",
        &bytes(1 << 20),
    )];
    add("1 MB attachment", to, large);
    let mut many = content("Many", "see header\n");
    for no in 0..30 {
        let value = format!("value {no} {}", "with words ".repeat(no));
        many.headers.insert(format!("X-Field-{no:02}"), value);
    }
    many.unsubscribe = Some(Unsubscribe {
        url: Some("https://example.com/leave?id=1".to_owned()),
        mailto: Some("leave@example.com?subject=leave".to_owned()),
        one_click: true,
    });
    add("30 headers", to, many);
    let mut named = content("Names", "to many\n");
    named.to = (0..60)
        .map(|no| format!("\"Größe, Nr. {no}\" <user{no}@example.org>"))
        .collect();
    named.reply_to = Some("Réponse <reply@example.com>".to_owned());
    add("60 names", to, named);
    add("nested raw", to, raw(&nested()));
    let loose = b"From: sender@example.com\nSubject: loose\n\none\n.\rtwo\n";
    add("raw with bare ends", to, raw(loose));
    letters
}
