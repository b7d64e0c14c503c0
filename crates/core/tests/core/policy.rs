//! Which limits follow from which policies, and what they are called.

mod changes;
mod names;
mod properties;
mod ramp;
mod yields;

use jiff::tz::TimeZone;
use outflow_core::account::AccountSpec;
use outflow_core::destination::Destination;
use outflow_core::flow::FlowKey;
use outflow_core::limit::spec::{LimitSpec, Period, Rate, Zone};
use outflow_core::name::Name;
use outflow_core::policy::applied::Applied;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::policy::{Policy, RateOrShare};
use outflow_core::policy::set::Policies;
use outflow_core::time::Nanos;

const MINUTE: Nanos = Nanos::from_secs(60);
const DAY: Nanos = Nanos::from_secs(86_400);

fn on(text: &str) -> Match {
    text.parse().expect("a match")
}

fn policy(text: &str) -> Policy {
    Policy::new(on(text))
}

fn rate(text: &str, per_second: u32) -> Policy {
    Policy {
        rate: Some(RateOrShare::Rate(Rate::per_second(per_second))),
        ..policy(text)
    }
}

fn share(text: &str, permille: u16) -> Policy {
    Policy {
        rate: Some(RateOrShare::Share { permille }),
        ..policy(text)
    }
}

fn set(policies: impl IntoIterator<Item = Policy>) -> Policies {
    let mut set = Policies::default();
    for policy in policies {
        set.insert(policy).expect("a policy that can be honoured");
    }
    set
}

fn bucket(per_second: u32, burst: u32) -> LimitSpec {
    LimitSpec::TokenBucket {
        rate: Rate::per_second(per_second),
        burst,
    }
}

fn window(count: u32, window: Nanos) -> LimitSpec {
    LimitSpec::SlidingWindow { count, window }
}

fn quota(count: u32, zone: &str) -> LimitSpec {
    LimitSpec::CalendarWindow {
        count,
        period: Period::Day,
        zone: Zone {
            name: Name::from(zone),
            rules: TimeZone::get(zone).expect("a known zone"),
        },
    }
}

fn flow() -> FlowKey {
    FlowKey {
        tenant: Name::from("acme"),
        campaign: Some(Name::from("q4")),
        sender_domain: Some(Name::from("News.Acme.com")),
        ..FlowKey::to(Destination::isp("google"))
    }
}

fn account() -> AccountSpec {
    AccountSpec {
        ip: Some(Name::from("192.0.2.1")),
        brand: Some(Name::from("acme-inc")),
        ..AccountSpec::new("ses-1")
    }
}

fn keys(limits: &[Applied]) -> Vec<String> {
    limits.iter().map(|limit| limit.key.to_string()).collect()
}

fn spec<'a>(limits: &'a [Applied], key: &str) -> &'a LimitSpec {
    &found(limits, key).spec
}

fn found<'a>(limits: &'a [Applied], key: &str) -> &'a Applied {
    limits
        .iter()
        .find(|limit| limit.key.to_string() == key)
        .unwrap_or_else(|| unreachable!("no {key} in {:?}", keys(limits)))
}
