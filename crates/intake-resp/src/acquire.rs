//! `ACQUIRE key [cost] [RATE limit] [CONCURRENCY n] [AWAY word] [AND key ...]
//! [CLASS class] [WAIT ms] [TTL ms]`.
//!
//! `RATE` may be given more than once, as in `RATE "14/s burst 28" RATE
//! 50k/day`; without it, and without `CONCURRENCY`, the limits of the policies
//! are meant. What stands behind `AND` is another limit, taken together with
//! the ones before it.

use std::ops::Range;

use outflow_core::class::Class;
use outflow_core::limit::spec::LimitSpec;
use outflow_core::policy::policy::WhenAway;
use outflow_core::throttle::request::{LIMITS_MAX, NO_PERMIT, TTL_DEFAULT, TTL_MAX, WAIT_MAX};
use outflow_core::time::Nanos;
use outflow_ports::throttle::{Acquired, Asked};

use crate::reply::Out;

/// Texts of limits that a connection remembers, so that it reads each once.
const REMEMBERED_MAX: usize = 64;

/// Limits that were read before, by their text.
#[derive(Debug, Default)]
pub struct Specs {
    known: Vec<(Box<[u8]>, LimitSpec)>,
}

impl Specs {
    fn read(&mut self, word: &[u8]) -> Result<LimitSpec, String> {
        if let Some((_, spec)) = self.known.iter().find(|(text, _)| **text == *word) {
            return Ok(spec.clone());
        }
        let text = text(word)?;
        let spec = LimitSpec::parse(text).map_err(|error| {
            let (at, expected) = (error.at, error.expected);
            format!("ERR RATE {text:?}: expected {expected} at byte {at}")
        })?;
        if self.known.len() >= REMEMBERED_MAX {
            self.known.clear();
        }
        self.known.push((Box::from(word), spec.clone()));
        Ok(spec)
    }
}

/// One limit, as it was read.
#[derive(Debug)]
struct Part<'a> {
    key: &'a str,
    cost: u32,
    when_away: WhenAway,
    /// Where its numbers are.
    specs: Range<usize>,
}

/// A request, as it was read.
#[derive(Debug)]
pub struct Read<'a> {
    parts: Vec<Part<'a>>,
    specs: Vec<LimitSpec>,
    /// How urgent it is.
    pub class: Class,
    /// How long it may wait.
    pub wait: Nanos,
    /// How long slots are held.
    pub ttl: Nanos,
}

fn text(word: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(word).map_err(|_| "ERR words are UTF-8 text".to_owned())
}

fn number<T: TryFrom<u64>>(what: &str, word: Option<&&[u8]>, most: u64) -> Result<T, String> {
    let wrong = || format!("ERR {what} is a whole number from 0 to {most}");
    let digits = std::str::from_utf8(word.ok_or_else(wrong)?).map_err(|_| wrong())?;
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    if number > most {
        return Err(wrong());
    }
    T::try_from(number).map_err(|_| wrong())
}

