//! Text from outside, made harmless where it is put: what far ends say, the
//! names of accounts, the reasons that people write.

use crate::cli::plain;

/// No text from outside is longer in a report.
const CHARS_MAX: usize = 300;

/// For a cell of a Markdown table: one line, and no character of it is markup,
/// a tag or a link.
pub fn markdown(text: &str) -> String {
    let mut out = String::new();
    for letter in plain::shortened(text, CHARS_MAX).chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // A bare address would become a link.
            ':' if ["http", "https", "ftp"]
                .iter()
                .any(|it| ends_with(&out, it)) =>
            {
                out.push_str("&#58;");
            }
            '.' if ends_with(&out, "www") => out.push_str("&#46;"),
            '@' => out.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' | '$' => {
                out.push('\\');
                out.push(letter);
            }
            letter => out.push(letter),
        }
    }
    out
}

/// Whether a text ends with a word, in whatever case.
fn ends_with(text: &str, word: &str) -> bool {
    let end = text.len().checked_sub(word.len());
    let end = end.and_then(|at| text.get(at..));
    end.is_some_and(|end| end.eq_ignore_ascii_case(word))
}

/// For text or an attribute of an SVG.
pub fn xml(text: &str) -> String {
    let mut out = String::new();
    for letter in plain::shortened(text, CHARS_MAX).chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // XML knows no such characters.
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

/// For the name of a file.
pub fn file_name(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars().take(80) {
        match letter {
            'a'..='z' | '0'..='9' => out.push(letter),
            'A'..='Z' => out.push(letter.to_ascii_lowercase()),
            _ if out.ends_with('-') || out.is_empty() => {}
            _ => out.push('-'),
        }
    }
    match out.trim_end_matches('-') {
        "" => "unnamed".to_owned(),
        name => name.to_owned(),
    }
}
