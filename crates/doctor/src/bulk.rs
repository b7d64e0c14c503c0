//! How bulk mail is left. Each message says it, so it can only be recalled.

use crate::finding::{Check, Finding, Findings};

pub(crate) fn judge() -> Vec<Finding> {
    let mut findings = Findings::of(Check::Unsubscribe);
    findings.unknown(
        "each message says for itself how its recipient takes himself off the list",
        "give bulk messages `unsubscribe` with `url` and `one_click`, which adds List-Unsubscribe and \
         List-Unsubscribe-Post: Google and Yahoo demand one-click for bulk, done within 2 days",
    );
    findings.all
}
