//! Canaries: messages to addresses of our own, before a rate goes up.
//!
//! They are sent like any other message, by the tenant `canary` and with class
//! critical, and judged by what became of them. What a process does not
//! remember after a restart counts as not answered in time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use outflow_config::valid::runbook::Canary;
use outflow_core::class::Class;
use outflow_core::message::{Seq, State};
use outflow_core::name::Name;
use outflow_core::runbook::{Answered, CANARY, Runbook};
use outflow_core::time::{Nanos, Wall};
use outflow_mail::Address;
use outflow_ports::draft::Draft;
use outflow_ports::letter::{Content, Envelope};

use crate::ask::{ask, on_disk};
use crate::problem::Problem;
use crate::state::ApiState;

/// A canary is of no use later.
const LIFE: Nanos = Nanos::from_secs(3_600);

/// Canaries that were sent, by destination.
#[derive(Debug, Default)]
pub struct Canaries {
    sent: BTreeMap<String, Sent>,
    /// Destinations whose canaries nobody can send.
    absent: BTreeSet<String>,
}

#[derive(Debug)]
struct Sent {
    seqs: Vec<Seq>,
    answer: Option<Answered>,
}

impl Canaries {
    /// Sends the canaries of a destination.
    pub(super) async fn send(
        &mut self,
        state: &ApiState,
        destination: &str,
        now: Wall,
    ) -> Result<(), Problem> {
        let Some(canary) = state.book.start().runbook.canaries.get(destination) else {
            return Ok(());
        };
        let submissions = draft(state, canary, now)?;
        let taken = ask(|then| state.intake.submit_whole(submissions, then)).await??;
        let seqs: Result<Vec<Seq>, _> = taken.into_iter().map(|taken| Ok(taken?.seq)).collect();
        let seqs = seqs.map_err(|why| Problem::too_many_flows("", why))?;
        let answer = None;
        let sent = Sent { seqs, answer };
        self.sent.insert(destination.to_owned(), sent);
        Ok(())
    }

    /// What became of those that are answered, by destination; told until nobody
    /// waits for it any more.
    pub(super) async fn answered(
        &mut self,
        state: &ApiState,
    ) -> Result<BTreeMap<String, Answered>, Problem> {
        for sent in self.sent.values_mut() {
            if sent.answer.is_none() {
                sent.answer = together(state, &sent.seqs).await?;
            }
        }
        let answers = self.sent.iter();
        let answers = answers.filter_map(|(place, sent)| Some((place.clone(), sent.answer?)));
        let absent = self.absent.iter().cloned();
        let absent = absent.map(|place| (place, Answered::Absent));
        Ok(answers.chain(absent).collect())
    }

    /// Forgets those whose answer nobody waits for.
    pub(super) fn forget(&mut self, book: &Runbook) {
        self.sent.retain(|place, _| book.awaits_canaries(place));
    }

    /// Looks whose canaries nobody can send. Those that are new, with the pool
    /// that has no account.
    pub(super) fn look(&mut self, state: &ApiState) -> Vec<(String, Name)> {
        let canaries = state.book.start().runbook.canaries.iter();
        let absent = canaries.filter(|(_, canary)| !state.book.has_pool(&canary.pool));
        let absent: BTreeMap<&String, &Canary> = absent.collect();
        let new = absent
            .iter()
            .filter(|(place, _)| !self.absent.contains(**place));
        let new = new.map(|(place, canary)| ((*place).clone(), canary.pool.clone()));
        let new: Vec<(String, Name)> = new.collect();
        self.absent = absent.into_keys().cloned().collect();
        new
    }
}

/// What became of canaries that were sent together; none as long as that is
/// open.
async fn together(state: &ApiState, seqs: &[Seq]) -> Result<Option<Answered>, Problem> {
    let mut taken = 0;
    for seq in seqs {
        match became(state, *seq).await? {
            Some(Answered::Taken) => taken += 1,
            Some(refused) => return Ok(Some(refused)),
            None => {}
        }
    }
    Ok((taken == seqs.len()).then_some(Answered::Taken))
}

/// What became of one canary; none as long as it is on its way. One that is put
/// off was refused for now.
async fn became(state: &ApiState, seq: Seq) -> Result<Option<Answered>, Problem> {
    let live = ask(|then| state.query.message(seq, then)).await?;
    let now = match live {
        Some(live) if live.attempts > 0 && live.state != State::Sending => {
            return Ok(Some(Answered::Refused));
        }
        Some(_) => return Ok(None),
        None => {
            let receipts = Arc::clone(&state.receipts);
            on_disk(move || receipts.get(seq))
                .await??
                .map(|receipt| receipt.state)
        }
    };
    Ok(match now {
        Some(State::Delivered) => Some(Answered::Taken),
        // A receipt may come a moment after the message is gone.
        None => None,
        Some(_) => Some(Answered::Refused),
    })
}

fn draft(
    state: &ApiState,
    canary: &Canary,
    now: Wall,
) -> Result<Vec<outflow_ports::intake::Submission>, Problem> {
    let address = |text: &String| {
        let read = Address::parse(text);
        read.map_err(|error| Problem::field("/canary", format!("{text:?}: {error}")))
    };
    let from = address(&canary.from)?;
    let to: Result<Vec<Address>, Problem> = canary.to.iter().map(address).collect();
    let to = to?;
    let domain = from.domain().to_owned();
    let content = Content {
        message_id: state.naming.message_id(now, &domain),
        date: now.0.div_euclid(1_000_000_000),
        from: canary.from.clone(),
        to: canary.to.clone(),
        subject: Some("Canary".to_owned()),
        text: Some("This message shows that mail arrives.".to_owned()),
        ..Content::default()
    };
    let draft = Draft {
        tenant: Name::from(CANARY),
        class: Class::Critical,
        campaign: None,
        pool: canary.pool.clone(),
        sender_domain: Name::from(domain.as_str()),
        not_before: None,
        expires_at: now + LIFE,
        key: None,
        fans_out: true,
        engaged: None,
        envelope: Envelope {
            from: from.into_string(),
            subject: content.subject.clone(),
            ..Envelope::default()
        },
        body: content.to_bytes().into(),
    };
    let recipients = to.into_iter().map(Address::into_recipient);
    Ok(draft.fan_out(recipients))
}
