//! Columns for people: as wide as they must be, numbers to the right.

use std::fmt::Write as _;

use super::plain::plain;

/// Between two columns.
const GAP: &str = "  ";

/// How a column stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Text, from the left.
    Text(&'static str),
    /// A number, to the right.
    Number(&'static str),
}

impl Column {
    const fn title(self) -> &'static str {
        match self {
            Self::Text(title) | Self::Number(title) => title,
        }
    }
}

/// Rows under titles.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Without rows yet.
    pub fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self {
            columns: columns.into(),
            rows: Vec::new(),
        }
    }

    /// Adds a row. What is printed of a cell is safe.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl AsRef<str>>) {
        let cells = cells.into_iter().map(|cell| plain(cell.as_ref()));
        self.rows.push(cells.collect());
    }

    /// All lines. A table without rows is `nothing`.
    pub fn text(&self, nothing: &str) -> String {
        if self.rows.is_empty() {
            return format!("{nothing}\n");
        }
        let titles: Vec<String> = self
            .columns
            .iter()
            .map(|column| column.title().to_uppercase())
            .collect();
        let mut out = String::new();
        for row in std::iter::once(&titles).chain(&self.rows) {
            self.line(&mut out, row);
        }
        out
    }

    fn width(&self, at: usize) -> usize {
        let title = self
            .columns
            .get(at)
            .map_or(0, |column| column.title().len());
        let cells = self.rows.iter().filter_map(|row| row.get(at));
        cells
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
            .max(title)
    }

    fn line(&self, out: &mut String, cells: &[String]) {
        let start = out.len();
        for (at, (column, cell)) in self.columns.iter().zip(cells).enumerate() {
            if at > 0 {
                out.push_str(GAP);
            }
            let width = self.width(at);
            let written = match column {
                Column::Text(_) => write!(out, "{cell:<width$}"),
                Column::Number(_) => write!(out, "{cell:>width$}"),
            };
            debug_assert!(written.is_ok(), "writing into a string cannot fail");
        }
        let end = start + out.get(start..).unwrap_or_default().trim_end().len();
        out.truncate(end);
        out.push('\n');
    }
}

/// `name: value` lines, values under one another. What says nothing is left
/// out.
pub fn lines<'a>(pairs: impl IntoIterator<Item = (&'a str, Option<String>)>) -> String {
    let pairs: Vec<(&str, String)> = pairs
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.filter(|value| !value.is_empty())?)))
        .collect();
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for (name, value) in pairs {
        let line = format!("{name:<width$}  {}", plain(&value));
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
