//! The keys of a policy.

use crate::key::{Form, Key};

const COUNT: Form = Form::Whole(1, u32::MAX as u64);
const WHEN_AWAY: &[&str] = &["closed", "open", "local_share"];

/// The keys of a policy.
pub const POLICY: &[Key] = &[
    Key::new(
        "match",
        Form::Match,
        "What it governs: one of `isp`, `carrier`, `push`, `host`, `lane`, `account`, `pool`, \
         `ip`, `sender_domain`, `brand`, `tenant`, `campaign`, `class`, `recipient`, `worker`, \
         `key` (of the throttle), `global`, or several, which make a product. `\"*\"` is each of them, with a limit of its \
         own. Of policies over the same keys the most exact wins, field by field.",
    )
    .example("{ isp = \"google\", ip = \"*\" }"),
    Key::new(
        "rate",
        Form::Rate,
        "How fast: `\"40/s\"`, `\"600/min\"`, `\"40/s spaced\"` (evenly), `\"10%\"` of the \
         account's rate, or a number for so many a second.",
    )
    .example("\"2/s\""),
    Key::new(
        "max_rate",
        Form::PlainRate,
        "Where learning may take the rate, which begins at `rate` then. Without it `rate` is \
         the cap, and learning only goes below it.",
    )
    .example("\"20/s\"")
    .aside(),
    Key::new(
        "burst",
        COUNT,
        "How many at once. Without it, a tenth of a second's worth, at least 1.",
    )
    .example("5"),
    Key::new(
        "limits",
        Form::List(&Form::Limit, 16),
        "Further limits, as in an account.",
    )
    .example("[\"1000/h\"]")
    .aside(),
    Key::new(
        "concurrency",
        COUNT,
        "How many messages may be on their way at once.",
    )
    .example("5"),
    Key::new(
        "weight",
        Form::Whole(1, 1_000_000),
        "How many turns a tenant gets at a full limit for one of others.",
    )
    .example("1")
    .aside(),
    Key::new(
        "when_away",
        Form::Word(WHEN_AWAY),
        "What becomes of its limits while the ledger is away. Without it, `open` for tenants and \
         campaigns, else `closed`.",
    )
    .example("\"open\"")
    .aside(),
    Key::new(
        "mitigation_reason",
        Form::Text(1_024),
        "Makes it a temporary override: the policy that was there before stays, and holds again \
         afterwards.",
    )
    .example("\"Gmail answers 421 since 14:00\"")
    .aside(),
    Key::new(
        "cooldown_until",
        Form::Time,
        "Until when the override holds; then its rate ramps back up to the base, by \
         `runbook.ramp_step` each `runbook.ramp_every`. Without it, until somebody lifts it.",
    )
    .example("\"2026-03-02T08:00:00Z\"")
    .aside(),
    Key::new("comment", Form::Text(1_024), "Why, in somebody's words.")
        .example("\"agreed with the provider\""),
];
