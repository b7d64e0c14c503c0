//! Other names by which people know a destination.
//!
//! A policy for `isp/gmail` must not become a second policy beside the one for
//! `isp/google`, so names are made canonical before they are compared. Domains
//! that roll up by MX are not listed here, only words that people write.

use std::borrow::Cow;

use super::scope::Scope;
use crate::name::Name;

/// Scope, what people write, what it is called here.
const ALIASES: &[(Scope, &str, &str)] = &[
    (Scope::Isp, "gmail", "google"),
    (Scope::Isp, "gmail.com", "google"),
    (Scope::Isp, "googlemail", "google"),
    (Scope::Isp, "google-workspace", "google"),
    (Scope::Isp, "hotmail", "outlook"),
    (Scope::Isp, "outlook.com", "outlook"),
    (Scope::Isp, "live", "outlook"),
    (Scope::Isp, "msn", "outlook"),
    (Scope::Isp, "microsoft", "outlook"),
    (Scope::Isp, "o365", "office365"),
    (Scope::Isp, "m365", "office365"),
    (Scope::Isp, "microsoft365", "office365"),
    (Scope::Isp, "exchange-online", "office365"),
    (Scope::Isp, "aol", "yahoo"),
    (Scope::Isp, "yahoo.com", "yahoo"),
    (Scope::Isp, "ymail", "yahoo"),
    (Scope::Isp, "apple", "icloud"),
    (Scope::Isp, "icloud.com", "icloud"),
    (Scope::Isp, "me.com", "icloud"),
    (Scope::Isp, "at&t", "att"),
    (Scope::Isp, "att.net", "att"),
    (Scope::Isp, "sbcglobal", "att"),
    (Scope::Isp, "bellsouth", "att"),
    (Scope::Isp, "xfinity", "comcast"),
    (Scope::Isp, "comcast.net", "comcast"),
    (Scope::Isp, "web.de", "gmx"),
    (Scope::Isp, "webde", "gmx"),
    (Scope::Isp, "wanadoo", "orange"),
    (Scope::Isp, "charter", "spectrum"),
    (Scope::Isp, "163", "netease"),
    (Scope::Isp, "foxmail", "qq"),
    (Scope::Carrier, "att", "us-att"),
    (Scope::Carrier, "at&t", "us-att"),
    (Scope::Carrier, "tmobile", "us-tmobile"),
    (Scope::Carrier, "t-mobile", "us-tmobile"),
    (Scope::Carrier, "us-t-mobile", "us-tmobile"),
    (Scope::Carrier, "verizon", "us-verizon"),
    (Scope::Push, "apple", "apns"),
    (Scope::Push, "apn", "apns"),
    (Scope::Push, "firebase", "fcm"),
    (Scope::Push, "google", "fcm"),
];

/// What `name` is called here: the target of the alias it is, else itself.
pub fn resolve(scope: Scope, name: &str) -> &str {
    // Names are made canonical on the way of messages, and most have no aliases.
    if !matches!(scope, Scope::Isp | Scope::Carrier | Scope::Push) {
        return name;
    }
    ALIASES
        .iter()
        .find(|(of, alias, _)| *of == scope && alias.eq_ignore_ascii_case(name))
        .map_or(name, |(_, _, target)| target)
}

/// Whether `name`, as somebody wrote it, is the canonical name `wanted`.
pub fn is(scope: Scope, name: &str, wanted: &str) -> bool {
    let name = resolve(scope, name);
    if scope.ignores_case() {
        name.eq_ignore_ascii_case(wanted)
    } else {
        name == wanted
    }
}

/// The canonical name: alias followed, case folded where it does not count.
pub fn canonical(scope: Scope, name: &Name) -> Name {
    match fold(scope, name.as_str()) {
        Cow::Borrowed(text) if text == name.as_str() => name.clone(),
        text => Name::from(text.as_ref()),
    }
}

fn fold(scope: Scope, name: &str) -> Cow<'_, str> {
    if scope == Scope::Lane {
        return fold_lane(name);
    }
    let name = resolve(scope, name);
    if scope.ignores_case() && name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    }
}

/// In `default/isp:Gmail` only the destination has aliases and no case.
fn fold_lane(name: &str) -> Cow<'_, str> {
    let Some((pool, destination)) = name.rsplit_once('/') else {
        return Cow::Borrowed(name);
    };
    let Some((kind, host)) = destination.split_once(':') else {
        return Cow::Borrowed(name);
    };
    // A domain that is not resolved yet has no scope, and folds like a host.
    let scope = kind.parse().unwrap_or(Scope::Host);
    Cow::Owned(format!("{pool}/{kind}:{}", fold(scope, host)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_alias_is_found() {
        for (scope, alias, target) in ALIASES {
            assert_eq!(resolve(*scope, alias), *target);
        }
    }
}
