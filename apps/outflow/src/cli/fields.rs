//! Fields of accounts and policies on the command line: `port=587`,
//! `limits='14/s, 600/min'`, `sandbox.latency=20ms`.
//!
//! The table of keys, which the server checks them against, says what is a
//! number and what is text: a password of digits is still text.

use std::io::Read as _;

use outflow_config::key::{Form, Key};
use serde_json::{Map, Value};

use super::failure::Failure;

/// No secret is longer.
const SECRET_BYTES_MAX: u64 = 4_096;
/// Tables within tables.
const DEPTH_MAX: usize = 8;

/// Reads all fields into one object.
pub fn read(keys: &[Key], fields: &[String]) -> Result<Value, Failure> {
    let mut object = Map::new();
    for field in fields {
        let (name, text) = field.split_once('=').ok_or_else(|| {
            Failure::WrongUse(format!(
                "{field:?}: write a field as NAME=VALUE, as port=587"
            ))
        })?;
        let path: Vec<&str> = name.split('.').collect();
        if path.len() > DEPTH_MAX || path.iter().any(|step| step.is_empty()) {
            return Err(Failure::WrongUse(format!("{name:?} is no name of a field")));
        }
        let form = form(keys, &path);
        let value = match (form, text) {
            (Some(Form::Secret), "-") => Value::String(secret()?),
            (form, text) => value(form, text),
        };
        insert(&mut object, &path, value)
            .ok_or_else(|| Failure::WrongUse(format!("{name}: is said twice")))?;
    }
    Ok(Value::Object(object))
}

/// The form of the field at this path.
fn form(keys: &[Key], path: &[&str]) -> Option<Form> {
    let (first, rest) = path.split_first()?;
    let key = keys.iter().find(|key| key.name == *first)?;
    match (key.form, rest) {
        (form, []) => Some(form),
        (form, rest) => self::form(table(form)?, rest),
    }
}

fn table(form: Form) -> Option<&'static [Key]> {
    match form {
        Form::Table(keys) => Some(keys),
        Form::Either(forms) => forms.iter().find_map(|form| table(*form)),
        _ => None,
    }
}

/// A value as the form wants it; what does not fit is left to the server,
/// which says what is wrong with it.
fn value(form: Option<Form>, text: &str) -> Value {
    let text_value = || Value::String(text.to_owned());
    let json = || serde_json::from_str::<Value>(text).ok();
    if text == "null" {
        return Value::Null;
    }
    match form {
        None | Some(Form::Table(_) | Form::Either(_) | Form::Match) => {
            json().unwrap_or_else(text_value)
        }
        Some(Form::List(..)) => match json() {
            Some(list @ Value::Array(_)) => list,
            _ => {
                let entries = text.split(',').map(str::trim);
                let entries = entries.filter(|entry| !entry.is_empty());
                entries.map(Value::from).collect()
            }
        },
        Some(
            Form::Whole(..)
            | Form::Number(..)
            | Form::Flag
            | Form::Share
            | Form::Rate
            | Form::PlainRate
            | Form::Reply
            | Form::Size(..),
        ) => json()
            .filter(|value| value.is_number() || value.is_boolean())
            .unwrap_or_else(text_value),
        Some(_) => text_value(),
    }
}

fn insert(object: &mut Map<String, Value>, path: &[&str], value: Value) -> Option<()> {
    let (first, rest) = path.split_first()?;
    if rest.is_empty() {
        return match object.insert((*first).to_owned(), value) {
            None => Some(()),
            Some(_) => None,
        };
    }
    let inner = object
        .entry(*first)
        .or_insert_with(|| Value::Object(Map::new()));
    insert(inner.as_object_mut()?, rest, value)
}

/// A secret from stdin, so that it does not show in the list of processes.
fn secret() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin()
        .take(SECRET_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(|error| Failure::Other(format!("stdin cannot be read: {error}")))?;
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}
