//! The keys of feedback: return addresses, the suppression list.

use crate::key::{Form, Key};

pub const FEEDBACK: &[Key] = &[
    Key::new(
        "bounce_domain",
        Form::Host,
        "The domain that bounces and complaints return to. Mail that names no return address of \
         its own goes out with a signed one at this domain, and reports that come to such an \
         address over the listener of `[smtp]` are taken without a token. Its MX must lead to \
         that listener. Without it, mail returns to its sender.",
    )
    .example("\"bounces.example.com\""),
    Key::new(
        "suppressions_max",
        Form::Whole(1, 1_000_000_000),
        "How many entries the suppression list may have; each takes about 32 bytes of memory.",
    )
    .default("10000000"),
    Key::new(
        "surge_share",
        Form::Share,
        "When more than this share of what was sent to a destination in 15 minutes bounced for \
         want of the mailbox, the destination is doubted: its suppressions are held until \
         somebody has looked.",
    )
    .default("\"10%\""),
    Key::new(
        "surge_least",
        Form::Whole(1, 1_000_000_000),
        "Fewer such bounces in 15 minutes are never doubted.",
    )
    .default("50"),
    Key::new(
        "surge_times",
        Form::Whole(1, 1_000),
        "Nor is a share that is not more than so many times what the destination usually bounces.",
    )
    .default("5"),
];
