//! Changing some fields of a document (RFC 7386, JSON merge patch).

use serde_json::{Map, Value};

/// `base` with what `patch` says: null takes a field away, tables are merged,
/// everything else is replaced as a whole. Documents are checked for depth
/// where they are read, so the depth here is bounded by the reader's.
pub fn merge(base: &Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else {
        return patch.clone();
    };
    let mut fields = match base {
        Value::Object(fields) => fields.clone(),
        _ => Map::new(),
    };
    for (name, change) in changes {
        if change.is_null() {
            fields.remove(name);
            continue;
        }
        let changed = merge(fields.get(name).unwrap_or(&Value::Null), change);
        fields.insert(name.clone(), changed);
    }
    Value::Object(fields)
}
