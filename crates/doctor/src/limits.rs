//! Rates and connections in force, against those that providers are known to
//! take.

use crate::finding::{Check, Finding, Findings};
use crate::subject::{Pace, Subject};

pub(crate) fn judge(subject: &Subject) -> Vec<Finding> {
    let mut findings = Findings::of(Check::Limits);
    for pace in &subject.paces {
        too_fast(pace, &mut findings);
    }
    if findings.all.is_empty() {
        findings.ok(match subject.paces.is_empty() {
            true => "no account sends straight to providers: their relays pace what they take",
            false => "no rate is above what a provider is known to take",
        });
    }
    findings.all
}

fn too_fast(pace: &Pace, findings: &mut Findings) {
    let Pace {
        provider,
        account,
        ours,
        known,
        ..
    } = pace;
    let busy = match pace.has_traffic {
        Some(true) => ", and messages go there now",
        _ => "",
    };
    let set = |what: &str| {
        format!("write a policy with match = {{ isp = \"{provider}\", ip = \"*\" }} and {what}")
    };
    if let (Some(most), Some(rate)) = (known.per_day, &known.rate) {
        match (ours.per_day, &ours.rate) {
            (Some(own), Some(written)) if own > most => {
                findings.warn(
                    format!(
                        "{account} may send {written} to {provider}, known to take {rate} from \
                         one address{busy}"
                    ),
                    format!(
                        "{}, and raise it as replies allow: max_rate learns",
                        set(&format!("rate = \"{rate}\""))
                    ),
                );
            }
            // Nobody needs a rate for whom nobody writes to.
            (None, _) if pace.has_traffic != Some(false) => {
                findings.warn(
                    format!(
                        "{account} has no rate for {provider}, known to take {rate} from one \
                         address{busy}"
                    ),
                    format!(
                        "{}, or leave destinations.policies on",
                        set(&format!("rate = \"{rate}\""))
                    ),
                );
            }
            _ => {}
        }
    }
    if let Some(most) = known.connections
        && ours.connections.is_none_or(|own| own > most)
    {
        let own = ours.connections.map(|own| own.to_string());
        let own = own.as_deref().unwrap_or("any number of");
        findings.warn(
            format!(
                "{account} may hold {own} connections to {provider}, known to take {most} from \
                 one address{busy}"
            ),
            set(&format!("concurrency = {most}")),
        );
    }
}
