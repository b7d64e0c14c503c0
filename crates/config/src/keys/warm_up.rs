//! The keys of warm-ups.

use crate::key::{Form, Key};

/// No file has more.
pub const WARM_UPS_MAX: usize = 1_000;

pub const WARM_UP: &[Key] = &[
    Key::new(
        "account",
        Form::Id,
        "The account that is new. Either this or `ip`.",
    )
    .example("\"mx-7\""),
    Key::new(
        "ip",
        Form::Ip,
        "The address that is new, whichever accounts send from it. Either this or `account`.",
    )
    .example("\"192.0.2.7\"")
    .aside(),
    Key::new(
        "destinations",
        Form::List(&Form::Text(256), 64),
        "Where it is new, each with a plan of its own: `isp:google`. Without any, one plan for \
         all that it sends.",
    )
    .example("[\"isp:google\", \"isp:outlook\"]"),
    Key::new(
        "plan",
        Form::Word(&["generic", "sendgrid", "ses"]),
        "How much on which day. See docs/warm-up.md.",
    )
    .default("\"generic\""),
    Key::new(
        "steps",
        Form::List(&Form::Whole(1, 1_000_000_000), 1_000),
        "A plan of one's own instead: how much on each day that goes well.",
    )
    .example("[50, 100, 200, 400]")
    .aside(),
    Key::new(
        "per",
        Form::Word(&["day", "hour"]),
        "Whether `steps` are messages a day or an hour.",
    )
    .default("\"day\"")
    .aside(),
    Key::new(
        "first_day",
        Form::Whole(1, 1_000),
        "Where in the plan to begin, if it was warmed up in part elsewhere. Read only when the \
         warm-up begins.",
    )
    .default("1"),
    Key::new(
        "overflow_pool",
        Form::Name,
        "What is over the quota goes through this pool. Without it, it waits.",
    )
    .example("\"warm\""),
    Key::new(
        "used",
        Form::Share,
        "A day counts only if at least this share of its quota was used.",
    )
    .default("\"50%\""),
    Key::new(
        "deferred",
        Form::Share,
        "A day counts only if at most this share of attempts was put off.",
    )
    .default("\"5%\""),
    Key::new(
        "bounced",
        Form::Share,
        "A day counts only if at most this share of attempts bounced.",
    )
    .default("\"2%\""),
    Key::new(
        "complained",
        Form::Share,
        "A day counts only if at most this share of accepted messages was complained of.",
    )
    .default("\"0.1%\""),
];
