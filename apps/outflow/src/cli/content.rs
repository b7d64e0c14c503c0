//! What a message says: from arguments, files and stdin, each bounded.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::failure::Failure;

/// The server takes less by default, and says so itself.
const BYTES_MAX: u64 = 256 << 20;
/// How far into a message its header is looked for.
const HEADER_BYTES_MAX: usize = 256 << 10;

/// The text itself, or stdin for `-`.
pub fn text(said: &str) -> Result<String, Failure> {
    if said != "-" {
        return Ok(said.to_owned());
    }
    let bytes = bounded(std::io::stdin().lock(), "stdin")?;
    String::from_utf8(bytes).map_err(|_| Failure::Other("stdin: is not text (UTF-8)".to_owned()))
}

/// The bytes of a file, or of stdin for `-`.
pub fn file(path: &Path) -> Result<Vec<u8>, Failure> {
    if path == Path::new("-") {
        return bounded(std::io::stdin().lock(), "stdin");
    }
    let name = path.display().to_string();
    let opened = File::open(path).map_err(|error| Failure::Other(format!("{name}: {error}")))?;
    bounded(opened, &name)
}

fn bounded(from: impl Read, name: &str) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = from.take(BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::Other(format!("{name}: {error}")))?;
    match bytes.len() as u64 > BYTES_MAX {
        true => Err(Failure::Other(format!(
            "{name}: is larger than any message ({BYTES_MAX} bytes)"
        ))),
        false => Ok(bytes),
    }
}

/// The `From` field of a message, on one line.
pub fn sender(message: &[u8]) -> Option<String> {
    let header = message.get(..HEADER_BYTES_MAX).unwrap_or(message);
    let header = String::from_utf8_lossy(header);
    let mut found: Option<String> = None;
    for line in header.lines() {
        if line.is_empty() {
            break;
        }
        let folded = line.starts_with([' ', '\t']);
        match (&mut found, folded) {
            (Some(field), true) => {
                field.push(' ');
                field.push_str(line.trim());
            }
            (Some(_), false) => break,
            (None, _) => {
                let field = line.split_once(':');
                let field = field.filter(|(name, _)| name.trim().eq_ignore_ascii_case("from"));
                found = field.map(|(_, value)| value.trim().to_owned());
            }
        }
    }
    found.filter(|field| !field.is_empty())
}

/// The media type of an attachment, by how its name ends.
pub fn media_type(path: &Path) -> &'static str {
    let ending = path.extension().unwrap_or_default();
    match ending.to_string_lossy().to_ascii_lowercase().as_str() {
        "csv" => "text/csv",
        "gif" => "image/gif",
        "htm" | "html" => "text/html",
        "ics" => "text/calendar",
        "jpeg" | "jpg" => "image/jpeg",
        "json" => "application/json",
        "log" | "md" | "txt" => "text/plain",
        "pdf" => "application/pdf",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "xml" => "application/xml",
        "zip" => "application/zip",
        _ => "application/octet-stream",
    }
}
