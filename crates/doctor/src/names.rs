//! Domain names: one form, and who belongs to whom.

/// Lower case, without a dot at the end.
pub fn normal(name: &str) -> String {
    name.trim().trim_end_matches('.').to_ascii_lowercase()
}

/// Whether DNS can be asked for it.
pub fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (1..=63).contains(&label.len()) && label.bytes().all(fits)
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

/// Whether `name` is `above` or below it.
pub fn is_within(name: &str, above: &str) -> bool {
    let rest = name.strip_suffix(above);
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// The name and those above it, down to two labels.
pub fn upwards(name: &str) -> impl Iterator<Item = &str> {
    let mut next = Some(name);
    std::iter::from_fn(move || {
        let name = next?;
        next = name.split_once('.').map(|(_, above)| above);
        next = next.filter(|above| above.contains('.'));
        Some(name)
    })
}

/// Whether two names have a registered owner in common, as far as that can be
/// said without a list of registries: one is above the other, or they share
/// their last two labels, or three below a short pair such as `co.uk`.
pub fn are_kin(one: &str, other: &str) -> bool {
    is_within(one, other) && other.contains('.')
        || is_within(other, one) && one.contains('.')
        || owner(one) == owner(other)
}

fn owner(name: &str) -> &str {
    let mut labels = name.rsplit('.');
    let (top, second) = (labels.next(), labels.next());
    let is_registry = |second: &str, top: &str| {
        let usual = ["ac", "co", "com", "edu", "gov", "net", "ne", "or", "org"];
        top.len() == 2 && usual.contains(&second)
    };
    let count = match (second, top) {
        (Some(second), Some(top)) if is_registry(second, top) => 3,
        _ => 2,
    };
    let dots = name.rmatch_indices('.').map(|(at, _)| at);
    match dots.take(count).nth(count - 1) {
        Some(at) => name.get(at + 1..).unwrap_or(name),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::{are_kin, is_name, is_within, upwards};

    #[test]
    fn names_belong_to_names() {
        assert!(is_within("a.example.com", "example.com"));
        assert!(!is_within("badexample.com", "example.com"));
        assert!(are_kin("mail.example.com", "bounce.example.com"));
        assert!(!are_kin("example.com", "example.org"));
        assert!(!are_kin("a.co.uk", "b.co.uk"));
        assert!(are_kin("x.a.co.uk", "y.a.co.uk"));
        assert!(!are_kin("com", "example.com"));
        let up: Vec<&str> = upwards("a.b.example.com").collect();
        assert_eq!(up, ["a.b.example.com", "b.example.com", "example.com"]);
        for wrong in ["", "a..b", "a b.example", "%{i}.example", "\u{e4}.example"] {
            assert!(!is_name(wrong), "{wrong}");
        }
        assert!(is_name("_dmarc.example.com"));
    }
}
