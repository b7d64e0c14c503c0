//! The table of keys as JSON Schema, for the API's document.
//!
//! A schema says what one value looks like. Rules between fields, such as a
//! sandbox that has no host, are for `validate` to say.

use serde_json::{Map, Value, json};

use crate::form::NAME_MAX;
use crate::key::{Form, Key};
use crate::keys;
use crate::secret::SECRET_BYTES_MAX;

/// No control characters.
const LINE: &str = r"^[^\u0000-\u001f\u007f-\u009f]+$";
/// None but line breaks and tabs.
const TEXT: &str = r"^[^\u0000-\u0008\u000b-\u001f\u007f-\u009f]*$";
/// The same, without a space at either end, and not `*`.
const NAME: &str = r"^([^\s\u0000-\u001f\u007f-\u009f*]|[^\s\u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f])$";
const ID: &str = r"^[A-Za-z0-9._+@:-]+$";
const HOST: &str = r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,30}(\.[A-Za-z0-9_][A-Za-z0-9_-]{0,30}){0,5}$";
const SPAN: &str = r"^[0-9]{1,9}(\.[0-9]{1,3})?(ms|s|m|h|d)$";
const SIZE: &str = r"^[0-9]{1,9}(k|K|M|G)?i?B?$";
const SHARE: &str = r"^[0-9]{1,2}(\.[0-9])?%$";
const AMOUNT: &str = r"([1-9][0-9]{0,5}(\.[0-9]{1,2})?|0\.[1-9])[kM]?";
const UNIT: &str = r"(/(s|sec|m|min|h|hour|d|day))?";
const REPLY: &str = r"^[2-5][0-9]{2}([ -][ -~]{0,200})?$";

/// The fields of an account, as they are sent to the API.
pub fn account_schema() -> Value {
    table(keys::ACCOUNT)
}

/// The fields of a policy, as they are sent to the API.
pub fn policy_schema() -> Value {
    table(keys::POLICY)
}

fn table(keys: &[Key]) -> Value {
    let properties = keys.iter().map(|key| {
        let mut schema = or_null(of_form(&key.form));
        if let Value::Object(fields) = &mut schema {
            fields.insert("description".to_owned(), key.doc.into());
        }
        (key.name.to_owned(), schema)
    });
    json!({
        "type": "object",
        "properties": properties.collect::<Map<_, _>>(),
        "additionalProperties": false,
    })
}

/// A null is as good as nothing.
fn or_null(schema: Value) -> Value {
    json!({ "oneOf": [schema, { "type": "null" }] })
}

fn of_form(form: &Form) -> Value {
    let text = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    let line = |max: usize, pattern: &str| json!({ "type": "string", "minLength": 1, "maxLength": max, "pattern": pattern });
    let or_number = |pattern: String| {
        let number = json!({ "type": "number", "exclusiveMinimum": 0 });
        json!({ "anyOf": [text(&pattern), number] })
    };
    match form {
        Form::Text(max) => json!({ "type": "string", "maxLength": max, "pattern": TEXT }),
        Form::Path => line(256, LINE),
        Form::Name => line(NAME_MAX, NAME),
        Form::Id => line(NAME_MAX, ID),
        Form::Word(words) => json!({ "type": "string", "enum": words }),
        Form::Whole(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Form::Number(min, max) => json!({ "type": "number", "minimum": min, "maximum": max }),
        Form::Flag => json!({ "type": "boolean" }),
        Form::Span(..) => text(SPAN),
        Form::Size(..) => text(SIZE),
        Form::Share => json!({
            "anyOf": [text(SHARE), { "type": "number", "minimum": 0, "maximum": 1 }],
        }),
        Form::Rate => or_number(format!("^({AMOUNT}{UNIT}( spaced)?|[1-9][0-9]?%)$")),
        Form::PlainRate => or_number(format!("^{AMOUNT}{UNIT}$")),
        Form::Limit => or_number(format!(
            "^({AMOUNT}{UNIT}( spaced| burst [1-9][0-9]{{0,5}})?\
             |[1-9][0-9]{{0,5}}/day@(UTC|America/Los_Angeles|[A-Z][A-Za-z_/]+)\
             |[1-9][0-9]{{0,5}} concurrent)$"
        )),
        Form::Listen => line(64, LINE),
        Form::Ip => json!({
            "anyOf": [{ "type": "string", "format": "ipv4" }, { "type": "string", "format": "ipv6" }],
        }),
        Form::Network => json!({
            "anyOf": [
                { "type": "string", "format": "ipv4" },
                { "type": "string", "format": "ipv6" },
                line(64, r"^[0-9A-Fa-f.:]+/[0-9]{1,3}$"),
            ],
        }),
        Form::Host => line(253, HOST),
        Form::Url(schemes) => line(256, &format!("^({})://.+$", schemes.join("|"))),
        Form::Variable => line(256, r"^[A-Za-z_][A-Za-z0-9_]*$"),
        Form::Time => json!({ "type": "string", "format": "date-time" }),
        Form::Reply => json!({
            "anyOf": [text(REPLY), { "type": "integer", "minimum": 200, "maximum": 599 }],
        }),
        Form::Match => json!({
            "type": "object",
            "additionalProperties": line(NAME_MAX, LINE),
            "minProperties": 1,
        }),
        Form::Secret => json!({
            "type": "string", "minLength": 1, "maxLength": SECRET_BYTES_MAX, "writeOnly": true,
        }),
        Form::Table(keys) => table(keys),
        Form::List(form, max) => json!({
            "type": "array", "items": of_form(form), "maxItems": max,
        }),
        Form::Either(forms) => json!({
            "anyOf": forms.iter().map(of_form).collect::<Vec<_>>(),
        }),
    }
}
