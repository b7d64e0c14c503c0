//! The fuzz targets over their corpus, and over damaged pieces of it: the same
//! each time. Fuzzing itself goes on for longer and needs nightly; see
//! `fuzz/README.md`.

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

#[path = "../../../../fuzz/targets/journal.rs"]
mod journal;
#[path = "../../../../fuzz/targets/resp.rs"]
mod resp;
#[path = "../../../../fuzz/targets/settings.rs"]
mod settings;
#[path = "../../../../fuzz/targets/smtp_commands.rs"]
mod smtp_commands;
#[path = "../../../../fuzz/targets/smtp_replies.rs"]
mod smtp_replies;
#[path = "../../../../fuzz/targets/submit.rs"]
mod submit;

/// Damaged pieces for each target, made of all its files.
const PIECES: usize = 4_500;

/// Numbers that are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }
}

/// A few bytes changed, taken out, put in, or moved.
fn damaged(whole: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(bytes.len());
        let length = numbers.below(16).min(bytes.len() - at);
        match numbers.below(6) {
            0 => bytes[at..at + length].fill(numbers.below(256) as u8),
            1 => drop(bytes.drain(at..at + length)),
            2 => bytes.truncate(at.max(1)),
            3 => {
                let piece = bytes[at..at + length].to_vec();
                let to = numbers.below(bytes.len());
                bytes.splice(to..to, piece);
            }
            4 => {
                let words: [&[u8]; 10] = [
                    b"\"",
                    b"{",
                    b"]",
                    b"\\u0000",
                    b"-1e400",
                    b"\r\n",
                    b"\xff\xff\xff\xff",
                    b"@",
                    b"\n.\r\n",
                    b"250-",
                ];
                bytes.splice(at..at, words[numbers.below(10)].iter().copied());
            }
            _ => bytes[at] ^= 1 << numbers.below(8),
        }
        if bytes.is_empty() {
            bytes.push(0);
        }
    }
    bytes
}

fn run(name: &str, target: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let folder = folder.join(name);
    let mut paths: Vec<_> = fs::read_dir(&folder).unwrap().collect();
    assert!(!paths.is_empty(), "{} is empty", folder.display());
    paths.sort_by_key(|entry| entry.as_ref().unwrap().path());
    let pieces = PIECES.div_ceil(paths.len());
    for path in paths {
        let path = path.unwrap().path();
        let whole = fs::read(&path).unwrap();
        target(&whole);
        let mut numbers = Numbers(0x6f75_7466_6c6f_7731);
        for piece in 0..pieces {
            let bytes = damaged(&whole, &mut numbers);
            let done = catch_unwind(|| target(&bytes));
            let shown = String::from_utf8_lossy(&bytes);
            assert!(done.is_ok(), "{}, piece {piece}: {shown:?}", path.display());
        }
    }
}

#[test]
fn a_damaged_journal_is_read_or_refused() {
    run("journal", journal::run);
}

#[test]
fn damaged_settings_are_read_or_refused() {
    run("settings", settings::run);
}

#[test]
fn whatever_a_client_of_the_throttle_says_is_answered_or_refused() {
    run("resp", resp::run);
}

#[test]
fn a_damaged_submission_is_planned_or_refused() {
    run("submit", submit::run);
}

#[test]
fn whatever_a_mail_server_says_is_read_or_refused() {
    run("smtp_replies", smtp_replies::run);
}

#[test]
fn whatever_a_mail_client_says_is_taken_or_refused() {
    run("smtp_commands", smtp_commands::run);
}
