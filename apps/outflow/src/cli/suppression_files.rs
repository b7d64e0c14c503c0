//! The suppression list to and from files, a part at a time: how long it is does
//! not matter to memory, nor to how long one request takes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::client::query;
use super::failure::Failure;
use super::plain::plain;
use super::session::{Session, print, write};
use super::suppressions::{Export, Import, Page, Suppression};

/// Lines in one request.
const PART_LINES: usize = 50_000;
/// Bytes of one line.
const LINE_BYTES_MAX: u64 = 16 << 10;
/// Wrong lines that are shown.
const SHOWN_MAX: usize = 20;
/// The first line of CSV.
const COLUMNS: &str =
    "recipient,reason,tenant,state,since,source,destination,message_id,detail\r\n";

/// What became of a part, and of all parts.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Imported {
    added: u64,
    known: u64,
    rejected: u64,
    errors: Vec<Wrong>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Wrong {
    line: u64,
    error: String,
}

/// Imports a file.
pub fn import(arguments: &Import, session: &Session) -> Result<(), Failure> {
    let name = arguments.file.display().to_string();
    let broken = |error: io::Error| Failure::Other(format!("{name}: {error}"));
    let mut lines = open(&arguments.file).map_err(broken)?;
    let mut parts = Parts::default();
    let mut all = Imported::default();
    while let Some(part) = parts.next(&mut lines).map_err(broken)? {
        let answer = session.upload("/suppressions/import", part.media, part.bytes)?;
        let done: Imported = answer.read()?;
        all.added += done.added;
        all.known += done.known;
        all.rejected += done.rejected;
        let wrong = done.errors.into_iter().map(|wrong| Wrong {
            line: part.before + wrong.line,
            ..wrong
        });
        let room = SHOWN_MAX.saturating_sub(all.errors.len());
        all.errors.extend(wrong.take(room));
    }
    if arguments.output.json {
        let text = serde_json::to_string(&all).unwrap_or_default();
        return print(&format!("{text}\n"));
    }
    let mut text = format!(
        "{} recipients are new on the list, {} were on it before, {} lines were not taken.\n",
        all.added, all.known, all.rejected
    );
    for wrong in &all.errors {
        text.push_str(&format!("line {}: {}\n", wrong.line, plain(&wrong.error)));
    }
    print(&text)
}

fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    Ok(match path == Path::new("-") {
        true => Box::new(BufReader::new(io::stdin())),
        false => Box::new(BufReader::new(File::open(path)?)),
    })
}

/// Lines that go together.
struct Part {
    media: &'static str,
    bytes: Vec<u8>,
    /// Lines of the file before those of this part.
    before: u64,
}

/// Cuts a file into parts.
#[derive(Default)]
struct Parts {
    is_json: Option<bool>,
    /// The line that names the columns, which each part repeats.
    header: Vec<u8>,
    read: u64,
}

impl Parts {
    fn next(&mut self, lines: &mut dyn BufRead) -> io::Result<Option<Part>> {
        let mut bytes = self.header.clone();
        // The header of a later part is no line of the file.
        let mut before = self.read - u64::from(!self.header.is_empty());
        let mut count = 0;
        while count < PART_LINES {
            let from = bytes.len();
            let mut limited = (&mut *lines).take(LINE_BYTES_MAX);
            let length = limited.read_until(b'\n', &mut bytes)?;
            let line = bytes.get(from..).unwrap_or_default();
            if length == 0 {
                break;
            }
            if length as u64 == LINE_BYTES_MAX && !line.ends_with(b"\n") {
                let text = format!("line {} is too long", self.read + 1);
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            if self.is_json.is_none() {
                self.is_json = Some(line.trim_ascii_start().starts_with(b"{"));
                let text = String::from_utf8_lossy(line).to_ascii_lowercase();
                if text.contains("recipient") && self.is_json == Some(false) {
                    self.header = line.to_vec();
                }
                before = 0;
            }
            self.read += 1;
            count += 1;
        }
        let media = match self.is_json {
            Some(true) => "application/x-ndjson",
            _ => "text/csv",
        };
        Ok((count > 0).then_some(Part {
            media,
            bytes,
            before,
        }))
    }
}

/// Exports what is meant, page by page.
pub fn export(arguments: &Export, session: &Session) -> Result<(), Failure> {
    let which = arguments.which.pairs(session)?;
    if arguments.csv {
        print(COLUMNS)?;
    }
    let mut cursor: Option<String> = None;
    loop {
        let mut pairs = which.clone();
        pairs.push(("limit", Some("1000".to_owned())));
        pairs.push(("cursor", cursor));
        let page: Page = session.read(&format!("/suppressions{}", query(pairs)))?;
        let mut out = Vec::new();
        for entry in &page.suppressions {
            line(&mut out, entry, arguments.csv);
        }
        write(&[&out])?;
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(());
        }
    }
}

fn line(out: &mut Vec<u8>, entry: &Suppression, is_csv: bool) {
    if !is_csv {
        out.extend(serde_json::to_vec(entry).unwrap_or_default());
        out.push(b'\n');
        return;
    }
    let fields = [
        &entry.recipient,
        &entry.reason,
        &entry.tenant,
        &entry.state,
        &entry.since,
        &entry.source,
        &entry.destination,
        &entry.message_id,
        &entry.detail,
    ];
    let fields = fields.map(|field| field.as_str());
    outflow_api::suppressions::csv::write(out, &fields);
}

#[cfg(test)]
mod tests {
    use super::{PART_LINES, Parts};

    fn parts(text: &str) -> Vec<(String, &'static str, u64)> {
        let mut parts = Parts::default();
        let mut lines = text.as_bytes();
        let mut found = Vec::new();
        while let Some(part) = parts.next(&mut lines).unwrap() {
            let text = String::from_utf8(part.bytes).unwrap();
            found.push((text, part.media, part.before));
        }
        found
    }

    #[test]
    fn each_part_names_its_columns_and_knows_its_place() {
        let mut text = "recipient,reason\n".to_owned();
        text.push_str(&"a@b.c,manual\n".repeat(PART_LINES));
        let found = parts(&text);
        let [first, second] = found.as_slice() else {
            panic!("{} parts", found.len());
        };
        assert_eq!((first.1, first.2), ("text/csv", 0));
        // Line 2 of the second part is line 50,001 of the file.
        assert_eq!(second.0, "recipient,reason\na@b.c,manual\n");
        assert_eq!(second.2, PART_LINES as u64 - 1);
    }

    #[test]
    fn objects_are_told_from_addresses() {
        assert_eq!(
            parts("{\"recipient\":\"a@b.c\"}\n")[0].1,
            "application/x-ndjson"
        );
        assert_eq!(parts("a@b.c\n")[0].1, "text/csv");
        assert!(parts("").is_empty());
    }
}
