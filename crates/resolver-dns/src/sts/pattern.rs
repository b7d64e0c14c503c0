//! Which servers a policy names.

use crate::domain::normal;

/// What a name may be long.
const NAME_MAX: usize = 253;
const LABEL_MAX: usize = 63;

/// A name of a server, or all names with one label more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    name: String,
    is_wild: bool,
}

impl Pattern {
    /// Reads `mx.example.com` or `*.example.com`.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, is_wild) = match text.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (text, false),
        };
        if name.len() > NAME_MAX {
            return None;
        }
        let name = normal(name);
        let is_name = name.len() <= NAME_MAX && name.split('.').all(is_label);
        is_name.then_some(Self { name, is_wild })
    }

    /// Whether a server is meant. The star stands for one label, no more and no
    /// less.
    pub fn matches(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.');
        let host = match self.is_wild {
            true => match host.split_once('.') {
                Some((first, rest)) if !first.is_empty() => rest,
                _ => return false,
            },
            false => host,
        };
        host.eq_ignore_ascii_case(&self.name)
    }

    /// How much it takes to remember it.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.name.len()
    }
}

fn is_label(label: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=LABEL_MAX).contains(&label.len()) && label.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_one_label() {
        let matches = |pattern, host| Pattern::parse(pattern).unwrap().matches(host);
        assert!(matches("mx.example.com", "mx.example.com"));
        assert!(matches("MX.Example.com.", "mx.example.COM."));
        assert!(matches("b\u{fc}cher.example", "xn--bcher-kva.example"));
        assert!(!matches("mx.example.com", "mx2.example.com"));
        assert!(!matches("example.com", "mx.example.com"));
        assert!(matches("*.example.com", "mx.example.com"));
        assert!(!matches("*.example.com", "example.com"));
        assert!(!matches("*.example.com", "a.b.example.com"));
        assert!(!matches("*.example.com", ".example.com"));
        assert!(!matches("*.example.com", "mx.example.com.evil.example"));
        assert!(!matches("*.example.com", ""));
    }

    #[test]
    fn what_is_no_name_is_no_pattern() {
        let long = format!("{}.example", "a".repeat(64));
        let longer = format!("{}example", "a.".repeat(130));
        for text in [
            "",
            "*",
            "*.",
            "*.*.example",
            "mx.*.example",
            "*mx.example",
            ".example",
            "mx..example",
            "mx example",
            "192.0.2.1:25",
            "[192.0.2.1]",
            &long,
            &longer,
        ] {
            assert_eq!(Pattern::parse(text), None, "{text}");
        }
    }
}
