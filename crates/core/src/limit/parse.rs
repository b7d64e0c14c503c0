//! Limits as people write them: `14/s burst 28`, `600/min`, `40/s spaced`,
//! `50k/day@America/Los_Angeles`, `8 concurrent`.
//!
//! A rate per second is a token bucket. A rate per minute, hour or day is what
//! a provider counts in a window, so it is a sliding window, or with a zone a
//! calendar window. `burst` makes any rate a token bucket and `spaced` a leaky
//! one. Fractions stay exact: `0.5/s` is one in two seconds.
//! An error shows the place and what was expected there.

use std::fmt;

use jiff::tz::TimeZone;

use super::spec::{LimitSpec, Period, Rate, Zone, reduce};
use crate::name::Name;
use crate::time::{NANOS_PER_SECOND, Nanos};

/// Text that is not a limit or a rate, and where it stops being one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ParseError {
    /// What was written.
    pub text: String,
    /// The byte at which it went wrong.
    pub at: usize,
    /// What should stand there.
    pub expected: &'static str,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = self.text.get(..self.at).unwrap_or(&self.text);
        let column = before.chars().count();
        writeln!(f, "{}", self.text)?;
        write!(f, "{:column$}^ expected {}", "", self.expected)
    }
}

/// A rate, or a share of the rate of whichever account sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateOrShare {
    /// So many per so much time.
    Rate(Rate),
    /// A share of the account's rate, for each account: the limit then belongs
    /// to the product of account and destination.
    Share {
        /// In thousandths.
        permille: u16,
    },
}

impl RateOrShare {
    /// Reads `40/s`, `40` or `10%`.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut reader = Reader::new(text);
        let amount = reader.amount()?;
        if !reader.eat("%") {
            return Rate::parse(text).map(Self::Rate);
        }
        reader.end()?;
        let permille = amount.times(10).filter(|permille| *permille <= 1_000);
        let permille = permille.and_then(|permille| u16::try_from(permille).ok());
        let permille = permille
            .ok_or_else(|| reader.error(0, "a share from 0.1% to 100% in steps of 0.1%"))?;
        Ok(Self::Share { permille })
    }
}

impl Rate {
    /// Reads `40/s`, `600/min`, `0.5/s`, or a bare number for so many a second.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut reader = Reader::new(text);
        let amount = reader.amount()?;
        let unit = reader.unit_or_second()?;
        reader.end()?;
        amount
            .rate(unit)
            .map_err(|expected| reader.error(0, expected))
    }

    /// So many a second, given as a number.
    pub fn from_number(per_second: f64) -> Result<Self, ParseError> {
        Self::parse(&per_second.to_string())
    }
}

impl LimitSpec {
    /// Reads one entry of a list of limits.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut reader = Reader::new(text);
        let amount = reader.amount()?;
        if reader.eat_word("concurrent") || reader.eat_word("in flight") {
            reader.end()?;
            let slots = amount.whole();
            let slots = slots.ok_or_else(|| reader.error(0, "a whole number of slots"))?;
            return Ok(Self::Concurrency { slots });
        }
        let unit = reader.unit_or_second()?;
        let rate = amount
            .rate(unit)
            .map_err(|expected| reader.error(0, expected))?;
        if reader.eat("@") {
            return reader.calendar_window(amount, unit);
        }
        if reader.eat_word("spaced") {
            reader.end()?;
            return Ok(Self::LeakyBucket { rate });
        }
        if reader.eat_word("burst") {
            let burst = reader.burst()?;
            return Ok(Self::TokenBucket { rate, burst });
        }
        reader.finish("the end, `burst N`, `spaced` or `@Zone`")?;
        Ok(match unit {
            Unit::Second => Self::TokenBucket {
                rate,
                burst: rate.default_burst(),
            },
            Unit::Calendar(_) => Self::SlidingWindow {
                count: rate.count,
                window: rate.per,
            },
        })
    }

    /// So many a second, given as a number.
    pub fn from_number(per_second: f64) -> Result<Self, ParseError> {
        Self::parse(&per_second.to_string())
    }
}

/// What a rate is per.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Second,
    Calendar(Period),
}

impl Unit {
    fn named(word: &str) -> Option<Self> {
        Some(match word {
            "s" | "sec" | "second" => Self::Second,
            "m" | "min" | "minute" => Self::Calendar(Period::Minute),
            "h" | "hour" => Self::Calendar(Period::Hour),
            "d" | "day" => Self::Calendar(Period::Day),
            _ => return None,
        })
    }

    const fn length(self) -> Nanos {
        match self {
            Self::Second => Nanos(NANOS_PER_SECOND),
            Self::Calendar(period) => period.length(),
        }
    }
}

/// A decimal number, as a fraction in lowest terms.
#[derive(Clone, Copy, Debug)]
struct Amount {
    numerator: u64,
    denominator: u64,
}

