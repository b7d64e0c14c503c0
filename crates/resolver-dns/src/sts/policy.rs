//! What a domain demands of whoever sends to it.

use std::time::Duration;

use super::pattern::Pattern;

/// What a policy may be long (RFC 8461, 3.3).
pub(super) const BYTES_MAX: usize = 64 << 10;
/// How many patterns it may have, so that a remembered one stays small.
const PATTERNS_MAX: usize = 256;
/// The longest time that it may hold: a year.
const AGE_MAX_SECS: u64 = 31_557_600;
/// How many digits that has at most.
const AGE_DIGITS_MAX: usize = 10;

/// How a policy is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// What does not fit it is not sent.
    Enforce,
    /// What does not fit it is sent all the same.
    Testing,
    /// There is none any more.
    None,
}

/// A policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How it is meant.
    pub mode: Mode,
    /// The servers that it names.
    pub servers: Vec<Pattern>,
    /// How long it holds.
    pub max_age: Duration,
}

/// Why a text is no policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// There is a bound.
    #[error("the policy is too long")]
    TooLong,
    /// It consists of text.
    #[error("the policy is not UTF-8")]
    NotText,
    /// This line.
    #[error("line {0} of the policy is malformed")]
    Line(usize),
    /// Something must be there.
    #[error("the policy has no {0}")]
    Missing(&'static str),
}

impl Policy {
    /// Reads a policy. Keys that are not known are left to those who know them;
    /// of a key that comes twice the first counts.
    pub fn parse(bytes: &[u8]) -> Result<Self, PolicyError> {
        if bytes.len() > BYTES_MAX {
            return Err(PolicyError::TooLong);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| PolicyError::NotText)?;
        let (mut version, mut mode, mut max_age) = (None, None, None);
        let mut servers = Vec::new();
        for (line, no) in text.split('\n').zip(1..) {
            let malformed = PolicyError::Line(no);
            let line = line.strip_suffix('\r').unwrap_or(line);
            if line.trim().is_empty() {
                continue;
            }
            let (key, value) = line.split_once(':').ok_or(malformed)?;
            let value = value.trim_matches([' ', '\t']);
            match key {
                "version" if version.is_none() => {
                    version = Some((value == "STSv1").then_some(()).ok_or(malformed)?);
                }
                "mode" if mode.is_none() => mode = Some(mode_of(value).ok_or(malformed)?),
                "max_age" if max_age.is_none() => max_age = Some(age(value).ok_or(malformed)?),
                "mx" if servers.len() >= PATTERNS_MAX => return Err(PolicyError::TooLong),
                "mx" => servers.push(Pattern::parse(value).ok_or(malformed)?),
                key if is_key(key) => (),
                _ => return Err(malformed),
            }
        }
        version.ok_or(PolicyError::Missing("version"))?;
        let mode = mode.ok_or(PolicyError::Missing("mode"))?;
        let max_age = max_age.ok_or(PolicyError::Missing("max_age"))?;
        if servers.is_empty() && mode != Mode::None {
            return Err(PolicyError::Missing("mx"));
        }
        Ok(Self {
            mode,
            servers,
            max_age,
        })
    }

    /// Whether a server is one that the policy names.
    pub fn names(&self, host: &str) -> bool {
        self.servers.iter().any(|pattern| pattern.matches(host))
    }

    /// How much it takes to remember it.
    pub(super) fn bytes(&self) -> usize {
        let servers = self.servers.iter().map(Pattern::bytes);
        size_of::<Self>() + servers.sum::<usize>()
    }
}

fn mode_of(text: &str) -> Option<Mode> {
    match text {
        "enforce" => Some(Mode::Enforce),
        "testing" => Some(Mode::Testing),
        "none" => Some(Mode::None),
        _ => None,
    }
}

fn age(text: &str) -> Option<Duration> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let fits = (1..=AGE_DIGITS_MAX).contains(&text.len());
    let secs: u64 = text.parse().ok().filter(|_| is_number && fits)?;
    Some(Duration::from_secs(secs.min(AGE_MAX_SECS)))
}

