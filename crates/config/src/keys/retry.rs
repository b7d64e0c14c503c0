//! The keys of retries and classes.

use outflow_core::time::Nanos;

use crate::key::{Form, Key};

const DAY: u64 = 86_400;
const WAIT: Form = Form::Span(Nanos::from_millis(1), Nanos::from_secs(30 * DAY));
const JITTER: Form = Form::Word(&["none", "full", "equal", "decorrelated"]);

const FIRST: Key = Key::new("first", WAIT, "The wait after the first attempt.");
const FACTOR: Key = Key::new(
    "factor",
    Form::Number(1, 100),
    "How much longer each wait is than the one before.",
)
.default("2.0");
const CAP: Key = Key::new("cap", WAIT, "No wait is longer.");
const GIVE_UP: Key = Key::new(
    "give_up_after",
    Form::Span(Nanos::from_secs(1), Nanos::from_secs(365 * DAY)),
    "How long after the first attempt the last one may come.",
)
.default("\"4d\"");
const ATTEMPTS: Key = Key::new(
    "attempts",
    Form::Whole(1, u16::MAX as u64),
    "How often to try, the first attempt included. Refusals that are about us do not count.",
);
const SPREAD: Key = Key::new(
    "jitter",
    JITTER,
    "How waits are spread, so that what failed together does not come back together.",
);

const EMAIL: &[Key] = &[
    FIRST.default("\"5m\""),
    FACTOR,
    CAP.default("\"4h\""),
    GIVE_UP,
    ATTEMPTS.example("30"),
    SPREAD.default("\"equal\""),
];

const CRITICAL: &[Key] = &[
    FIRST.default("\"30s\""),
    FACTOR,
    CAP.default("\"5m\""),
    GIVE_UP,
    ATTEMPTS.example("30"),
    SPREAD.default("\"equal\""),
];

const API: &[Key] = &[
    FIRST.default("\"1s\""),
    FACTOR,
    CAP.default("\"5m\""),
    GIVE_UP,
    ATTEMPTS.default("5"),
    SPREAD.default("\"full\""),
];

pub const RETRY: &[Key] = &[
    Key::new(
        "budget",
        Form::Share,
        "Retries per first attempts, of each tenant and campaign. What is over budget waits and \
         never dies of it.",
    )
    .default("\"20%\""),
    Key::new(
        "budget_floor",
        Form::Whole(0, 1_000_000),
        "How many retries a minute each may make in any case.",
    )
    .default("10"),
    Key::new(
        "on_uncertain",
        Form::Word(&["retry", "dead"]),
        "The answer after the whole message was lost: try again (perhaps twice) or give up \
         (perhaps never).",
    )
    .default("\"retry\""),
    Key::new(
        "uncertain_attempts",
        Form::Whole(1, 100),
        "With `on_uncertain = \"retry\"`: a message whose answer was lost this many times \
         becomes a dead letter with the cause `uncertain`. It is the most copies that a far end \
         which takes each message and loses each answer can get, and it holds over restarts.",
    )
    .default("3"),
    Key::new(
        "uncertain_after",
        Form::Span(Nanos::from_secs(1), Nanos::from_secs(DAY)),
        "A delivery without an answer for this long counts as such.",
    )
    .default("\"10m\""),
    Key::new(
        "email",
        Form::Table(EMAIL),
        "Mail of all classes but critical.",
    ),
    Key::new("critical", Form::Table(CRITICAL), "Critical mail."),
    Key::new(
        "api",
        Form::Table(API),
        "Text messages and push notifications.",
    ),
];

/// No more files of rules are read: each is looked through for every refusal.
const RULE_FILES_MAX: usize = 16;

pub const CLASSIFY: &[Key] = &[Key::new(
    "rules",
    Form::List(&Form::Path, RULE_FILES_MAX),
    "Files of rules of your own, in the form of `crates/core/data/replies`. They are asked before \
     those that come with the program, the first file first. See docs/classification.md.",
)
.example("[\"/etc/outflow/replies.toml\"]")];

/// `[control]`.
pub const CONTROL: &[Key] = &[Key::new(
    "learn",
    Form::Flag,
    "Whether the rate of an account at a destination (or of a sending domain there, or of a \
     tenant) is learnt once the far end refuses something for its rate or for our standing. \
     Rates of policies with `max_rate` are learnt anyway. See docs/control.md.",
)
.default("true")];

const HEADROOM: Key = Key::new(
    "headroom",
    Form::Share,
    "The share of each burst and of each calendar quota that is kept free of the classes below.",
);
const SOME: &[Key] = &[HEADROOM.default("\"20%\"")];
const NONE: &[Key] = &[HEADROOM.default("\"0%\"")];

pub const CLASSES: &[Key] = &[
    Key::new(
        "critical",
        Form::Table(SOME),
        "One-time passwords, password resets.",
    ),
    Key::new("high", Form::Table(NONE), "Receipts, alerts."),
    Key::new(
        "normal",
        Form::Table(NONE),
        "Everything that says nothing else.",
    ),
    Key::new(
        "low",
        Form::Table(NONE),
        "Digests, promotions. No class is below it.",
    ),
];
