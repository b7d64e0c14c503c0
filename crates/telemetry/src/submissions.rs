//! What the port for submission over SMTP was used for, and what it refused.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use crate::catalogue::Submission;
use crate::declarations as declared;
use crate::destinations::OTHER;
use crate::exposition::Exposition;

/// Replies that are told apart. The server has fewer; this is for whoever passes
/// something else.
const REPLIES_MAX: usize = 64;

/// Everything that is counted there.
#[derive(Debug, Default)]
pub(crate) struct Submissions {
    came: AtomicU64,
    left: AtomicU64,
    /// Known, not known.
    logins: [AtomicU64; 2],
    taken: AtomicU64,
    refused: Mutex<BTreeMap<Box<str>, u64>>,
}

impl Submissions {
    pub fn count(&self, what: &Submission<'_>) {
        let counter = match what {
            Submission::Connected { .. } => &self.came,
            Submission::Left { .. } => &self.left,
            Submission::LoggedIn { .. } => &self.logins[0],
            Submission::LoginRefused { .. } => &self.logins[1],
            Submission::Taken { .. } => &self.taken,
            Submission::Refused { reply, .. } => return self.refuse(reply),
        };
        counter.fetch_add(1, Relaxed);
    }

    fn refuse(&self, reply: &str) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let is_told_apart = refused.len() < REPLIES_MAX || refused.contains_key(reply);
        let reply = if is_told_apart { reply } else { OTHER };
        if let Some(count) = refused.get_mut(reply) {
            *count += 1;
        } else {
            refused.insert(reply.into(), 1);
        }
    }

    pub fn render(&self, page: &mut Exposition) {
        let (left, came) = (self.left.load(Relaxed), self.came.load(Relaxed));
        for (metric, count) in [
            (&declared::SUBMISSION_CONNECTIONS, came.saturating_sub(left)),
            (&declared::SUBMISSION_CONNECTED, came),
            (&declared::SUBMISSION_MESSAGES, self.taken.load(Relaxed)),
        ] {
            page.begin(metric);
            page.count(metric, &[], count);
        }
        let metric = &declared::SUBMISSION_LOGINS;
        page.begin(metric);
        for (result, count) in ["known", "refused"].iter().zip(&self.logins) {
            page.count(metric, &[result], count.load(Relaxed));
        }
        let metric = &declared::SUBMISSION_REFUSED;
        page.begin(metric);
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        for (reply, count) in refused.iter() {
            page.count(metric, &[reply], *count);
        }
    }
}
