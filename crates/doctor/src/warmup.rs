//! How far new addresses are.

use crate::finding::{Check, Finding, Findings};
use crate::subject::{Subject, WarmUp, Way};

pub(crate) fn judge(subject: &Subject) -> Vec<Finding> {
    let mut findings = Findings::of(Check::WarmUp);
    let mut senders = subject.senders.iter();
    let is_direct = senders.any(|sender| matches!(sender.way, Way::Direct { .. }));
    match &subject.warm_up {
        WarmUp::Unknown(why) => {
            findings.unknown(
                format!("whether addresses are warming up is not known: {why}"),
                "start `outflow serve`, or say where it is with --server, and ask again",
            );
        }
        WarmUp::Plans(plans) if plans.is_empty() && is_direct => {
            findings.warn(
                "no address is warming up",
                "if an address or domain is new, begin with a few hundred messages a day and \
                 less than double it each day, over four to six weeks",
            );
        }
        WarmUp::Plans(plans) if plans.is_empty() => {
            findings.ok("no account sends from an address of its own: nothing to warm up");
        }
        WarmUp::Plans(plans) => {
            for plan in plans {
                let what = format!("{}: {}", plan.about, plan.state);
                match plan.is_held {
                    true => {
                        findings.warn(what, "look at the replies that held it: `outflow lanes`");
                    }
                    false => findings.ok(what),
                }
            }
        }
    }
    findings.all
}
