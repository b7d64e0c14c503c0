//! The keys of pools and of breakers.

use outflow_core::time::Nanos;

use crate::key::{Form, Key};

const WAIT: Form = Form::Span(Nanos::from_millis(100), Nanos::from_secs(86_400));

pub const POOLS: &[Key] = &[
    Key::new(
        "under_pressure",
        Form::Word(&["keep", "fill"]),
        "What the healthy accounts of a pool do while others are blocked (`Retry-After`, a \
         breaker): keep the rate of the minute before, so that the pool sends less and nobody is \
         pushed over its limit; or fill up to their limits. See docs/accounts-under-pressure.md.",
    )
    .default("\"keep\""),
    Key::new(
        "adapt_concurrency",
        Form::Flag,
        "Whether to find out from latency how many requests at once an account bears, where it \
         has request slots and no limit says so. Never more than its `max_connections`.",
    )
    .default("false"),
];

pub const BREAKER: &[Key] = &[
    Key::new(
        "enabled",
        Form::Flag,
        "Whether accounts that fail again and again, or are refused too often, are left alone.",
    )
    .default("true"),
    Key::new(
        "failures",
        Form::Whole(1, 10_000),
        "So many failures one after the other open a breaker: time-outs, broken connections, \
         errors of the far end. A refusal for the rate (429) is none.",
    )
    .default("10"),
    Key::new(
        "share",
        Form::Share,
        "They must also be this share of the replies of the last 12 seconds.",
    )
    .default("\"50%\""),
    Key::new(
        "open_for",
        WAIT,
        "How long a breaker is open the first time, before one message is tried. Each time that \
         one fails, the next is twice as long.",
    )
    .default("\"10s\""),
    Key::new("open_max", WAIT, "No breaker is open for longer.").default("\"2m\""),
    Key::new(
        "refusals",
        Form::Share,
        "If more than this share of the replies of a minute refuse us (rate, reputation, \
         overload), the account stops sending there.",
    )
    .default("\"20%\""),
    Key::new(
        "refusals_least",
        Form::Whole(1, 1_000_000),
        "Fewer replies than this in a minute say nothing about refusals.",
    )
    .default("20"),
    Key::new(
        "stop_for",
        WAIT,
        "How long an account that is refused too often stops.",
    )
    .default("\"30s\""),
];
