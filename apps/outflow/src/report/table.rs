//! Tables in Markdown. All cells are escaped here, and only here.

use super::escape;

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    text: String,
}

impl Table {
    /// With these columns.
    pub fn new<const N: usize>(columns: [&str; N]) -> Self {
        let mut table = Self {
            text: String::new(),
        };
        table.row(columns);
        table.text.push_str(&"|---".repeat(N));
        table.text.push_str("|\n");
        table
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [impl AsRef<str>; N]) {
        for cell in cells {
            self.text.push_str("| ");
            self.text.push_str(&escape::markdown(cell.as_ref()));
            self.text.push(' ');
        }
        self.text.push_str("|\n");
    }

    /// As text.
    pub fn text(&self) -> &str {
        &self.text
    }
}
