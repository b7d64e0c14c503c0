//! `GET /messages`: live ones from the node, oldest first, then those done with
//! from the record, newest first.
//!
//! Work is bounded, so a page may be short, or even empty, and still carry a
//! cursor.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use outflow_core::class::Class;
use outflow_core::message::{Seq, State as MessageState};
use outflow_core::policy::matcher::Match;
use outflow_ports::query::{Filter, LiveMessage};
use outflow_ports::receipts::ReceiptFilter;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::view::{MessageView, waits_until};
use crate::ask::{ask, on_disk};
use crate::auth::{May, Submit};
use crate::bounded;
use crate::extract::Asked;
use crate::fields::{ClassWord, CursorText, DestinationText, NameText, StateList};
use crate::problem::{Code, Problem};
use crate::state::ApiState;

const PAGE: usize = 50;
const PAGE_MAX: usize = 200;

const LIVE: [MessageState; 4] = [
    MessageState::Queued,
    MessageState::Sending,
    MessageState::Deferred,
    MessageState::Spilled,
];
const FINAL: [MessageState; 6] = [
    MessageState::Delivered,
    MessageState::Bounced,
    MessageState::Expired,
    MessageState::Cancelled,
    MessageState::Suppressed,
    MessageState::Dead,
];

/// Which messages to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// In one of these states, separated by commas.
    #[param(value_type = Option<StateList>)]
    state: Option<String>,
    #[param(value_type = Option<NameText>)]
    tenant: Option<String>,
    #[param(value_type = Option<NameText>)]
    campaign: Option<String>,
    /// As `isp:google`.
    #[param(value_type = Option<DestinationText>)]
    destination: Option<String>,
    #[param(value_type = Option<ClassWord>)]
    class: Option<String>,
    #[param(value_type = Option<NameText>)]
    pool: Option<String>,
    /// Where the last page ended.
    #[param(value_type = Option<CursorText>)]
    cursor: Option<String>,
    /// At most so many; 50 unless told, at most 200.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
}

/// A page of messages.
#[derive(Debug, Serialize, ToSchema)]
pub struct MessagePage {
    messages: Vec<MessageView>,
    /// Ask again with this; null at the end.
    next_cursor: Option<String>,
}

impl MessagePage {
    /// The same page with these before it. One that was settled while both were
    /// read is shown once.
    fn after(mut self, mut first: Vec<MessageView>) -> Self {
        self.messages
            .retain(|one| first.iter().all(|other| other.id != one.id));
        first.append(&mut self.messages);
        self.messages = first;
        self
    }
}

/// What messages must have in common; what says nothing matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Selection {
    /// Whose they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameText>)]
    pub tenant: Option<String>,
    /// What they belong to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameText>)]
    pub campaign: Option<String>,
    /// Who judges them, as `isp:google`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<DestinationText>)]
    pub destination: Option<String>,
    /// How urgent they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ClassWord>)]
    pub class: Option<String>,
    /// Which accounts send them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameText>)]
    pub pool: Option<String>,
}

impl Selection {
    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        let fields = [
            ("tenant", &self.tenant),
            ("campaign", &self.campaign),
            ("destination", &self.destination),
            ("class", &self.class),
            ("pool", &self.pool),
        ];
        fields
            .into_iter()
            .filter_map(|(field, text)| Some((field, text.as_deref()?)))
    }

    /// What the flows of live messages must match; none for all.
    pub fn matches(&self) -> Result<Option<Match>, String> {
        if self.pairs().next().is_none() {
            return Ok(None);
        }
        matched(self.pairs()).map(Some)
    }

    /// What receipts must have.
    pub fn receipts(&self, states: Vec<MessageState>) -> ReceiptFilter {
        let canonical = self.matches().ok().flatten();
        let destination = canonical.and_then(|matches| {
            let mut terms = matches.terms().iter();
            let (kind, name) = terms.find(|(scope, _)| {
                outflow_core::policy::scope_set::ScopeSet::DESTINATIONS.has(*scope)
            })?;
            Some(format!("{kind}:{}", name.as_str()))
        });
        ReceiptFilter {
            states,
            tenant: self.tenant.clone(),
            campaign: self.campaign.clone(),
            class: self.class.clone(),
            destination: destination.or_else(|| self.destination.clone()),
            pool: self.pool.clone(),
            settled_since: None,
            settled_before: None,
        }
    }
}

/// Reads terms that must all agree. Names have the form that messages may have.
pub fn matched<'a>(
    pairs: impl Iterator<Item = (&'a str, &'a str)> + Clone,
) -> Result<Match, String> {
    let mut wrong = pairs.clone().filter(|(_, name)| *name != "*");
    let wrong = wrong.find_map(|(word, name)| Some((word, bounded::name(name).err()?)));
    if let Some((word, wrong)) = wrong {
        return Err(format!("{word} {wrong}"));
    }
    Match::from_pairs(pairs).map_err(|error| error.to_string())
}

/// Where a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cursor {
    /// Among live messages, from this one on.
    Live(Seq),
    /// Among receipts, below this one; from the newest if none.
    Done(Option<Seq>),
}

impl Cursor {
    fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| text.parse().ok().map(Seq);
        match text.split_at_checked(1)? {
            ("l", from) => number(from).map(Self::Live),
            ("d", "") => Some(Self::Done(None)),
            ("d", before) => number(before).map(|seq| Self::Done(Some(seq))),
            _ => None,
        }
    }

    fn text(self) -> String {
        match self {
            Self::Live(Seq(from)) => format!("l{from}"),
            Self::Done(None) => "d".to_owned(),
            Self::Done(Some(Seq(before))) => format!("d{before}"),
        }
    }
}

