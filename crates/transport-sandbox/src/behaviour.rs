//! What an account of the sandbox does.

use outflow_core::allowance;
use outflow_core::entropy::Entropy;
use outflow_core::limit::spec::Rate;
use outflow_core::reply::Reply;
use outflow_core::time::{Nanos, Wall};

use crate::answer::Answer;
use crate::latency::Latency;

/// How an account behaves. By default it takes everything at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Behaviour {
    /// How long answers take.
    pub latency: Latency,
    /// How long a session takes to open.
    pub open_time: Nanos,
    /// Sessions that cannot be opened, in thousandths.
    pub open_failures: u16,
    /// Which messages are not taken.
    pub failures: Vec<Failure>,
    /// A rate that nobody was told of.
    pub hidden_rate: Option<HiddenRate>,
    /// What all of its answers say of limits: names and values of headers.
    pub headers: Vec<(String, String)>,
}

/// A share of the messages that is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// How large it is, in thousandths.
    pub permille: u16,
    /// What they are told.
    pub answer: Answer,
}

/// A rate above which messages are not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HiddenRate {
    /// How many in how long.
    pub rate: Rate,
    /// How many at once.
    pub burst: u32,
    /// What those above it are told.
    pub answer: Answer,
}

impl Behaviour {
    /// Says in an answer what the headers say. Who takes a message asks nobody
    /// to wait.
    pub(crate) fn tell(&self, now: Wall, reply: &mut Reply) {
        if self.headers.is_empty() {
            return;
        }
        let is_taken = reply.is_accepted();
        let headers = self.headers.iter().map(|(name, value)| (&**name, &**value));
        let heard = allowance::heard(now, headers);
        if let Reply::Said {
            retry_after,
            allows,
            ..
        } = reply
        {
            *allows = heard.allows;
            *retry_after = retry_after.or(heard.retry_after.filter(|_| !is_taken));
        }
    }

    /// Which failure, if any, strikes now.
    pub(crate) fn failure(&self, entropy: &mut Entropy) -> Option<&Answer> {
        if self.failures.is_empty() {
            return None;
        }
        let mut drawn = entropy.between(0, 999);
        for failure in &self.failures {
            match drawn.checked_sub(u64::from(failure.permille)) {
                None => return Some(&failure.answer),
                Some(rest) => drawn = rest,
            }
        }
        None
    }
}
