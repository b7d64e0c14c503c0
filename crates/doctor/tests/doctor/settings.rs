//! What is wrong with settings, case by case.

use outflow_doctor::Check::{Limits, TenDlc, WarmUp as Warm};
use outflow_doctor::Status::{Unknown, Warn};
use outflow_doctor::subject::{Figures, Pace, Plan, Texter, WarmUp};

use crate::findings::Case;
use crate::world::World;

fn pace(world: &mut World, per_day: Option<u64>, connections: Option<u32>) {
    world.subject.paces = vec![Pace {
        provider: "google".to_owned(),
        account: "direct".to_owned(),
        ours: Figures {
            per_day,
            rate: per_day.map(|_| "50/s".to_owned()),
            connections,
        },
        known: Figures {
            per_day: Some(172_800),
            rate: Some("2/s".to_owned()),
            connections: Some(5),
        },
        has_traffic: Some(true),
    }];
}

pub const CASES: &[Case] = &[
    // Limits
    (
        |w| pace(w, Some(4_320_000), Some(5)),
        Limits,
        Warn,
        "may send 50/s to google",
    ),
    (
        |w| pace(w, None, Some(5)),
        Limits,
        Warn,
        "no rate for google",
    ),
    (
        |w| pace(w, Some(1), Some(50)),
        Limits,
        Warn,
        "50 connections",
    ),
    (
        |w| pace(w, Some(1), None),
        Limits,
        Warn,
        "any number of connections",
    ),
    // Warm-up
    (
        |w| w.subject.warm_up = WarmUp::default(),
        Warm,
        Unknown,
        "no server was asked",
    ),
    (
        |w| w.subject.warm_up = WarmUp::Plans(Vec::new()),
        Warm,
        Warn,
        "no address is warming up",
    ),
    (
        |w| {
            w.subject.warm_up = WarmUp::Plans(vec![Plan {
                about: "192.0.2.10".into(),
                state: "held on day 3".into(),
                is_held: true,
            }]);
        },
        Warm,
        Warn,
        "held on day 3",
    ),
    // Texts to the US
    (
        |w| {
            w.subject.texters.push(Texter {
                account: "sms".into(),
                brand: None,
            })
        },
        TenDlc,
        Warn,
        "sms",
    ),
];
