//! One line of a log: text for people, or JSON.

use std::fmt::{self, Write as _};

use jiff::Timestamp;
use outflow_core::time::{Nanos, Wall};

/// How lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// `TIME LEVEL event key=value ...`
    #[default]
    Text,
    /// One object in each line.
    Json,
}

/// A line in the making, at the end of a buffer.
#[derive(Debug)]
pub(crate) struct Line<'b> {
    out: &'b mut Vec<u8>,
    format: Format,
    fields: u32,
}

impl<'b> Line<'b> {
    pub fn begin(out: &'b mut Vec<u8>, format: Format) -> Self {
        if format == Format::Json {
            out.push(b'{');
        }
        Self {
            out,
            format,
            fields: 0,
        }
    }

    /// A word that stands by itself in text.
    pub fn word(&mut self, key: &str, value: &str) {
        match self.format {
            Format::Json => self.text(key, value),
            Format::Text => {
                self.separate();
                self.out.extend_from_slice(value.as_bytes());
            }
        }
    }

    pub fn text(&mut self, key: &str, value: &str) {
        self.key(key);
        let plain = |letter: char| !letter.is_whitespace() && !letter.is_control();
        let is_plain = !value.is_empty()
            && value
                .chars()
                .all(|letter| plain(letter) && letter != '"' && letter != '=');
        if self.format == Format::Text && is_plain {
            self.out.extend_from_slice(value.as_bytes());
        } else {
            serde_json::to_writer(&mut *self.out, value)
                .expect("a buffer takes whatever is written");
        }
    }

    pub fn optional(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }

    pub fn show(&mut self, key: &str, value: &dyn fmt::Display) {
        self.text(key, &value.to_string());
    }

    pub fn number(&mut self, key: &str, value: u64) {
        self.key(key);
        self.put(format_args!("{value}"));
    }

    pub fn flag(&mut self, key: &str, value: bool) {
        self.key(key);
        self.put(format_args!("{value}"));
    }

    /// A time span in milliseconds, to the microsecond.
    pub fn millis(&mut self, key: &str, value: Nanos) {
        let micros = value.0 / 1_000;
        self.key(key);
        self.put(format_args!("{}.{:03}", micros / 1_000, micros % 1_000));
    }

    pub fn time(&mut self, key: &str, at: Wall) {
        let time = rfc3339(at);
        self.text(key, &time);
    }

    pub fn end(self) {
        if self.format == Format::Json {
            self.out.push(b'}');
        }
    }

    fn key(&mut self, key: &str) {
        self.separate();
        match self.format {
            Format::Json => self.put(format_args!("\"{key}\":")),
            Format::Text => self.put(format_args!("{key}=")),
        }
    }

    fn separate(&mut self) {
        if self.fields > 0 {
            self.out.push(match self.format {
                Format::Json => b',',
                Format::Text => b' ',
            });
        }
        self.fields += 1;
    }

    fn put(&mut self, text: fmt::Arguments<'_>) {
        use std::io::Write;
        self.out
            .write_fmt(text)
            .expect("a buffer takes whatever is written");
    }
}

/// A time as people and programs write it, to the millisecond.
pub(crate) fn rfc3339(at: Wall) -> String {
    let mut text = String::with_capacity(24);
    let at = Timestamp::from_nanosecond(i128::from(at.0)).unwrap_or(Timestamp::MAX);
    write!(text, "{at:.3}").expect("a string takes whatever is written");
    text
}
