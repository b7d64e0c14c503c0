//! The settings in force, each with where it comes from, and secrets hidden.

use serde::Serialize;
use serde_json::Value;

use crate::key::{Form, Key};
use crate::keys;
use crate::load::key_of;
use crate::problem::below;
use crate::secret::url_without_password;
use crate::valid::Settings;

/// Where comments begin, if what is before them leaves the room.
const COMMENT_COLUMN: usize = 44;

/// One setting in force.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// Which, as `server.listen`.
    pub key: String,
    /// Its value, without secrets.
    pub value: Value,
    /// Where it comes from: `default`, `file`, `env NAME`, `command line`.
    pub origin: String,
}

impl Settings {
    /// Every setting in force. Accounts and policies are an entry each.
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        self.collect(keys::ROOT, &self.layers.merged, "", &mut entries);
        let origin = match self.is_sandbox_by_default {
            true => "default",
            false => "file",
        };
        entries.extend(self.accounts.iter().enumerate().map(|(i, start)| Entry {
            key: format!("account[{i}]"),
            value: start.raw.shown(),
            origin: origin.to_owned(),
        }));
        entries.extend(self.policies.iter().enumerate().map(|(i, start)| Entry {
            key: format!("policy[{i}]"),
            value: start.raw.shown(),
            origin: "file".to_owned(),
        }));
        entries
    }

    fn collect(&self, keys: &[Key], table: &Value, pointer: &str, entries: &mut Vec<Entry>) {
        for key in keys {
            let pointer = below(pointer, key.name);
            match (key.form, table.get(key.name)) {
                (Form::List(..), _) | (_, None) => {}
                (Form::Table(inner), Some(table)) => {
                    self.collect(inner, table, &pointer, entries);
                }
                (form, Some(value)) => entries.push(Entry {
                    key: key_of(&pointer),
                    value: hidden(value, form),
                    origin: self.layers.origin(&pointer).to_string(),
                }),
            }
        }
    }

    /// Every setting in force, as TOML that could be read again (but for what
    /// is hidden), with its origin as a comment.
    pub fn show(&self) -> String {
        let mut text = String::new();
        let mut section = String::new();
        for entry in self.entries() {
            let (table, name) = match entry.key.rsplit_once('.') {
                Some((table, name)) => (table, name),
                None => ("", entry.key.as_str()),
            };
            if let Some((list, _)) = name.split_once('[') {
                section.clear();
                text.push_str(&format!("\n[[{list}]]\n"));
                for (name, value) in entry.value.as_object().into_iter().flatten() {
                    push_line(&mut text, name, value, &entry.origin);
                }
                continue;
            }
            if table != section {
                section = table.to_owned();
                let gap = if text.is_empty() { "" } else { "\n" };
                text.push_str(&format!("{gap}[{table}]\n"));
            }
            push_line(&mut text, name, &entry.value, &entry.origin);
        }
        text
    }
}

fn push_line(text: &mut String, name: &str, value: &Value, origin: &str) {
    let setting = format!("{name} = {}", toml_of(value));
    text.push_str(&format!("{setting:COMMENT_COLUMN$}  # {origin}\n"));
}

/// A value as it is written in TOML, on one line.
pub(crate) fn toml_of(value: &Value) -> String {
    match toml::Value::try_from(value) {
        Ok(value) => value.to_string(),
        Err(_) => format!("{:?}", value.to_string()),
    }
}

/// URLs may carry a password.
fn hidden(value: &Value, form: Form) -> Value {
    match (form, value) {
        (Form::Url(_), Value::String(url)) => Value::from(url_without_password(url)),
        (Form::Secret, _) => Value::from(crate::secret::HIDDEN),
        _ => value.clone(),
    }
}