impl Amount {
    /// This amount times `factor`, if that is a whole number above zero.
    fn times(self, factor: u64) -> Option<u64> {
        let product = self.numerator.checked_mul(factor)?;
        (product > 0 && product % self.denominator == 0).then_some(product / self.denominator)
    }

    fn whole(self) -> Option<u32> {
        self.times(1).and_then(|whole| u32::try_from(whole).ok())
    }

    fn rate(self, unit: Unit) -> Result<Rate, &'static str> {
        if self.numerator == 0 {
            return Err("more than nothing: to stop sending, pause");
        }
        let count = u32::try_from(self.numerator).map_err(|_| "a smaller number")?;
        let per = unit.length().0.checked_mul(self.denominator);
        let per = per.map(Nanos).ok_or("a number with fewer decimals")?;
        Ok(Rate { count, per })
    }
}

/// A place in a text.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn error(&self, at: usize, expected: &'static str) -> ParseError {
        ParseError {
            text: self.text.to_owned(),
            at,
            expected,
        }
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// The next characters that `belong`, possibly none.
    fn run(&mut self, belong: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !belong(c)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    fn eat(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    /// Like [`Reader::eat`], but not the beginning of a longer word.
    fn eat_word(&mut self, word: &str) -> bool {
        let before = self.at;
        if self.eat(word) && !self.rest().starts_with(char::is_alphanumeric) {
            return true;
        }
        self.at = before;
        false
    }

    fn finish(&mut self, expected: &'static str) -> Result<(), ParseError> {
        self.skip_space();
        if self.rest().is_empty() {
            Ok(())
        } else {
            Err(self.error(self.at, expected))
        }
    }

    fn end(&mut self) -> Result<(), ParseError> {
        self.finish("nothing more")
    }

    /// `40`, `0.5`, `1.5k`, `2M`.
    fn amount(&mut self) -> Result<Amount, ParseError> {
        self.skip_space();
        let start = self.at;
        let whole = self.run(|c| c.is_ascii_digit());
        if whole.is_empty() {
            return Err(self.error(start, "a number"));
        }
        let mut decimals = "";
        if self.rest().starts_with('.') {
            self.at += 1;
            decimals = self.run(|c| c.is_ascii_digit());
            if decimals.is_empty() {
                return Err(self.error(self.at, "a digit"));
            }
        }
        let factor: u64 = match self.run(|c| matches!(c, 'k' | 'K' | 'M')) {
            "" => 1,
            "k" | "K" => 1_000,
            "M" => 1_000_000,
            _ => return Err(self.error(self.at, "one of k and M")),
        };
        let digits = format!("{whole}{decimals}").parse::<u64>().ok();
        let numerator = digits.and_then(|digits| digits.checked_mul(factor));
        let places = u32::try_from(decimals.len()).unwrap_or(u32::MAX);
        let (Some(numerator), Some(denominator)) = (numerator, 10_u64.checked_pow(places)) else {
            return Err(self.error(start, "a number with fewer digits"));
        };
        let mut fraction = (u128::from(numerator), u128::from(denominator));
        reduce(&mut fraction);
        let part = |part| u64::try_from(part).expect("reducing makes no number larger");
        Ok(Amount {
            numerator: part(fraction.0),
            denominator: part(fraction.1),
        })
    }

    fn unit_or_second(&mut self) -> Result<Unit, ParseError> {
        if !self.eat("/") {
            return Ok(Unit::Second);
        }
        self.skip_space();
        let start = self.at;
        let word = self.run(char::is_alphanumeric);
        Unit::named(word).ok_or_else(|| self.error(start, "a unit: s, min, h or day"))
    }

    fn burst(&mut self) -> Result<u32, ParseError> {
        self.skip_space();
        let start = self.at;
        let burst = self.amount()?.whole();
        let burst = burst.ok_or_else(|| self.error(start, "a whole number, at least 1"))?;
        self.end()?;
        Ok(burst)
    }

    fn calendar_window(&mut self, amount: Amount, unit: Unit) -> Result<LimitSpec, ParseError> {
        let at_sign = self.at - 1;
        let Unit::Calendar(period) = unit else {
            return Err(self.error(at_sign, "no zone: only min, h and day have boundaries"));
        };
        let count = amount.whole();
        let count = count.ok_or_else(|| self.error(0, "a whole number for a calendar window"))?;
        let start = self.at;
        let name = self.run(|c| !c.is_whitespace());
        let unknown = "a time zone, such as America/Los_Angeles";
        let rules = TimeZone::get(name).map_err(|_| self.error(start, unknown))?;
        self.end()?;
        let name = Name::from(rules.iana_name().unwrap_or(name));
        let zone = Zone { name, rules };
        Ok(LimitSpec::CalendarWindow {
            count,
            period,
            zone,
        })
    }
}
