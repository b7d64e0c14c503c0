//! A file as plain JSON, with the place of every key.
//!
//! Times without quotes become text. A number that no key could want (not a
//! number, out of all bounds) becomes text as well, and is then refused at its
//! place with what to write.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

use crate::problem::below;

/// A place in a file, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The character in it.
    pub column: usize,
}

/// Text that is not TOML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotToml {
    /// Where it stops being TOML.
    pub place: Option<Place>,
    /// Why.
    pub detail: String,
}

/// A file as it was written.
#[derive(Clone, Default)]
pub struct Document {
    /// What it says.
    pub value: Value,
    /// Where each key or entry begins, by its pointer, in bytes.
    starts: BTreeMap<String, usize>,
    text: String,
}

impl Document {
    /// Reads TOML.
    pub fn parse(text: &str) -> Result<Self, NotToml> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let table = DeTable::parse(text).map_err(|error| NotToml {
            place: error.span().map(|span| place(text, span.start)),
            detail: error.message().trim().replace('\n', ", "),
        })?;
        let mut starts = BTreeMap::new();
        let value = of_table(table.get_ref(), "", &mut starts);
        Ok(Self {
            value,
            starts,
            text: text.to_owned(),
        })
    }

    /// Where `pointer`, or the nearest thing around it, stands.
    pub fn place(&self, pointer: &str) -> Option<Place> {
        let mut pointer = pointer;
        loop {
            if let Some(start) = self.starts.get(pointer) {
                return Some(place(&self.text, *start));
            }
            (pointer, _) = pointer.rsplit_once('/')?;
        }
    }

    /// Whether the file says something of `pointer`.
    pub fn has(&self, pointer: &str) -> bool {
        self.starts.contains_key(pointer)
    }
}

fn of_table(table: &DeTable<'_>, pointer: &str, starts: &mut BTreeMap<String, usize>) -> Value {
    let mut fields = Map::new();
    for (key, value) in table.iter() {
        let pointer = below(pointer, key.get_ref());
        starts.insert(pointer.clone(), key.span().start);
        let value = of_value(value.get_ref(), &pointer, starts);
        fields.insert(key.get_ref().to_string(), value);
    }
    Value::Object(fields)
}

fn of_value(value: &DeValue<'_>, pointer: &str, starts: &mut BTreeMap<String, usize>) -> Value {
    match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Boolean(flag) => Value::from(*flag),
        DeValue::Datetime(time) => Value::from(time.to_string()),
        DeValue::Integer(number) => {
            let text = number.as_str().replace('_', "");
            i64::from_str_radix(&text, number.radix()).map_or(Value::from(text), Value::from)
        }
        DeValue::Float(number) => {
            let text = number.as_str().replace('_', "");
            let read = text.parse().ok().and_then(serde_json::Number::from_f64);
            read.map_or(Value::from(text), Value::Number)
        }
        DeValue::Table(table) => of_table(table, pointer, starts),
        DeValue::Array(entries) => {
            let entries = entries.iter().enumerate().map(|(i, entry)| {
                let pointer = format!("{pointer}/{i}");
                starts.insert(pointer.clone(), entry.span().start);
                of_value(entry.get_ref(), &pointer, starts)
            });
            Value::Array(entries.collect())
        }
    }
}

fn place(text: &str, start: usize) -> Place {
    let before = text.get(..start).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.get(line_start..).unwrap_or_default();
    Place {
        line: before.matches('\n').count() + 1,
        column: line.chars().count() + 1,
    }
}
