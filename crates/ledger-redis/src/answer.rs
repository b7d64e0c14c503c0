//! What a script said.

use outflow_core::class::Class;
use outflow_core::engine::action::Receipt;
use outflow_core::engine::event::LeaseAnswer;
use outflow_core::ledger::owed;
use outflow_core::time::{Nanos, Wall};
use redis::Value;

use crate::ask::Ask;

/// Who asks under old numbers hears of the new ones soon.
const STALE_PAUSE: Nanos = Nanos::from_millis(50);

/// What a script said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub word: Word,
    /// The ledger's clock, in microseconds.
    pub now: u64,
    /// Its wall clock.
    pub wall_micros: i64,
    pub epoch: u64,
    /// Limits that are paused, and for how long.
    pub paused: Vec<(String, Nanos)>,
    /// What the node owes to classes that wait there.
    pub owed: owed::Tokens,
}

/// The gist of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// So many tokens, for a life.
    Leased(u32, Nanos),
    /// Not before so long.
    Refused(Nanos),
    /// The same, since somebody paused the limit.
    Paused(Nanos),
    /// The largest cost is this.
    Cost(u32),
    /// The numbers are out of date.
    Stale,
    /// The boundaries of the calendar are of another time.
    Time,
    /// So many tokens were taken back.
    GivenBack(u64),
    /// Nothing to say but the time and the epoch.
    Done,
}

fn number(value: Option<&Value>) -> Option<i64> {
    match value? {
        Value::Int(number) => Some(*number),
        Value::Double(number) => Some(*number as i64),
        Value::BulkString(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}

/// Text that a server said.
pub(crate) fn text(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::BulkString(text) => String::from_utf8(text.to_vec()).ok(),
        Value::SimpleString(text) => Some(text.clone()),
        _ => None,
    }
}

/// Microseconds of a script.
fn micros(number: i64) -> Nanos {
    Nanos(u64::try_from(number).unwrap_or(0)).times(1_000)
}

impl Answer {
    /// Reads what a script returned; none if no script of ours says that.
    pub fn read(value: &Value) -> Option<Self> {
        let Value::Array(values) = value else {
            return None;
        };
        let first = number(values.get(1))?;
        let second = number(values.get(2))?;
        let word = match text(values.first())?.as_str() {
            "leased" => Word::Leased(u32::try_from(first).ok()?, micros(second)),
            "refused" => Word::Refused(micros(first)),
            "paused" => Word::Paused(micros(first)),
            "cost" => Word::Cost(u32::try_from(first).ok()?),
            "stale" => Word::Stale,
            "time" => Word::Time,
            "given" => Word::GivenBack(u64::try_from(first).ok()?),
            _ => Word::Done,
        };
        let pairs = values.get(6..).unwrap_or_default().chunks_exact(2);
        let pairs = pairs.filter_map(|pair| Some((text(pair.first())?, number(pair.get(1))?)));
        let (mut paused, mut owed) = (Vec::new(), owed::Tokens::default());
        for (name, value) in pairs {
            if let Word::Leased(..) = word {
                let of = |class: &Class| name == format!("owed_{}", class.index());
                let class = Class::ALL.into_iter().find(of);
                if let Some(owed) = class.and_then(|class| owed.get_mut(class.index())) {
                    *owed = u32::try_from(value).unwrap_or(0);
                }
            } else {
                paused.push((name, micros(value)));
            }
        }
        Some(Self {
            word,
            now: u64::try_from(number(values.get(3))?).ok()?,
            wall_micros: number(values.get(4))?,
            epoch: u64::try_from(number(values.get(5))?).ok()?,
            paused,
            owed,
        })
    }

    /// What the node is told; none if it must be asked again.
    pub fn to_lease(&self, ask: &Ask) -> Option<LeaseAnswer> {
        let retry_after = match self.word {
            Word::Leased(tokens, life) => {
                let (epoch, at) = (self.epoch, self.now);
                let wall = Wall(self.wall_micros.saturating_mul(1_000));
                return Some(LeaseAnswer::Leased {
                    tokens,
                    life: ask.life.unwrap_or(life),
                    wait: Nanos::ZERO,
                    spacing: ask.spacing,
                    receipt: Receipt { epoch, at, wall },
                    owed: self.owed,
                });
            }
            Word::Refused(retry_after) | Word::Paused(retry_after) => retry_after,
            Word::Stale => STALE_PAUSE,
            Word::Cost(_) | Word::Time | Word::GivenBack(_) | Word::Done => return None,
        };
        Some(LeaseAnswer::Refused { retry_after })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(word: &str, numbers: &[i64]) -> Value {
        let mut values = vec![Value::BulkString(word.as_bytes().to_vec())];
        values.extend(numbers.iter().map(|number| Value::Int(*number)));
        Value::Array(values)
    }

    #[test]
    fn what_scripts_say_is_read() {
        let answer = Answer::read(&said("leased", &[12, 300_000, 5_000, 7_000, 3])).unwrap();
        assert_eq!(answer.word, Word::Leased(12, Nanos::from_millis(300)));
        assert_eq!(
            (answer.now, answer.wall_micros, answer.epoch),
            (5_000, 7_000, 3)
        );
    }

    #[test]
    fn what_no_script_says_is_not_understood() {
        assert_eq!(Answer::read(&Value::Nil), None);
        assert_eq!(Answer::read(&Value::Int(1)), None);
        assert_eq!(Answer::read(&said("leased", &[1])), None);
        assert_eq!(Answer::read(&said("leased", &[-1, 0, 0, 0, 0])), None);
    }
}
