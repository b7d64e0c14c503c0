//! Whether one value has the form that its key wants.

use std::net::{IpAddr, SocketAddr};

use jiff::Timestamp;
use outflow_core::limit::parse::{ParseError, RateOrShare};
use outflow_core::limit::spec::{LimitSpec, Rate};
use outflow_core::policy::matcher::Match;
use outflow_core::reply::{Reply, Stage};
use serde_json::Value;

use crate::check::spoken;
use crate::figure;
use crate::key::Form;
use crate::nearest::nearest;
use crate::secret::SECRET_BYTES_MAX;

/// No name is longer, in characters.
pub const NAME_MAX: usize = 128;
/// No text of one line is longer, in bytes.
const LINE_MAX: usize = 1_024;
/// A match has no more terms than there are scopes.
const TERMS_MAX: usize = 16;

/// Whether `value` has this form; else what to write.
pub fn read(value: &Value, form: &Form) -> Result<(), String> {
    let wrong = || match form {
        // What was written there may be a secret at the wrong place.
        Form::Secret | Form::Url(_) => format!("write {}", form.wanted()),
        _ => format!("write {}, not {}", form.wanted(), spoken(value)),
    };
    match value {
        Value::String(text) => is_text(text, form).unwrap_or_else(|| Err(wrong())),
        Value::Number(number) => {
            let fits = match form {
                Form::Whole(min, max) => number
                    .as_u64()
                    .is_some_and(|it| (*min..=*max).contains(&it)),
                Form::Number(min, max) => number
                    .as_f64()
                    .is_some_and(|it| (f64::from(*min)..=f64::from(*max)).contains(&it)),
                Form::Share => number
                    .as_f64()
                    .is_some_and(|it| figure::share_of_number(it).is_some()),
                Form::Reply => number
                    .as_u64()
                    .is_some_and(|it| reply(&it.to_string()).is_some()),
                Form::Rate => {
                    return rate(&number.to_string()).map(drop).map_err(one_line);
                }
                Form::PlainRate => {
                    return Rate::parse(&number.to_string()).map(drop).map_err(one_line);
                }
                Form::Limit => {
                    let limit = LimitSpec::parse(&number.to_string());
                    return limit.map(drop).map_err(one_line);
                }
                _ => false,
            };
            fits.then_some(()).ok_or_else(wrong)
        }
        Value::Bool(_) if matches!(form, Form::Flag) => Ok(()),
        Value::Object(terms) if matches!(form, Form::Match) => matched(terms).map(drop),
        _ => Err(wrong()),
    }
}

/// None if the text does not have the form and the usual words say it.
fn is_text(text: &str, form: &Form) -> Option<Result<(), String>> {
    let is_line = text.len() <= LINE_MAX && !text.is_empty() && !text.chars().any(char::is_control);
    let fits = match form {
        Form::Text(max) => {
            let is_plain = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
            text.chars().count() <= *max && text.chars().all(is_plain)
        }
        Form::Path => is_line,
        Form::Secret => (1..=SECRET_BYTES_MAX).contains(&text.len()),
        Form::Name => is_line && is_name(text),
        Form::Id => is_line && is_name(text) && text.chars().all(is_id_letter),
        Form::Word(words) => return Some(word(text, words)),
        Form::Span(min, max) => figure::span(text).is_some_and(|it| (*min..=*max).contains(&it)),
        Form::Size(min, max) => figure::size(text).is_some_and(|it| (*min..=*max).contains(&it)),
        Form::Share => figure::share(text).is_some(),
        Form::Rate if is_line => return Some(rate(text).map(drop).map_err(one_line)),
        Form::PlainRate if is_line => return Some(Rate::parse(text).map(drop).map_err(one_line)),
        Form::Limit if is_line => {
            return Some(LimitSpec::parse(text).map(drop).map_err(one_line));
        }
        Form::Listen => text.parse::<SocketAddr>().is_ok(),
        Form::Network => figure::network(text).is_some(),
        Form::Ip => text.parse::<IpAddr>().is_ok(),
        Form::Host => is_host(text),
        Form::Url(schemes) => {
            let scheme = text.split_once("://").filter(|(_, rest)| !rest.is_empty());
            is_line && scheme.is_some_and(|(scheme, _)| schemes.contains(&scheme))
        }
        Form::Variable => is_line && !text.contains(['=', ' ']),
        Form::Time => time(text).is_some(),
        Form::Reply => is_line && reply(text).is_some(),
        _ => false,
    };
    fits.then_some(Ok(()))
}

