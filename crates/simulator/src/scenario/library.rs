//! The scenarios that ship with Outflow.

use super::{Scenario, ScenarioError};

/// Names and texts of all of them, in the order in which they are listed.
pub const SHIPPED: [(&str, &str); 13] = [
    (
        "receipts-burst",
        include_str!("../../scenarios/receipts-burst.toml"),
    ),
    (
        "gmail-warming-ip",
        include_str!("../../scenarios/gmail-warming-ip.toml"),
    ),
    (
        "one-tenant-floods",
        include_str!("../../scenarios/one-tenant-floods.toml"),
    ),
    (
        "otp-under-digest-storm",
        include_str!("../../scenarios/otp-under-digest-storm.toml"),
    ),
    (
        "otp-on-few-connections",
        include_str!("../../scenarios/otp-on-few-connections.toml"),
    ),
    (
        "provider-outage-one-hour",
        include_str!("../../scenarios/provider-outage-one-hour.toml"),
    ),
    (
        "a-week-of-trickle",
        include_str!("../../scenarios/a-week-of-trickle.toml"),
    ),
    ("cascade", include_str!("../../scenarios/cascade.toml")),
    (
        "crash-every-minute",
        include_str!("../../scenarios/crash-every-minute.toml"),
    ),
    (
        "thousand-domains-one-mx",
        include_str!("../../scenarios/thousand-domains-one-mx.toml"),
    ),
    (
        "relay-two-thousand-domains",
        include_str!("../../scenarios/relay-two-thousand-domains.toml"),
    ),
    (
        "mx-two-thousand-hosts",
        include_str!("../../scenarios/mx-two-thousand-hosts.toml"),
    ),
    (
        "four-nodes-one-limit",
        include_str!("../../scenarios/four-nodes-one-limit.toml"),
    ),
];

/// The shipped scenario of this name; nothing if there is none.
pub fn shipped(name: &str) -> Option<Result<Scenario, ScenarioError>> {
    SHIPPED
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(name, text)| Scenario::parse(name, text))
}

/// A line for each: name and title.
pub fn listing() -> String {
    let width = SHIPPED
        .iter()
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or(0);
    SHIPPED
        .iter()
        .filter_map(|(name, text)| Scenario::parse(name, text).ok())
        .map(|it| format!("{:width$}  {}\n", it.name, it.title))
        .collect()
}
