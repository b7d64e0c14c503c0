//! Rows and columns for which a search is due.

use std::collections::VecDeque;

use super::bits::Bits;
use super::place::{Col, Row};

/// Places in the order in which they were marked, each once.
#[derive(Clone, Debug, Default)]
struct Queue {
    order: VecDeque<u32>,
    members: Bits,
}

impl Queue {
    fn mark(&mut self, at: u32) {
        if self.members.set(at, true) {
            self.order.push_back(at);
        }
    }

    fn pop(&mut self) {
        if let Some(at) = self.order.pop_front() {
            self.members.set(at, false);
        }
    }

    fn clear(&mut self) {
        while !self.order.is_empty() {
            self.pop();
        }
    }
}

/// The marks of one gate.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    rows: Queue,
    cols: Queue,
}

impl Marks {
    pub fn grow_rows(&mut self, len: usize) {
        self.rows.members.grow(len);
    }

    pub fn grow_cols(&mut self, len: usize) {
        self.cols.members.grow(len);
    }

    pub fn mark_row(&mut self, row: Row) {
        self.rows.mark(row.0);
    }

    pub fn mark_col(&mut self, col: Col) {
        self.cols.mark(col.0);
    }

    pub fn row(&self) -> Option<Row> {
        self.rows.order.front().copied().map(Row)
    }

    pub fn col(&self) -> Option<Col> {
        self.cols.order.front().copied().map(Col)
    }

    pub fn pop_row(&mut self) {
        self.rows.pop();
    }

    pub fn pop_col(&mut self) {
        self.cols.pop();
    }

    pub fn clear(&mut self) {
        self.rows.clear();
        self.cols.clear();
    }

    /// Whether no search is due.
    pub fn is_empty(&self) -> bool {
        self.rows.order.is_empty() && self.cols.order.is_empty()
    }

    /// Whether a search is due for a column.
    pub fn has_col(&self, col: Col) -> bool {
        self.cols.members.contains(col.0)
    }

    #[cfg(any(test, debug_assertions))]
    pub fn covers(&self, row: Row, col: Col) -> bool {
        self.rows.members.contains(row.0) || self.cols.members.contains(col.0)
    }
}