fn is_key(key: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    !key.is_empty() && key.len() <= 32 && key.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: &str = "version: STSv1\r\nmode: enforce\r\nmx: mail.example.com\r\n\
                         mx: *.example.net\r\nmx: backupmx.example.com\r\nmax_age: 604800\r\n";

    fn parse(text: &str) -> Result<Policy, PolicyError> {
        Policy::parse(text.as_bytes())
    }

    #[test]
    fn a_policy_is_read() {
        let policy = parse(USUAL).unwrap();
        assert_eq!(policy.mode, Mode::Enforce);
        assert_eq!(policy.max_age, Duration::from_secs(604_800));
        assert_eq!(policy.servers.len(), 3);
        assert!(policy.names("mx1.example.net") && policy.names("mail.example.com"));
        assert!(!policy.names("mx.example.com") && !policy.names("example.net"));
        assert_eq!(parse(&USUAL.replace("\r\n", "\n")), Ok(policy.clone()));
        assert_eq!(parse(USUAL.trim_end()), Ok(policy.clone()));
        assert_eq!(
            parse(&USUAL.replace(": ", ":\t ").replace("\r\n", "  \r\n")),
            Ok(policy.clone())
        );
        let more = format!("{USUAL}\r\nmode: none\r\nmax_age: 1\r\nwords: \u{fc}: b\r\nempty:\r\n");
        assert_eq!(parse(&more), Ok(policy), "the first of each counts");
        let testing = parse(&USUAL.replace("enforce", "testing")).unwrap();
        assert_eq!(testing.mode, Mode::Testing);
        let none = parse("version: STSv1\nmode: none\nmax_age: 0\n").unwrap();
        assert_eq!((none.mode, none.max_age), (Mode::None, Duration::ZERO));
    }

    #[test]
    fn no_policy_holds_for_more_than_a_year() {
        let policy = parse(&USUAL.replace("604800", "9999999999")).unwrap();
        assert_eq!(policy.max_age, Duration::from_secs(31_557_600));
    }

    #[test]
    fn what_is_malformed_is_no_policy() {
        for (from, to, error) in [
            ("STSv1", "STSv2", PolicyError::Line(1)),
            ("version: STSv1\r\n", "", PolicyError::Missing("version")),
            ("mode: enforce\r\n", "", PolicyError::Missing("mode")),
            ("enforce", "Enforce", PolicyError::Line(2)),
            ("max_age: 604800\r\n", "", PolicyError::Missing("max_age")),
            ("604800", "-1", PolicyError::Line(6)),
            ("604800", "+1", PolicyError::Line(6)),
            ("604800", "1d", PolicyError::Line(6)),
            ("604800", "", PolicyError::Line(6)),
            ("604800", "00000000001", PolicyError::Line(6)),
            ("mail.example.com", "*", PolicyError::Line(3)),
            ("mail.example.com", "", PolicyError::Line(3)),
            ("mx: mail", "mx mail", PolicyError::Line(3)),
            ("mx: mail", " mx: mail", PolicyError::Line(3)),
            ("mx: mail", ": mail", PolicyError::Line(3)),
        ] {
            let text = USUAL.replace(from, to);
            assert_eq!(parse(&text), Err(error), "{text}");
        }
        let unnamed = "version: STSv1\nmode: testing\nmax_age: 9\n";
        assert_eq!(parse(unnamed), Err(PolicyError::Missing("mx")));
        assert_eq!(parse(""), Err(PolicyError::Missing("version")));
        assert_eq!(parse("<html>"), Err(PolicyError::Line(1)));
        assert_eq!(Policy::parse(b"\xff"), Err(PolicyError::NotText));
    }

    #[test]
    fn a_policy_has_bounds() {
        let many = USUAL.to_owned() + &"mx: a.example\n".repeat(254);
        assert_eq!(parse(&many), Err(PolicyError::TooLong));
        let long = USUAL.to_owned() + &"x: y\n".repeat(14_000);
        assert_eq!(parse(&long), Err(PolicyError::TooLong));
        assert!(parse(&long[..60_000]).is_ok());
    }
}
