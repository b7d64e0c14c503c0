//! Lines for people and for programs, and who writes them.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use outflow_core::message::{Head, Seq};
use outflow_core::name::Name;
use outflow_core::outcome::ReplyClass;
use outflow_core::retry::dead_letter::{DeadLetter, LastError};
use outflow_core::retry::schedule::DeathCause;
use outflow_telemetry::catalogue::{Event, Level};
use outflow_telemetry::logs::Format;
use outflow_telemetry::sink::Slot;
use outflow_telemetry::writer::Writer;
use outflow_telemetry::{AttemptLog, LogSettings, Logs, Sink};
use serde_json::{Value, json};

use super::{AT, attempt, key};

#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a log says of some events.
fn written(settings: LogSettings, events: &[Event<'_>]) -> String {
    let page = Page::default();
    let logs = Logs::new(settings, Writer::new("log", page.clone()).unwrap());
    for event in events {
        logs.emit(event);
    }
    drop(logs);
    let bytes = page.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

fn letter() -> DeadLetter {
    let error = LastError {
        code: Some(550),
        enhanced: None,
        class: ReplyClass::Recipient,
        rule: Name::from("r"),
        text: "5.1.1 <bob@example.com>: bob@example.com unknown\nlevel=error".to_owned(),
    };
    DeadLetter::new(&Head::new(Seq(7), AT), AT, DeathCause::Age, error)
}

#[test]
fn an_attempt_is_one_line_of_json() {
    let page = Page::default();
    let log = AttemptLog::new(Writer::new("attempts", page.clone()).unwrap());
    let key = key("google");
    log.emit(&Event::Attempted(attempt(&key, Slot::OTHER)));
    log.emit(&Event::Stopping);
    drop(log);
    let text = String::from_utf8(page.0.lock().unwrap().clone()).unwrap();
    assert_eq!(text.lines().count(), 1);
    let mut line: Value = serde_json::from_str(&text).unwrap();
    let id = line.as_object_mut().unwrap().remove("message_id").unwrap();
    assert!(id.as_str().unwrap().ends_with("-000000000007"), "{id}");
    let expected = json!({
        "time": "2023-11-14T22:13:20.000Z",
        "tenant": "acme", "class": "high", "campaign": "q4 \"sale\"", "channel": "email",
        "pool": "default", "destination": "isp:google", "account": "ses-1", "attempt": 2,
        "outcome": "deferred", "outcome_class": "rate", "code": 421, "enhanced": "4.7.28",
        "duration_ms": 12.345, "waited_ms": 61_000.0,
    });
    assert_eq!(line, expected);
}

#[test]
fn addresses_are_hidden_and_lines_stay_lines() {
    let (key, letter) = (key("google"), letter());
    let event = Event::Died {
        message: None,
        key: &key,
        account: Some("ses-1"),
        letter: &letter,
    };
    for format in [Format::Text, Format::Json] {
        let settings = LogSettings {
            format,
            ..LogSettings::default()
        };
        let text = written(settings, &[event]);
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(!text.contains("bob"), "{text}");
        assert!(text.contains("<<address>>: <address> unknown"), "{text}");
        let told = LogSettings {
            addresses: true,
            ..settings
        };
        assert!(written(told, &[event]).contains("<bob@example.com>"));
    }
}

#[test]
fn the_level_decides_what_is_written() {
    let key = key("google");
    let events = [
        Event::Attempted(attempt(&key, Slot::OTHER)),
        Event::AccountChanged { account: "ses-1" },
        Event::Noted {
            level: Level::Error,
            part: "journal",
            text: "a segment is damaged",
        },
    ];
    for (level, lines) in [
        (Level::Debug, 3),
        (Level::Info, 2),
        (Level::Warn, 1),
        (Level::Error, 1),
    ] {
        let settings = LogSettings {
            level,
            ..LogSettings::default()
        };
        let text = written(settings, &events);
        assert_eq!(text.lines().count(), lines, "{text}");
        let end = " error noted part=journal text=\"a segment is damaged\"\n";
        assert!(text.ends_with(end), "{text}");
    }
}

/// Takes nothing until it is told to, and says when it is asked.
struct Stuck {
    asked: Sender<()>,
    go_on: Receiver<()>,
    page: Page,
}

impl Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.asked.send(()).ok();
        self.go_on.recv().ok();
        self.page.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_writer_that_is_stuck_costs_lines_and_no_time() {
    let ((asked, is_asked), (go, go_on)) = (channel(), channel());
    let page = Page::default();
    let out = Stuck {
        asked,
        go_on,
        page: page.clone(),
    };
    let writer = Writer::new("stuck", out).unwrap();
    let line = |out: &mut Vec<u8>| out.extend_from_slice(&[b'x'; 1023]);
    writer.line(line);
    is_asked.recv().unwrap();
    let room = 4 * 1024;
    for _ in 0..room + 10 {
        writer.line(line);
    }
    assert_eq!(writer.dropped(), 10);
    drop(go);
    drop(writer);
    assert_eq!(page.0.lock().unwrap().len(), (1 + room) * 1024);
}
