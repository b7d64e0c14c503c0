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

/// Whether two names have a registered owner in common.
pub fn are_kin(one: &str, other: &str) -> bool {
    owner(one) == owner(other)
}

/// The part of a name that somebody registered, by the list of public suffixes:
/// `example.co.uk` of `mail.example.co.uk`. A public suffix is its own.
pub fn owner(name: &str) -> &str {
    psl::domain_str(name).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::{are_kin, is_name, is_within, owner};

    #[test]
    fn names_belong_to_names() {
        assert!(is_within("a.example.com", "example.com"));
        assert!(!is_within("badexample.com", "example.com"));
        assert!(are_kin("mail.example.com", "bounce.example.com"));
        assert!(!are_kin("example.com", "example.org"));
        assert!(!are_kin("a.co.uk", "b.co.uk"));
        assert!(are_kin("x.a.co.uk", "y.a.co.uk"));
        assert!(!are_kin("com", "example.com"));
        assert!(!are_kin("co.uk", "a.co.uk"));
        assert!(!are_kin("one.github.io", "other.github.io"));
        for (name, wanted) in [
            ("a.b.example.com", "example.com"),
            ("a.b.example.test", "example.test"),
            ("foo.gov.uk", "foo.gov.uk"),
            ("gov.uk", "gov.uk"),
            ("a.city.kawasaki.jp", "city.kawasaki.jp"),
            ("localhost", "localhost"),
            ("", ""),
        ] {
            assert_eq!(owner(name), wanted, "{name}");
        }
        for wrong in ["", "a..b", "a b.example", "%{i}.example", "\u{e4}.example"] {
            assert!(!is_name(wrong), "{wrong}");
        }
        assert!(is_name("_dmarc.example.com"));
    }
}
