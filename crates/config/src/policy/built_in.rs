//! The policies that come with the program: how large mailbox providers like to
//! be sent to.

use serde::Deserialize;
use serde_json::Value;

use super::raw::RawPolicy;

const BUILT_IN: &str = include_str!("../../data/provider-policies.toml");

#[derive(Deserialize)]
struct File {
    policy: Vec<Value>,
}

/// The policies that come with the program.
pub fn built_in() -> Vec<RawPolicy> {
    let file: File = toml::from_str(BUILT_IN).expect("the file that is compiled in is TOML");
    let read = |value| RawPolicy::read(value).expect("a policy that is compiled in can be read");
    file.policy.iter().map(read).collect()
}
