//! As much of DER as it takes to read how long a key is and how long a
//! certificate lasts. What cannot be read is `None`, never a guess; every step
//! goes forward, so the work is bounded by the length of the input.

use std::net::IpAddr;

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OID: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
/// The version of a certificate, which may be left out.
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
const DNS_NAME: u8 = 0x82;
const IP_ADDRESS: u8 = 0x87;
/// 2.5.29.17
const SUBJECT_ALT_NAME: [u8; 3] = [0x55, 0x1d, 0x11];

/// Names of a certificate that are looked at.
const NAMES_MAX: usize = 200;

/// Elements, one after the other.
struct Elements<'a>(&'a [u8]);

impl<'a> Iterator for Elements<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (tag, rest) = self.0.split_first()?;
        let (first, rest) = rest.split_first()?;
        let (length, rest) = match *first {
            short @ 0..0x80 => (usize::from(short), rest),
            long => {
                let (digits, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
                if digits.is_empty() || digits.len() > 4 {
                    return None;
                }
                let length = digits
                    .iter()
                    .fold(0_usize, |length, digit| (length << 8) | usize::from(*digit));
                (length, rest)
            }
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((*tag, content))
    }
}

impl<'a> Elements<'a> {
    /// The next one, which must be of this kind.
    fn expect(&mut self, wanted: u8) -> Option<&'a [u8]> {
        let (tag, content) = self.next()?;
        (tag == wanted).then_some(content)
    }
}

/// An RSA public key: modulus and exponent, without leading zeros.
pub type RsaKey<'a> = (&'a [u8], &'a [u8]);

/// Reads an RSA public key: a bare one, or one that says that it is RSA.
pub fn rsa_key(der: &[u8]) -> Option<RsaKey<'_>> {
    let outer = Elements(der).expect(SEQUENCE)?;
    let bare = match Elements(outer).next()? {
        (INTEGER, _) => outer,
        _ => {
            let mut inside = Elements(outer);
            inside.expect(SEQUENCE)?;
            let (unused, key) = inside.expect(BIT_STRING)?.split_first()?;
            if *unused != 0 {
                return None;
            }
            Elements(key).expect(SEQUENCE)?
        }
    };
    let mut numbers = Elements(bare);
    let modulus = significant(numbers.expect(INTEGER)?)?;
    let exponent = significant(numbers.expect(INTEGER)?)?;
    Some((modulus, exponent))
}

fn significant(number: &[u8]) -> Option<&[u8]> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.get(zeros..).filter(|rest| !rest.is_empty())
}

/// How many bits an RSA public key has.
pub fn rsa_bits(der: &[u8]) -> Option<u32> {
    let (modulus, _) = rsa_key(der)?;
    let first = modulus.first()?;
    let bits = u32::try_from(modulus.len()).ok()?.checked_mul(8)?;
    Some(bits - first.leading_zeros())
}

/// What a certificate says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// From when it holds, in seconds since 1970.
    pub from_s: i64,
    /// Until when.
    pub until_s: i64,
    /// For which names and addresses.
    pub names: Vec<String>,
}

impl Certificate {
    /// Reads a certificate.
    pub fn parse(der: &[u8]) -> Option<Self> {
        let outer = Elements(der).expect(SEQUENCE)?;
        let body = Elements(outer).expect(SEQUENCE)?;
        let mut fields = Elements(body).peekable();
        fields.next_if(|(tag, _)| *tag == VERSION);
        // Serial number, algorithm, issuer.
        let validity = fields.nth(3).filter(|(tag, _)| *tag == SEQUENCE)?;
        let mut times = Elements(validity.1);
        let from_s = time(times.next()?)?;
        let until_s = time(times.next()?)?;
        let extensions = fields.find(|(tag, _)| *tag == EXTENSIONS);
        let names = extensions.and_then(|(_, inside)| names(inside));
        Some(Self {
            from_s,
            until_s,
            names: names.unwrap_or_default(),
        })
    }

    /// Whether it holds for a name.
    pub fn is_for(&self, name: &str) -> bool {
        self.names.iter().any(|own| match own.strip_prefix("*.") {
            Some(above) => name.split_once('.').is_some_and(|(_, rest)| rest == above),
            None => own == name,
        })
    }
}

fn names(extensions: &[u8]) -> Option<Vec<String>> {
    let extensions = Elements(extensions).expect(SEQUENCE)?;
    let content = Elements(extensions).find_map(|(_, extension)| {
        let mut parts = Elements(extension);
        let is_it = parts.expect(OID)? == SUBJECT_ALT_NAME;
        let value = parts.find(|(tag, _)| *tag == OCTET_STRING);
        value.filter(|_| is_it).map(|(_, value)| value)
    })?;
    let listed = Elements(Elements(content).expect(SEQUENCE)?).take(NAMES_MAX);
    let listed = listed.filter_map(|(tag, value)| match tag {
        DNS_NAME => {
            let name = str::from_utf8(value).ok()?;
            Some(crate::names::normal(name))
        }
        IP_ADDRESS => match value.len() {
            4 => Some(IpAddr::from(<[u8; 4]>::try_from(value).ok()?).to_string()),
            _ => Some(IpAddr::from(<[u8; 16]>::try_from(value).ok()?).to_string()),
        },
        _ => None,
    });
    Some(listed.collect())
}

/// `261116155252Z`, or with four digits of the year.
fn time((tag, text): (u8, &[u8])) -> Option<i64> {
    let text = str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let (year, rest) = match tag {
        UTC_TIME => text.split_at_checked(2)?,
        GENERALIZED_TIME => text.split_at_checked(4)?,
        _ => return None,
    };
    let year: i64 = number(year)?;
    let year = match (tag, year) {
        (UTC_TIME, 0..50) => 2_000 + year,
        (UTC_TIME, _) => 1_900 + year,
        _ => year,
    };
    let pair = |at: usize| number(rest.get(at..at + 2)?);
    let (month, day) = (pair(0)?, pair(2)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (hour, minute, second) = (pair(4)?, pair(6)?, pair(8)?);
    Some(days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

fn number(text: &str) -> Option<i64> {
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    is_digits.then(|| text.parse().ok()).flatten()
}

/// Days since 1970 of a date, by the usual arithmetic on years that begin in
/// March.
const fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::{days, time};

    #[test]
    fn dates_are_days() {
        assert_eq!(days(1970, 1, 1), 0);
        assert_eq!(days(2000, 3, 1), 11_017);
        assert_eq!(days(2026, 11, 16), 20_773);
        assert_eq!(time((0x17, b"261116155252Z")), Some(1_794_844_372));
        assert_eq!(time((0x18, b"20261116155252Z")), Some(1_794_844_372));
        assert_eq!(time((0x17, b"991231235959Z")), Some(946_684_799));
        for wrong in [&b"26111615525"[..], b"261316155252Z", b"2611161552", b"Z"] {
            assert_eq!(time((0x17, wrong)), None);
        }
    }
}