/// Reads the words behind the command.
pub fn read<'a>(words: &[&'a [u8]], known: &mut Specs) -> Result<Read<'a>, String> {
    let mut read = Read {
        parts: Vec::with_capacity(1),
        specs: Vec::with_capacity(1),
        class: Class::Normal,
        wait: Nanos::ZERO,
        ttl: TTL_DEFAULT,
    };
    let mut words = words.iter().peekable();
    read.limit(words.next(), &mut words)?;
    while let Some(word) = words.next() {
        let millis = |nanos: Nanos| nanos.0 / 1_000_000;
        if word.eq_ignore_ascii_case(b"RATE") {
            let spec = known.read(words.next().ok_or("ERR RATE needs a limit, as in 10/s")?)?;
            read.add(spec);
        } else if word.eq_ignore_ascii_case(b"CONCURRENCY") {
            let slots = number("CONCURRENCY", words.next(), u64::from(u32::MAX))?;
            read.add(LimitSpec::Concurrency { slots });
        } else if word.eq_ignore_ascii_case(b"AND") {
            read.limit(words.next(), &mut words)?;
        } else if word.eq_ignore_ascii_case(b"CLASS") {
            let class = text(words.next().ok_or("ERR CLASS needs a class")?)?;
            read.class = class.parse().map_err(|error| format!("ERR {error}"))?;
        } else if word.eq_ignore_ascii_case(b"AWAY") {
            let away = text(words.next().ok_or("ERR AWAY needs a word")?)?;
            let away: WhenAway = away.parse().map_err(|error| format!("ERR {error}"))?;
            if let Some(part) = read.parts.last_mut() {
                part.when_away = away;
            }
        } else if word.eq_ignore_ascii_case(b"WAIT") {
            let wait = number("WAIT in milliseconds", words.next(), millis(WAIT_MAX))?;
            read.wait = Nanos::from_millis(wait);
        } else if word.eq_ignore_ascii_case(b"TTL") {
            let ttl = number("TTL in milliseconds", words.next(), millis(TTL_MAX))?;
            read.ttl = Nanos::from_millis(ttl);
        } else {
            let word = String::from_utf8_lossy(word);
            return Err(format!(
                "ERR {word:?} is not one of RATE, CONCURRENCY, AND, CLASS, WAIT, TTL, AWAY"
            ));
        }
    }
    Ok(read)
}

type Rest<'w, 'a> = std::iter::Peekable<std::slice::Iter<'w, &'a [u8]>>;

impl<'a> Read<'a> {
    fn limit(&mut self, key: Option<&&'a [u8]>, rest: &mut Rest<'_, 'a>) -> Result<(), String> {
        let key = key.ok_or("ERR usage: ACQUIRE key [cost] [RATE limit] [AND key ...]")?;
        if self.parts.len() >= LIMITS_MAX {
            return Err(format!("ERR at most {LIMITS_MAX} limits at once"));
        }
        let is_cost = |word: &&&[u8]| word.first().is_some_and(u8::is_ascii_digit);
        let cost = match rest.next_if(is_cost) {
            Some(word) => number("a cost", Some(word), u64::from(u32::MAX))?,
            None => 1,
        };
        self.parts.push(Part {
            key: text(key)?,
            cost,
            when_away: WhenAway::Closed,
            specs: self.specs.len()..self.specs.len(),
        });
        Ok(())
    }

    fn add(&mut self, spec: LimitSpec) {
        self.specs.push(spec);
        if let Some(part) = self.parts.last_mut() {
            part.specs.end = self.specs.len();
        }
    }

    /// Its limits, as they are asked for.
    pub fn asked(&self) -> impl Iterator<Item = Asked<'_>> {
        self.parts.iter().map(|part| Asked {
            key: part.key,
            cost: part.cost,
            limits: self.specs.get(part.specs.clone()).unwrap_or_default(),
            when_away: part.when_away,
        })
    }

    /// What its limits are called.
    pub fn keys(&self) -> Vec<String> {
        self.parts.iter().map(|part| part.key.to_owned()).collect()
    }
}

/// Writes what became of a request for these keys: `[1, permit]`, or `[0,
/// refused_by, retry_after_ms]` with -1 if it is refused for good.
pub fn write<'k>(acquired: &Acquired, key: impl FnOnce(usize) -> &'k str, out: &mut Out<'_>) {
    match acquired {
        Acquired::Granted(permit) => {
            out.array(2);
            out.integer(1);
            match permit {
                Some(permit) => out.bulk(permit.to_string().as_bytes()),
                None => out.bulk(NO_PERMIT.as_bytes()),
            }
        }
        Acquired::Refused {
            by, retry_after, ..
        } => {
            out.array(3);
            out.integer(0);
            out.bulk(key(*by).as_bytes());
            // Rounded up: nobody is told to come back too early.
            let millis = retry_after.map(|nanos| nanos.0.div_ceil(1_000_000));
            out.integer(millis.map_or(-1, |millis| i64::try_from(millis).unwrap_or(i64::MAX)));
        }
    }
}
