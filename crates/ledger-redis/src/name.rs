//! What things are called in Redis.
//!
//! People read these keys, so they are made of the words that people know:
//! `outflow:limit:isp:google{07}`. The two digits are a hash tag: a limit, the
//! epoch of its counts and the list of pauses share one, and so live in one slot
//! of a cluster.

use outflow_core::policy::key::LimitKey;

/// How many tags there are.
pub(crate) const TAGS: u8 = 64;

/// One of the tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tag(pub u8);

impl Tag {
    /// The tag of a limit: the same on every node, in every version.
    fn of(text: &str) -> Self {
        // FNV-1a.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self((hash % u64::from(TAGS)) as u8)
    }

    /// Its bit in a set of tags.
    pub const fn bit(self) -> u64 {
        1 << (self.0 % TAGS)
    }
}

/// The names under one prefix.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    prefix: String,
}

impl Names {
    pub fn new(prefix: &str) -> Self {
        let prefix = prefix.to_owned();
        Self { prefix }
    }

    /// The tag of a limit and its name.
    pub fn limit(&self, key: &LimitKey) -> (Tag, String) {
        let text = key.to_string();
        let tag = Tag::of(&text);
        // The first brace begins the tag.
        let text = text.replace('%', "%25").replace('{', "%7B");
        (tag, format!("{}:limit:{text}{{{:02}}}", self.prefix, tag.0))
    }

    pub fn epoch(&self, tag: Tag) -> String {
        format!("{}:epoch:{{{:02}}}", self.prefix, tag.0)
    }

    pub fn pauses(&self, tag: Tag) -> String {
        format!("{}:pauses:{{{:02}}}", self.prefix, tag.0)
    }

    /// The version of the fleet's policies.
    pub fn version(&self) -> String {
        format!("{}:{{policies}}:version", self.prefix)
    }

    pub fn policies(&self) -> String {
        format!("{}:{{policies}}", self.prefix)
    }

    /// Where pauses and new policies are announced.
    pub fn channel(&self) -> String {
        format!("{}:changes", self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outflow_core::policy::scope::Scope;

    #[test]
    fn people_understand_keys() {
        let names = Names::new("outflow");
        let (tag, name) = names.limit(&LimitKey::of(Scope::Isp, "google"));
        assert_eq!(name, format!("outflow:limit:isp:google{{{:02}}}", tag.0));
        assert_eq!(names.epoch(Tag(7)), "outflow:epoch:{07}");
    }

    #[test]
    fn tags_never_change() {
        // Nodes of different versions must agree.
        let tags = ["isp:google", "tenant:acme", "account:ses-1/isp:google"].map(Tag::of);
        assert_eq!(tags, [Tag(16), Tag(7), Tag(15)]);
    }

    #[test]
    fn a_name_with_braces_keeps_its_tag() {
        let names = Names::new("outflow");
        let (tag, name) = names.limit(&LimitKey::of(Scope::Tenant, "a{b}c"));
        let tagged = name.split_once('{').map(|(_, rest)| rest.to_owned());
        assert_eq!(tagged, Some(format!("{:02}}}", tag.0)));
    }
}
