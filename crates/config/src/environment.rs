//! Settings from the environment and the command line.
//!
//! `OUTFLOW_SERVER__LISTEN=0.0.0.0:8025` sets `listen` of `[server]`, and
//! `OUTFLOW_RETRY__EMAIL__FIRST=1m` sets `first` of `[retry.email]`. Two
//! underscores stand between the steps, so that `OUTFLOW_TOKEN` and other
//! variables of the command line are not settings. Accounts and policies are
//! lists, and are set in the file or over the API. A variable that is empty sets
//! nothing.

use serde_json::{Map, Value};

use crate::check;
use crate::key::{Form, Key};
use crate::keys;
use crate::problem::{Problems, below};

const PREFIX: &str = "OUTFLOW_";
const STEP: &str = "__";

/// The steps of the key that a variable sets, if it sets one.
pub fn steps(variable: &str) -> Option<Vec<String>> {
    let rest = variable.strip_prefix(PREFIX)?;
    rest.contains(STEP)
        .then(|| rest.split(STEP).map(str::to_lowercase).collect())
}

/// Puts one setting into `layer` and says at which pointer; or notes why not.
pub fn set(
    layer: &mut Value,
    steps: &[String],
    text: &str,
    problems: &mut Problems,
) -> Option<String> {
    let mut keys = keys::ROOT;
    let mut pointer = String::new();
    let mut place = layer;
    for (i, step) in steps.iter().enumerate() {
        pointer = below(&pointer, step);
        let Some(key) = keys.iter().find(|key| key.name == step) else {
            problems.add(pointer, check::unknown(step, keys));
            return None;
        };
        let is_last = i + 1 == steps.len();
        let fields = as_table(place);
        match key.form {
            Form::Table(inner) if !is_last => {
                keys = inner;
                place = fields.entry(step.clone()).or_insert(Value::Null);
            }
            Form::Table(inner) => {
                let names: Vec<&str> = inner.iter().map(|key| key.name).collect();
                problems.add(
                    pointer,
                    format!("is a table: name one of {}", names.join(", ")),
                );
                return None;
            }
            Form::List(..) | Form::Match => {
                problems.add(pointer, "is a list: write it into the file, or use the API");
                return None;
            }
            _ if !is_last => {
                problems.add(pointer, "is no table: nothing is below it");
                return None;
            }
            _ => {
                fields.insert(step.clone(), typed(text, key));
                return Some(pointer);
            }
        }
    }
    None
}

fn as_table(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("it was made a table above")
}

/// Text in the form that the key wants; what does not read stays text, and is
/// refused by the check.
fn typed(text: &str, key: &Key) -> Value {
    let text = text.trim();
    let read = match key.form {
        Form::Flag => match text {
            "true" | "1" | "yes" | "on" => Some(Value::from(true)),
            "false" | "0" | "no" | "off" => Some(Value::from(false)),
            _ => None,
        },
        Form::Whole(..) => text.parse::<u64>().ok().map(Value::from),
        Form::Number(..) => {
            let number = text.parse().ok().and_then(serde_json::Number::from_f64);
            number.map(Value::Number)
        }
        _ => None,
    };
    read.unwrap_or_else(|| Value::from(text))
}
