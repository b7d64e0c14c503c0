//! What is found out about an incident when it begins: through which accounts
//! it happens, and what the far end says.

use std::collections::BTreeMap;
use std::sync::Arc;

use outflow_core::message::{Seq, State};
use outflow_core::policy::matcher::Match;
use outflow_core::policy::scope::Scope;
use outflow_core::retry::dead_letter::LastError;
use outflow_core::runbook::{AtAccount, Heard, Incident};
use outflow_core::tally::{Counter, Window};
use outflow_ports::query::{Filter, TallyView};
use outflow_ports::receipts::{Happening, ReceiptFilter};
use outflow_telemetry::without_addresses;

use crate::ask::{ask, on_disk};
use crate::problem::Problem;
use crate::state::ApiState;

/// Messages that are looked at, of those that wait and of those that are done.
const LOOKS: usize = 100;
/// Accounts and answers that are kept.
const KEPT_MAX: usize = 10;
/// Bytes of an answer.
const TEXT_BYTES_MAX: usize = 300;

/// Through which accounts it happens, the worst first.
pub(super) fn accounts(incident: &Incident, views: &[TallyView]) -> Vec<AtAccount> {
    let Some(evidence) = incident.evidence.first() else {
        return Vec::new();
    };
    let mut counters = Counter::ALL.into_iter();
    let mut windows = Window::ALL.into_iter();
    let counter = counters.find(|it| it.as_str() == evidence.counted);
    let window = windows.find(|it| it.as_str() == evidence.window);
    let (Some(counter), Some(window)) = (counter, window) else {
        return Vec::new();
    };
    let tail = format!("/{}", incident.destination);
    let of_pairs = views.iter().filter_map(|view| {
        let account = view.key.name(Scope::Account)?;
        let is_here = view.key.to_string().ends_with(&tail);
        let part = view.count(window, counter);
        (is_here && part > 0).then(|| AtAccount {
            account: account.to_string(),
            part,
            whole: view.count(window, Counter::Attempts),
        })
    });
    let mut accounts: Vec<AtAccount> = of_pairs.collect();
    accounts.sort_by_key(|it| std::cmp::Reverse(it.part));
    accounts.truncate(KEPT_MAX);
    accounts
}

/// What the far end says lately, the most frequent first.
pub(super) async fn replies(state: &ApiState, incident: &Incident) -> Result<Vec<Heard>, Problem> {
    let place = incident.destination.clone();
    let matches = Match::from_pairs([("destination", place.as_str())]).ok();
    let filter = Filter {
        states: vec![State::Deferred],
        matches,
    };
    let waiting = ask(|then| state.query.messages(filter, Seq(0), LOOKS, then)).await?;
    let receipts = Arc::clone(&state.receipts);
    on_disk(move || {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        let mut hear = |error: &LastError| *counts.entry(text(error)).or_default() += 1;
        for live in waiting.items.iter().filter(|live| live.attempts > 0) {
            let events = receipts.events(live.seq)?;
            let said = |event: &Happening| event.error.clone();
            events
                .iter()
                .rev()
                .find_map(said)
                .iter()
                .for_each(&mut hear);
        }
        let filter = ReceiptFilter {
            states: vec![State::Bounced, State::Dead],
            destination: Some(place),
            ..ReceiptFilter::default()
        };
        for receipt in receipts.list(&filter, None, LOOKS)? {
            receipt.error.iter().for_each(&mut hear);
        }
        let heard = counts
            .into_iter()
            .map(|(text, count)| Heard { text, count });
        let mut heard: Vec<Heard> = heard.collect();
        heard.sort_by_key(|it| std::cmp::Reverse(it.count));
        heard.truncate(KEPT_MAX);
        Ok::<_, Problem>(heard)
    })
    .await?
}

/// As it was said, without addresses: incidents are kept for long, and those
/// that differ only by who was meant count as one.
fn text(error: &LastError) -> String {
    let said = without_addresses(&error.text);
    let mut text = match error.code {
        Some(code) => format!("{code} {said}"),
        None => said,
    };
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    text
}

#[cfg(test)]
mod tests {
    use outflow_core::name::Name;
    use outflow_core::outcome::ReplyClass;
    use outflow_core::retry::dead_letter::LastError;

    use super::text;

    #[test]
    fn nobody_s_address_gets_into_an_incident() {
        let heard = |who: &str| {
            text(&LastError {
                code: Some(550),
                enhanced: None,
                class: ReplyClass::Recipient,
                rule: Name::from("x"),
                text: format!("<{who}>: no such user"),
            })
        };
        assert_eq!(heard("jo@gmail.com"), "550 <<address>>: no such user");
        assert_eq!(heard("jo@gmail.com"), heard("al@gmail.com"));
    }
}
