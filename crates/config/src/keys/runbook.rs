//! The keys of the incident runbook and of canaries.

use outflow_core::time::Nanos;

use crate::key::{Form, Key};

const DAY: u64 = 86_400;
const WAIT: Form = Form::Span(Nanos::from_millis(100), Nanos::from_secs(30 * DAY));
/// Who looks less often than each minute sees too late.
const LOOK: Form = Form::Span(Nanos::from_millis(100), Nanos::from_secs(60));
const CLASS: Form = Form::Word(&["high", "normal", "low"]);
/// What is counted of replies is counted for so long.
const SHORT: Form = Form::Word(&["1m", "5m", "15m"]);
const LONG: Form = Form::Word(&["1m", "5m", "15m", "1h", "24h", "7d"]);

const SHARE: Key = Key::new("share", Form::Share, "It speaks above this share.");
const CALM: Key = Key::new(
    "calm",
    Form::Share,
    "It is quiet again once the share over the latest part of the window is not above this.",
);
const WINDOW: &str = "Over how long the share is taken.";
const LEAST: Key = Key::new(
    "least",
    Form::Whole(1, 1_000_000_000),
    "Fewer than this many in the window say nothing.",
);

const COMPLAINTS: &[Key] = &[
    SHARE.default("\"0.3%\""),
    CALM.default("\"0.1%\""),
    Key::new("window", LONG, WINDOW).default("\"24h\""),
    LEAST.default("1000"),
];
const TOO_FAST: &[Key] = &[
    SHARE.default("\"1%\""),
    CALM.default("\"0.5%\""),
    Key::new("window", SHORT, WINDOW).default("\"15m\""),
    LEAST.default("100"),
];
const DEFERRALS: &[Key] = &[
    SHARE.default("\"5%\""),
    CALM.default("\"2.5%\""),
    Key::new("window", SHORT, WINDOW).default("\"15m\""),
    LEAST.default("100"),
];
const HARD_BOUNCES: &[Key] = &[
    SHARE.default("\"2%\""),
    CALM.default("\"1%\""),
    Key::new("window", LONG, WINDOW).default("\"24h\""),
    LEAST.default("200"),
];
const FEWER_OPENS: &[Key] = &[
    Key::new(
        "part",
        Form::Share,
        "It speaks when the share of opens over a day is below this part of what it is over a \
         week.",
    )
    .default("\"50%\""),
    LEAST.default("1000"),
];

pub const RUNBOOK: &[Key] = &[
    Key::new(
        "enabled",
        Form::Flag,
        "Whether destinations are watched at all.",
    )
    .default("true"),
    Key::new(
        "act",
        Form::Flag,
        "Whether anything is done beside telling. If so, the rates of policies about the \
         destination are cut, or what was sent where there are none; classes are paused and traffic is sent another way only where the \
         keys below say how.",
    )
    .default("true"),
    Key::new(
        "look_every",
        LOOK,
        "How often the counts are looked at; at most a quarter of `ramp_every`.",
    )
    .default("\"10s\""),
    Key::new(
        "cut",
        Form::Share,
        "The share of the rate that is left after a cut.",
    )
    .default("\"50%\""),
    Key::new("cooldown", WAIT, "No step up for so long after a cut.").default("\"30m\""),
    Key::new(
        "calm",
        WAIT,
        "All rules must be quiet for so long before the first step up.",
    )
    .default("\"30m\""),
    Key::new(
        "ramp_step",
        Form::Share,
        "What each step up adds, of the base. Mitigations that people write are taken back by \
         the same steps.",
    )
    .default("\"10%\""),
    Key::new("ramp_every", WAIT, "The time between two steps up.").default("\"10m\""),
    Key::new(
        "paused_classes",
        Form::List(&CLASS, 3),
        "Classes that can wait: they are paused to a destination while it is in trouble. None \
         unless said.",
    )
    .example("[\"low\"]"),
    Key::new(
        "detour_pool",
        Form::Name,
        "Another pool, which takes a share of critical messages to a destination while it is in \
         trouble. None unless said.",
    )
    .example("\"backup\""),
    Key::new(
        "detour_share",
        Form::Share,
        "The share of critical messages that goes there.",
    )
    .default("\"10%\""),
    Key::new(
        "canary_within",
        WAIT,
        "Canaries without a good answer by then hold the next step up.",
    )
    .default("\"10m\""),
    Key::new(
        "complaints",
        Form::Table(COMPLAINTS),
        "Complaints among accepted messages: acts.",
    ),
    Key::new(
        "too_fast",
        Form::Table(TOO_FAST),
        "Replies that say we are too fast, among attempts: acts.",
    ),
    Key::new(
        "deferrals",
        Form::Table(DEFERRALS),
        "Replies of 4xx among attempts: cuts rates, and no more.",
    ),
    Key::new(
        "hard_bounces",
        Form::Table(HARD_BOUNCES),
        "Bounces among attempts: acts.",
    ),
    Key::new(
        "fewer_opens",
        Form::Table(FEWER_OPENS),
        "Opens among accepted messages: pauses classes, and no more.",
    ),
];

/// No file has more lists of canaries.
pub const CANARIES_MAX: usize = 1_000;

pub const CANARY: &[Key] = &[
    Key::new(
        "destination",
        Form::Text(256),
        "Where they are: `isp:google`.",
    )
    .example("\"isp:google\""),
    Key::new(
        "to",
        Form::List(&Form::Text(254), 16),
        "Addresses of our own there, which want to hear of us.",
    )
    .example("[\"canary@gmail.com\"]"),
    Key::new("from", Form::Text(254), "Who writes to them.").example("\"canary@example.com\""),
    Key::new("pool", Form::Name, "Through which accounts.").default("\"default\""),
];
