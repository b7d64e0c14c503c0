//! How many files and connections this process may have open at a time.
//!
//! Systems begin with a soft limit of 1,024, for programs that cannot do with
//! more, and a hard one of many times that. The doors of this server alone have
//! places for more: with the soft limit, a crowd of clients that do nothing
//! would leave no file to the store and to deliveries.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// All places for connections, and as much for deliveries and the store.
const WANTED: u64 = 16_384;

/// Raises the limit as far as this process may. What there is to say if that is
/// less than a server needs.
pub fn raise() -> Option<String> {
    let now = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: now.maximum,
        maximum: now.maximum,
    };
    // A system may refuse what it calls its limit: the old one holds then.
    let _ = setrlimit(Resource::Nofile, raised);
    let allowed = getrlimit(Resource::Nofile).current?;
    (allowed < WANTED).then(|| {
        format!(
            "warning: only {allowed} files and connections may be open at a time (ulimit -n); \
             many clients at a time need {WANTED}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_as_high_as_it_may_be() {
        let said = raise();
        let now = getrlimit(Resource::Nofile);
        assert_eq!(now.current, now.maximum);
        let is_low = now.current.is_some_and(|files| files < WANTED);
        assert_eq!(said.is_some(), is_low);
    }
}