fn word(text: &str, words: &'static [&'static str]) -> Result<(), String> {
    if words.contains(&text) {
        return Ok(());
    }
    let wanted = Form::Word(words).wanted();
    let text: String = text.chars().take(64).collect();
    Err(match nearest(&text, words.iter().copied()) {
        Some(meant) => format!("{text:?} is none of {wanted}: did you mean {meant}?"),
        None => format!("write {wanted}, not {text:?}"),
    })
}

fn is_name(text: &str) -> bool {
    text.chars().count() <= NAME_MAX && text != "*" && text.trim() == text
}

fn is_id_letter(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '.' | '_' | '-' | '+' | '@' | ':')
}

/// A name of labels, or an address.
fn is_host(text: &str) -> bool {
    let is_label = |label: &str| {
        let letters = label
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
        (1..=63).contains(&label.len()) && letters && !label.starts_with('-')
    };
    let name = text.strip_suffix('.').unwrap_or(text);
    text.parse::<IpAddr>().is_ok() || (text.len() <= 253 && name.split('.').all(is_label))
}

/// Reads a point of time as nanoseconds since 1970.
pub fn time(text: &str) -> Option<i64> {
    let time = text.parse::<Timestamp>().ok()?;
    i64::try_from(time.as_nanosecond()).ok()
}

/// Reads `40/s`, `40/s spaced`, `10%`, and whether it is spaced.
pub fn rate(text: &str) -> Result<(RateOrShare, bool), ParseError> {
    match text.trim_end().strip_suffix(" spaced") {
        Some(plain) => RateOrShare::parse(plain.trim_end()).map(|rate| (rate, true)),
        None => RateOrShare::parse(text).map(|rate| (rate, false)),
    }
}

/// Reads `451 4.3.0 Try later` or a bare `429`, as said of the whole message.
pub fn reply(text: &str) -> Option<Reply> {
    let (code, rest) = text.split_once([' ', '-']).unwrap_or((text, ""));
    let code = code.parse::<u16>().ok()?;
    (200..=599)
        .contains(&code)
        .then(|| Reply::said(Stage::Data, code, rest))
}

/// Reads what a policy governs.
pub fn matched(terms: &serde_json::Map<String, Value>) -> Result<Match, String> {
    if terms.len() > TERMS_MAX {
        return Err(format!("a match has at most {TERMS_MAX} terms"));
    }
    let mut pairs = Vec::new();
    for (scope, name) in terms {
        let name = name
            .as_str()
            .filter(|name| !name.chars().any(char::is_control));
        let Some(name) = name.filter(|name| name.len() <= LINE_MAX) else {
            return Err(format!(
                "{scope:?} must be a name, or \"*\" for each of them"
            ));
        };
        pairs.push((scope.as_str(), name));
    }
    Match::from_pairs(pairs).map_err(|error| error.to_string())
}

/// The error points with a caret below the text; here it has to do in a line.
fn one_line(error: ParseError) -> String {
    let before: String = error.text.chars().take(80).collect();
    let rest = error.text.get(error.at..).unwrap_or_default();
    let place = match rest.trim() {
        "" => "at its end".to_owned(),
        rest => format!("at {:?}", rest.chars().take(40).collect::<String>()),
    };
    format!(
        "{before:?} cannot be read: {place} expected {}",
        error.expected
    )
}
