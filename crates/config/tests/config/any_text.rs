//! Whatever is written, it is read or refused, never a panic.

use outflow_config::{RawAccount, RawPolicy, Settings, default_toml, figure};
use outflow_core::time::Nanos;
use proptest::prelude::*;
use serde_json::Value;

/// The default file, and one with accounts and policies, to be damaged.
fn whole_file() -> String {
    let account = "[[account]]\nid = \"a\"\nhost = \"h\"\nlimits = [\"14/s burst 28\", 5]\n\
                   dkim = { domain = \"d\", selector = \"s\", key_file = \"k\" }\n\
                   [[account]]\nid = \"b\"\ntransport = \"sandbox\"\n\
                   sandbox = { latency = \"5ms\", failures = [{ share = 0.1, kind = \"rate\" }] }\n\
                   [[policy]]\nmatch = { isp = \"google\" }\nrate = \"2/s\"\nburst = 5\n";
    format!("{}\n{account}", default_toml())
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,20}".prop_map(Value::from),
        "[0-9.]{0,25}[a-zA-Z%/@ ]{0,12}".prop_map(Value::from),
    ];
    let words = "(id|host|port|limits|sandbox|latency|failures|share|reply|kind|match|rate|burst|dkim|tls|\\PC{0,6})";
    leaf.prop_recursive(4, 32, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(words, inner, 0..6).prop_map(Value::from_iter),
        ]
    })
}

proptest! {
    #[test]
    fn any_text(text in any::<String>()) {
        let _ = Settings::parse(&text).map_err(|error| error.to_string());
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Settings::parse(&String::from_utf8_lossy(&bytes)).map_err(|error| error.to_string());
    }

    #[test]
    fn a_damaged_file(
        at in any::<prop::sample::Index>(), cut in 0_usize..30,
        put in "[\\[\\]{}=\"'#,.\\n0-9a-z%/-]{0,12}",
    ) {
        let whole: Vec<char> = whole_file().chars().collect();
        let start = at.index(whole.len());
        let end = (start + cut).min(whole.len());
        let damaged: String = whole[..start].iter().chain(&put.chars().collect::<Vec<_>>())
            .chain(&whole[end..]).collect();
        match Settings::parse(&damaged) {
            Ok(settings) => prop_assert!(!settings.show().is_empty()),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn any_document(value in any_json()) {
        for read in [
            RawAccount::read(&value).and_then(|raw| raw.validate().map(drop)),
            RawPolicy::read(&value).and_then(|raw| raw.validate().map(drop)),
        ] {
            if let Err(wrong) = read {
                prop_assert!(!wrong.errors.is_empty() && wrong.errors.len() <= 100);
            }
        }
    }

    #[test]
    fn lengths_and_sizes_are_written_so_that_they_read_the_same(number in any::<u64>(), unit in 0_u32..12) {
        let number = number / 10_u64.pow(unit) * 10_u64.pow(unit);
        prop_assert_eq!(figure::span(&figure::span_text(Nanos(number))), Some(Nanos(number)));
        prop_assert_eq!(figure::size(&figure::size_text(number)), Some(number));
    }
}
