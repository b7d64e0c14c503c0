//! Holds what was written against the table of keys.
//!
//! Works on plain JSON, whatever it was written in, so that each problem has a
//! pointer. What does not fit is noted and taken out, so that the rest can be
//! read; afterwards the raw types can be read from it without error.

use serde_json::{Map, Value};

use crate::form;
use crate::key::{Form, Key};
use crate::nearest::nearest;
use crate::problem::{Problems, below};

/// Checks a table against its keys. A null is as good as nothing, and goes.
pub fn table(value: &mut Value, keys: &[Key], pointer: &str, problems: &mut Problems) {
    let Value::Object(fields) = value else {
        problems.add(pointer, format!("write a table, not {}", spoken(value)));
        *value = Value::Object(Map::new());
        return;
    };
    fields.retain(|name, field| {
        let pointer = below(pointer, name);
        let Some(key) = keys.iter().find(|key| key.name == name) else {
            problems.add(pointer, unknown(name, keys));
            return false;
        };
        !field.is_null() && is_sound(field, &key.form, &pointer, problems)
    });
}

/// What to say of a key that nobody knows.
pub fn unknown(name: &str, keys: &[Key]) -> String {
    let names = keys.iter().map(|key| key.name);
    let name: String = name.chars().take(64).collect();
    match nearest(&name, names.clone()) {
        Some(meant) => format!("unknown key {name:?}: did you mean {meant}?"),
        None => {
            let names: Vec<&str> = names.collect();
            format!("unknown key {name:?}: use {}", names.join(", "))
        }
    }
}

/// Whether a value can stay. Of lists and tables only what is wrong in them
/// goes.
fn is_sound(value: &mut Value, form: &Form, pointer: &str, problems: &mut Problems) -> bool {
    match (form, value) {
        // What is no table is emptied, not removed, so that the entries behind
        // it keep their places.
        (Form::Table(keys), value) => {
            table(value, keys, pointer, problems);
            true
        }
        (Form::List(form, max), Value::Array(entries)) => {
            if entries.len() > *max {
                let count = entries.len();
                problems.add(pointer, format!("{count} entries: write at most {max}"));
                return false;
            }
            let mut at = 0;
            entries.retain_mut(|entry| {
                let pointer = below(pointer, &at.to_string());
                at += 1;
                is_sound(entry, form, &pointer, problems)
            });
            true
        }
        (Form::Either(forms), value) => is_either(value, forms, pointer, problems),
        (form, value) => match form::read(value, form) {
            Ok(()) => true,
            Err(detail) => {
                problems.add(pointer, detail);
                false
            }
        },
    }
}

/// A table or a list is held against the form that is one, everything else
/// against the others.
fn is_either(
    value: &mut Value,
    forms: &'static [Form],
    pointer: &str,
    problems: &mut Problems,
) -> bool {
    let nested = forms.iter().find(|form| match form {
        Form::Table(_) => value.is_object(),
        Form::List(..) => value.is_array(),
        _ => false,
    });
    if let Some(nested) = nested {
        return is_sound(value, nested, pointer, problems);
    }
    let fits = forms.iter().any(|form| form::read(value, form).is_ok());
    if !fits {
        let wanted = Form::Either(forms).wanted();
        problems.add(pointer, format!("write {wanted}, not {}", spoken(value)));
    }
    fits
}

/// A value as it is spoken of in a complaint: shortened, and only its kind
/// where it is no plain value.
pub fn spoken(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => {
            let short: String = text.chars().take(80).collect();
            let dots = if short.len() < text.len() { "..." } else { "" };
            format!("{short:?}{dots}")
        }
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a table".to_owned(),
    }
}
