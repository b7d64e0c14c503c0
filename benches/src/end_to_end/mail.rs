//! The mail of this benchmark: the same payload, sender and recipients whichever
//! way it comes in, as `smtp-source -l 2048 -N` makes them.

use std::io::Write as _;

use crate::http;

/// What follows the header.
pub const PAYLOAD: usize = 2_048;
pub const SENDER: &str = "sender@example.org";
/// The number before it makes each recipient another.
pub const RECIPIENT: &str = "rcpt@example.com";
/// A line of the payload, without its end.
const LINE: usize = 78;

/// The payload, with the line ends of SMTP or of JSON.
fn payload(line_end: &str) -> String {
    let mut text = String::new();
    let mut bytes = 0;
    while bytes < PAYLOAD {
        let length = LINE.min((PAYLOAD - bytes).saturating_sub(2));
        text.push_str(&"X".repeat(length));
        text.push_str(line_end);
        bytes += length + 2;
    }
    text
}

/// Messages as SMTP carries them.
pub struct Mails {
    payload: String,
}

impl Mails {
    pub fn new() -> Self {
        let payload = payload("\r\n");
        Self { payload }
    }

    /// Appends message `no` and its final dot.
    pub fn write(&self, no: u64, out: &mut Vec<u8>) {
        let _ = write!(
            out,
            "From: <{SENDER}>\r\nTo: <{no}{RECIPIENT}>\r\n\
             Date: Mon, 5 Jan 2026 12:00:00 +0000 (UTC)\r\n\
             Message-Id: <bench.{no}@source.example.org>\r\nSubject: Order {no}\r\n\r\n{}.\r\n",
            self.payload
        );
    }
}

/// Messages as HTTP carries them.
pub struct Batches {
    payload: String,
}

impl Batches {
    pub fn new() -> Self {
        let payload = payload(r"\n");
        Self { payload }
    }

    /// A request with messages `from` to `to`, a line each.
    pub fn request(&self, token: &str, from: u64, to: u64) -> Vec<u8> {
        let mut body = Vec::with_capacity((to - from) as usize * (PAYLOAD + 256));
        for no in from..to {
            let _ = writeln!(
                body,
                r#"{{"from":"{SENDER}","to":"{no}{RECIPIENT}","subject":"Order {no}","text":"{}"}}"#,
                self.payload
            );
        }
        http::submission(token, "application/x-ndjson", &body)
    }
}
