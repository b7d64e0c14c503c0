//! What an answer says of limits in its headers: `RateLimit-Policy` and
//! `RateLimit`, as the IETF drafts them, and `Retry-After`.

use axum::http::{HeaderMap, HeaderValue, header};
use outflow_core::throttle::look::Look;
use outflow_core::time::{NANOS_PER_SECOND, Nanos};

/// The most limits that are spoken of.
const SHOWN_MAX: usize = 16;

/// A text as a string of structured fields: printable ASCII, two characters
/// escaped; whatever else there is, is shown as `?`.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            ' '..='~' => quoted.push(letter),
            _ => quoted.push('?'),
        }
    }
    quoted.push('"');
    quoted
}

fn seconds_up(span: Nanos) -> u64 {
    span.0.div_ceil(NANOS_PER_SECOND)
}

/// Speaks of limits, each with its key.
pub fn tell(headers: &mut HeaderMap, limits: &[(&str, Look)]) {
    let shown = limits.iter().take(SHOWN_MAX);
    let policies = shown.clone().map(|(key, look)| {
        let quota = look
            .shape
            .rate
            .map_or(look.shape.capacity, |rate| rate.count);
        let window = look.shape.rate.map(|rate| seconds_up(rate.per).max(1));
        match window {
            Some(window) => format!("{};q={quota};w={window}", quoted(key)),
            None => format!("{};q={quota}", quoted(key)),
        }
    });
    let states = shown.map(|(key, look)| {
        let (left, resets) = (look.available, seconds_up(look.full_in));
        match resets {
            0 => format!("{};r={left}", quoted(key)),
            _ => format!("{};r={left};t={resets}", quoted(key)),
        }
    });
    let lists = [
        ("ratelimit-policy", policies.collect::<Vec<_>>().join(", ")),
        ("ratelimit", states.collect::<Vec<_>>().join(", ")),
    ];
    for (name, list) in lists {
        if let Ok(value) = HeaderValue::from_str(&list)
            && !list.is_empty()
        {
            headers.insert(name, value);
        }
    }
}

/// Says when to come back, in whole seconds, at least one.
pub fn tell_retry(headers: &mut HeaderMap, after: Nanos) {
    headers.insert(
        header::RETRY_AFTER,
        HeaderValue::from(seconds_up(after).max(1)),
    );
}

#[cfg(test)]
mod tests {
    use outflow_core::limit::spec::LimitSpec;

    use super::*;

    #[test]
    fn limits_are_told_as_structured_fields() {
        let look = |text: &str, available, full_in| Look {
            shape: LimitSpec::parse(text).unwrap().shape(),
            available,
            full_in: Nanos::from_millis(full_in),
        };
        let mut headers = HeaderMap::new();
        let limits = [
            ("isp:google", look("100/s", 0, 20)),
            ("say \"hi\"\u{e9}", look("50k/day", 7, 0)),
            ("gpu", look("4 concurrent", 1, 0)),
        ];
        tell(&mut headers, &limits);
        tell_retry(&mut headers, Nanos::from_millis(1_200));
        let told = |name: &str| headers[name].to_str().unwrap().to_owned();
        assert_eq!(
            told("ratelimit-policy"),
            "\"isp:google\";q=100;w=1, \"say \\\"hi\\\"?\";q=50000;w=86400, \"gpu\";q=4"
        );
        assert_eq!(
            told("ratelimit"),
            "\"isp:google\";r=0;t=1, \"say \\\"hi\\\"?\";r=7, \"gpu\";r=1"
        );
        assert_eq!(told("retry-after"), "2");
    }
}