fn bad(detail: impl Into<String>) -> Problem {
    Problem::new(Code::InvalidQuery, detail)
}

fn states(text: Option<&str>) -> Result<Vec<MessageState>, Problem> {
    let words = text.unwrap_or_default().split(',').map(str::trim);
    words
        .filter(|word| !word.is_empty())
        .map(|word| {
            let mut all = LIVE.into_iter().chain(FINAL);
            let found = all.find(|state| state.as_str() == word);
            found.ok_or_else(|| bad(format!("state: {word:?} is no state of a message")))
        })
        .collect()
}

/// List messages, live ones first.
#[utoipa::path(
    get,
    path = "/messages",
    tag = "messages",
    params(ListQuery),
    responses((status = 200, description = "a page of messages", body = MessagePage)),
)]
pub async fn list(
    may: May<Submit>,
    State(state): State<ApiState>,
    Asked(Query(query)): Asked<Query<ListQuery>>,
) -> Result<Json<MessagePage>, Problem> {
    let max = query.limit.unwrap_or(PAGE);
    if !(1..=PAGE_MAX).contains(&max) {
        return Err(bad(format!("limit must be between 1 and {PAGE_MAX}")));
    }
    let states = states(query.state.as_deref())?;
    if let Some(class) = &query.class {
        class
            .parse::<Class>()
            .map_err(|error| bad(error.to_string()))?;
    }
    let selection = Selection {
        tenant: may.tenant_or(query.tenant)?,
        campaign: query.campaign,
        destination: query.destination,
        class: query.class,
        pool: query.pool,
    };
    let matches = selection.matches().map_err(bad)?;
    let wanted = |of: &[MessageState]| -> Vec<MessageState> {
        let all = of.iter().copied();
        all.filter(|state| states.is_empty() || states.contains(state))
            .collect()
    };
    let (live, done) = (wanted(&LIVE), wanted(&FINAL));
    let cursor = match query.cursor.as_deref() {
        Some(text) => Cursor::parse(text).ok_or_else(|| bad("cursor is not one of ours"))?,
        None if live.is_empty() => Cursor::Done(None),
        None => Cursor::Live(Seq(0)),
    };
    let page = match cursor {
        Cursor::Live(from) => {
            let filter = Filter {
                states: live,
                matches,
            };
            let (messages, next) = live_page(&state, filter, from, max).await?;
            let room = max.saturating_sub(messages.len());
            match next {
                None if room > 0 && !done.is_empty() => {
                    // Those done with follow at once, so that a short list is
                    // one page.
                    let rest = done_page(&state, selection.receipts(done), None, room).await?;
                    rest.after(messages)
                }
                next => {
                    let then_done = (!done.is_empty()).then_some(Cursor::Done(None));
                    MessagePage {
                        messages,
                        next_cursor: next.map(Cursor::Live).or(then_done).map(Cursor::text),
                    }
                }
            }
        }
        Cursor::Done(_) if done.is_empty() => MessagePage {
            messages: Vec::new(),
            next_cursor: None,
        },
        Cursor::Done(before) => done_page(&state, selection.receipts(done), before, max).await?,
    };
    Ok(Json(page))
}

async fn live_page(
    state: &ApiState,
    filter: Filter,
    from: Seq,
    max: usize,
) -> Result<(Vec<MessageView>, Option<Seq>), Problem> {
    let page = ask(|then| state.query.messages(filter, from, max, then)).await?;
    let mut views = addressed(&page.items).await?;
    // Asked all at once, so that the node answers them in one turn.
    let queued = page.items.iter().zip(0..);
    let queued = queued.filter(|(live, _)| live.state == MessageState::Queued);
    let asked: Vec<_> = queued
        .map(|(live, place)| {
            let (then, answer) = tokio::sync::oneshot::channel();
            let tell = Box::new(move |explained| {
                let _ = then.send(explained);
            });
            state.query.explain(live.seq, tell);
            (place, answer)
        })
        .collect();
    let now = state.clock.now();
    for (place, answer) in asked {
        let explained = answer.await.ok().flatten();
        let view: Option<&mut MessageView> = views.get_mut::<usize>(place);
        if let (Some((_, explanation)), Some(view)) = (explained, view) {
            view.defer(waits_until(&explanation, now));
        }
    }
    Ok((views, page.next))
}

/// Live messages as they are shown, with what their envelopes say.
async fn addressed(items: &[LiveMessage]) -> Result<Vec<MessageView>, Problem> {
    let mut views: Vec<MessageView> = items.iter().map(MessageView::of_live).collect();
    let parcels: Vec<_> = items.iter().map(|live| live.parcel.clone()).collect();
    let envelopes = on_disk(move || {
        let read = parcels.into_iter();
        let read = read.map(|parcel| parcel.and_then(|parcel| parcel.read_envelope().ok()));
        read.collect::<Vec<_>>()
    })
    .await?;
    for (view, envelope) in views.iter_mut().zip(envelopes) {
        if let Some(envelope) = envelope {
            view.address(&envelope);
        }
    }
    Ok(views)
}

async fn done_page(
    state: &ApiState,
    filter: ReceiptFilter,
    before: Option<Seq>,
    max: usize,
) -> Result<MessagePage, Problem> {
    let receipts = Arc::clone(&state.receipts);
    let found = on_disk(move || receipts.list(&filter, before, max)).await??;
    let last = found.last().map(|receipt| receipt.seq);
    let next = last.filter(|_| found.len() >= max);
    Ok(MessagePage {
        messages: found.into_iter().map(MessageView::of_receipt).collect(),
        next_cursor: next.map(|seq| Cursor::Done(Some(seq)).text()),
    })
}
