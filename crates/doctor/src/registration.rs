//! Text messages to the US: without a registered brand and campaign carriers
//! block what ordinary numbers send.

use crate::finding::{Check, Finding, Findings};
use crate::subject::Subject;

pub(crate) fn judge(subject: &Subject) -> Vec<Finding> {
    let mut findings = Findings::of(Check::TenDlc);
    for texter in &subject.texters {
        match texter.brand.as_deref().filter(|brand| !brand.is_empty()) {
            Some(brand) => findings.ok(format!("{} sends for the brand {brand}", texter.account)),
            None => {
                findings.warn(
                    format!("{} sends texts to the US without a brand", texter.account),
                    "register brand and campaign with The Campaign Registry through your \
                     provider, and write the account's brand: carriers block what is not \
                     registered",
                );
            }
        }
    }
    if findings.all.is_empty() {
        findings.ok("no account sends texts to the US");
    }
    findings.all
}
