//! Blocks of fields, as in the header of a mail and in the parts of reports.

/// No block is looked at beyond this.
const BYTES_MAX: usize = 256 << 10;
/// No block has more fields that count.
const FIELDS_MAX: usize = 128;
/// No part has more blocks that count: one for each recipient, and one more.
const BLOCKS_MAX: usize = 101;
/// No name is longer.
const NAME_BYTES_MAX: usize = 76;
/// No value is kept beyond this.
const VALUE_BYTES_MAX: usize = 2_048;

/// Fields up to a blank line, in order. Folds are kept as line breaks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    /// The first field of this name, its lines kept apart.
    pub(crate) fn lines(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// The first field of this name, on one line.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        self.lines(name).map(flat).filter(|value| !value.is_empty())
    }

    /// All fields of this name.
    pub(crate) fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let name = name.to_ascii_lowercase();
        self.0
            .iter()
            .filter(move |(known, _)| known.eq_ignore_ascii_case(&name))
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.lines(name).is_some()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn line(&mut self, line: &str) {
        if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = self.0.last_mut()
                && value.len() < VALUE_BYTES_MAX
            {
                value.push('\n');
                push(value, line.trim());
            }
            return;
        }
        let Some((name, value)) = line.split_once(':') else {
            return;
        };
        let name = name.trim_end();
        let is_name = !name.is_empty()
            && name.len() <= NAME_BYTES_MAX
            && name.bytes().all(|byte| byte.is_ascii_graphic());
        if is_name && self.0.len() < FIELDS_MAX {
            let mut kept = String::new();
            push(&mut kept, value.trim());
            self.0.push((name.to_owned(), kept));
        }
    }
}

/// Appends as much of `text` as there is room for, without control characters.
fn push(kept: &mut String, text: &str) {
    for letter in text.chars() {
        if kept.len() + letter.len_utf8() > VALUE_BYTES_MAX {
            return;
        }
        kept.push(if letter.is_control() { ' ' } else { letter });
    }
}

/// One line of several, with single spaces and no control characters.
pub(crate) fn flat(value: &str) -> String {
    let is_gap = |letter: char| letter.is_whitespace() || letter.is_control();
    let words = value.split(is_gap).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// The blocks of a part, as many as count; empty ones are left out.
pub(crate) fn blocks(bytes: &[u8]) -> Vec<Fields> {
    let mut blocks = vec![Fields::default()];
    for line in text(bytes).lines() {
        let is_full = blocks.len() >= BLOCKS_MAX;
        match blocks.last_mut() {
            Some(block) if !line.trim().is_empty() => block.line(line),
            Some(block) if !block.is_empty() && is_full => break,
            Some(block) if !block.is_empty() => blocks.push(Fields::default()),
            _ => {}
        }
    }
    blocks.retain(|block| !block.is_empty());
    blocks
}

/// The first block: the header of a mail.
pub(crate) fn header(bytes: &[u8]) -> Fields {
    let mut fields = Fields::default();
    for line in text(bytes).lines() {
        if line.trim().is_empty() {
            if fields.is_empty() {
                continue;
            }
            break;
        }
        fields.line(line);
    }
    fields
}

/// As much of these bytes as is looked at; what is no UTF-8 is replaced.
pub(crate) fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    let end = bytes.len().min(BYTES_MAX);
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default())
}

/// What stands behind `rfc822;` or `dns;`, without brackets and comments.
pub(crate) fn typed(value: &str) -> Option<String> {
    let value = flat(value);
    let value = match value.split_once(';') {
        Some((kind, rest)) if !kind.contains(['@', ' ', '<']) => rest.trim(),
        _ => value.trim(),
    };
    let value = value.split(" (").next().unwrap_or(value).trim();
    let value = value.trim_start_matches('<').trim_end_matches('>').trim();
    (!value.is_empty()).then(|| value.to_owned())
}
