//! The one table of all keys, in the order of the reference.
//!
//! What reads a file, what checks the API, the reference and the commented
//! default file all follow this table; a test holds it against the raw types.

mod account;
mod dns;
mod feedback;
mod policy;
mod pools;
mod retry;
mod runbook;
mod server;
mod warm_up;

pub use account::ACCOUNT;
pub use policy::POLICY;

use crate::key::{Form, Key};

/// No file has more accounts.
pub const ACCOUNTS_MAX: usize = 10_000;
/// No file has more policies.
pub const POLICIES_MAX: usize = 100_000;

/// Everything that a file can say.
pub const ROOT: &[Key] = &[
    Key::new(
        "server",
        Form::Table(server::SERVER),
        "The HTTP API, the page and the data directory.",
    ),
    Key::new(
        "store",
        Form::Table(server::STORE),
        "Where messages are kept.",
    ),
    Key::new(
        "ledger",
        Form::Table(server::LEDGER),
        "Where the counts of limits live.",
    ),
    Key::new(
        "smtp",
        Form::Table(server::SMTP),
        "Submission over SMTP, off unless it listens.",
    ),
    Key::new(
        "throttle",
        Form::Table(server::THROTTLE),
        "The throttle over the Redis protocol, off unless it listens.",
    ),
    Key::new(
        "feedback",
        Form::Table(feedback::FEEDBACK),
        "What comes back (bounces, complaints), and who is not sent to any more.",
    ),
    Key::new(
        "dns",
        Form::Table(dns::DNS),
        "How DNS is asked who takes a domain's mail.",
    ),
    Key::new(
        "destinations",
        Form::Table(dns::DESTINATIONS),
        "Who hosts which domains, and how they like to be sent to.",
    ),
    Key::new(
        "account",
        Form::List(&Form::Table(ACCOUNT), ACCOUNTS_MAX),
        "One account each: a set of credentials, or a sending address. These are start values: \
         what is changed over the API stays changed. Without any account there is one sandbox, \
         which takes everything and delivers nothing.",
    ),
    Key::new(
        "policy",
        Form::List(&Form::Table(POLICY), POLICIES_MAX),
        "One policy each: what may be sent how fast. Start values, like accounts.",
    ),
    Key::new(
        "classes",
        Form::Table(retry::CLASSES),
        "What is kept free for urgent messages.",
    ),
    Key::new(
        "pools",
        Form::Table(pools::POOLS),
        "What accounts that stand in for one another do.",
    ),
    Key::new(
        "breaker",
        Form::Table(pools::BREAKER),
        "When an account, or an account at a destination, is left alone for a while.",
    ),
    Key::new(
        "retry",
        Form::Table(retry::RETRY),
        "How long and how often to try.",
    ),
    Key::new(
        "classify",
        Form::Table(retry::CLASSIFY),
        "What the answers of far ends mean.",
    ),
    Key::new(
        "control",
        Form::Table(retry::CONTROL),
        "What is learnt from refusals.",
    ),
    Key::new(
        "runbook",
        Form::Table(runbook::RUNBOOK),
        "What is done when a destination is in trouble. See docs/runbook.md.",
    ),
    Key::new(
        "canary",
        Form::List(&Form::Table(runbook::CANARY), runbook::CANARIES_MAX),
        "Addresses of our own at one destination each, which are written to before each step up.",
    ),
    Key::new(
        "warm_up",
        Form::List(&Form::Table(warm_up::WARM_UP), warm_up::WARM_UPS_MAX),
        "One new sender each, which sends little at first and more each good day. See \
         docs/warm-up.md.",
    ),
    Key::new(
        "retention",
        Form::Table(server::RETENTION),
        "How long things are kept.",
    ),
    Key::new("log", Form::Table(server::LOG), "What is logged, and how."),
    Key::new(
        "metrics",
        Form::Table(server::METRICS),
        "How many different values a label may have. Everything beyond is counted as `other`.",
    ),
];
