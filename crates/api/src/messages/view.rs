//! A message as it is shown.

use std::collections::BTreeMap;

use outflow_core::engine::explain::{Explanation, Obstacle};
use outflow_core::flow::FlowKey;
use outflow_core::message::State;
use outflow_core::message_id::MessageId;
use outflow_core::outcome::ReplyClass;
use outflow_core::reply::Enhanced;
use outflow_core::retry::dead_letter::LastError;
use outflow_core::time::Wall;
use outflow_ports::letter::Envelope;
use outflow_ports::query::LiveMessage;
use outflow_ports::receipts::{Happening, Receipt};
use serde::Serialize;
use utoipa::ToSchema;

use crate::stamp::Stamp;

/// A message.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Message)]
#[expect(missing_docs, reason = "the glossary says it")]
pub struct MessageView {
    pub id: String,
    /// `queued`, `sending`, `deferred`, `spilled`, `delivered`, `bounced`,
    /// `expired`, `cancelled`, `suppressed` or `dead`.
    pub state: &'static str,
    pub channel: &'static str,
    pub tenant: String,
    pub class: &'static str,
    pub campaign: Option<String>,
    pub pool: String,
    /// As `isp:google`; `domain:example.com` until it is known who hosts it.
    pub destination: String,
    pub from: Option<String>,
    pub to: Option<String>,
    pub subject: Option<String>,
    pub tags: BTreeMap<String, String>,
    pub accepted_at: Stamp,
    pub expires_at: Option<Stamp>,
    pub settled_at: Option<Stamp>,
    pub attempts: u16,
    /// The account that tried last.
    pub account: Option<String>,
    /// A waiting message is not sent before this.
    pub deferred_until: Option<Stamp>,
    /// The same in seconds since the Unix epoch.
    pub deferred_ts: Option<i64>,
    /// Why a dead letter was given up.
    pub cause: Option<&'static str>,
    pub last_error: Option<ErrorView>,
}

/// The last thing that went wrong.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LastError)]
pub struct ErrorView {
    /// What went wrong, in one word: `rate_limited`.
    code: &'static str,
    smtp_status: Option<u16>,
    /// As `4.7.28`.
    enhanced: Option<String>,
    http_status: Option<u16>,
    /// What the far end said.
    provider_message: String,
    /// Why the far end answered as it did.
    class: &'static str,
}

/// Something that happened to a message.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MessageEvent)]
#[expect(missing_docs, reason = "the names say it")]
pub struct EventView {
    pub at: Stamp,
    /// `accepted`, `deferred`, `delivered`, `bounced`, ...
    pub what: String,
    pub account: Option<String>,
    pub until: Option<Stamp>,
    pub error: Option<ErrorView>,
}

/// What stands before a message.
#[derive(Debug, Serialize, ToSchema)]
pub struct WaitingOn {
    /// `limit`, `due_time`, `account_blocked`, `account_broken`, `under_pressure`,
    /// `no_account`, `no_account_ready`, `no_session`, `unresolved`, `paused`,
    /// `store_failing` or `draining`.
    pub reason: &'static str,
    /// The limit, if it is one.
    pub limit: Option<String>,
    /// Until when; null if nobody knows.
    pub until: Option<Stamp>,
    /// The account, if it is about one.
    pub account: Option<String>,
    /// What the far end or the network said, if it is about a session that does
    /// not open.
    pub detail: Option<String>,
}

/// The id of a message.
pub fn id_of(accepted_at: Wall, seq: outflow_core::message::Seq) -> String {
    MessageId::new(accepted_at, seq).to_string()
}

impl MessageView {
    fn new(id: String, key: &FlowKey, state: State, accepted_at: Wall, attempts: u16) -> Self {
        Self {
            id,
            state: state.as_str(),
            channel: key.channel.as_str(),
            tenant: key.tenant.as_str().to_owned(),
            class: key.class.as_str(),
            campaign: key.campaign.as_ref().map(|name| name.as_str().to_owned()),
            pool: key.pool.as_str().to_owned(),
            destination: key.destination.to_string(),
            from: None,
            to: None,
            subject: None,
            tags: BTreeMap::new(),
            accepted_at: Stamp(accepted_at),
            expires_at: None,
            settled_at: None,
            attempts,
            account: None,
            deferred_until: None,
            deferred_ts: None,
            cause: None,
            last_error: None,
        }
    }

    /// A message that is not done with.
    pub fn of_live(live: &LiveMessage) -> Self {
        let id = id_of(live.accepted_at, live.seq);
        let mut view = Self::new(id, &live.key, live.state, live.accepted_at, live.attempts);
        view.expires_at = Stamp::unless_never(live.expires_at);
        if live.state == State::Deferred {
            view.defer(live.due_at);
        }
        view
    }

    /// A message that is done with.
    pub fn of_receipt(receipt: Receipt) -> Self {
        let id = id_of(receipt.accepted_at, receipt.seq);
        let Receipt { key, state, .. } = &receipt;
        let mut view = Self::new(id, key, *state, receipt.accepted_at, receipt.attempts);
        view.settled_at = Some(Stamp(receipt.settled_at));
        view.account = receipt.account;
        view.cause = receipt.cause.map(|cause| cause.as_str());
        view.last_error = receipt.error.as_ref().map(ErrorView::of);
        view.address(&receipt.envelope);
        view
    }

    /// Says what the envelope says.
    pub fn address(&mut self, envelope: &[u8]) {
        let Ok(envelope) = Envelope::from_bytes(envelope) else {
            return;
        };
        self.from = Some(envelope.from);
        self.to = Some(envelope.to);
        self.subject = envelope.subject;
        self.tags = envelope.tags;
    }

    /// Waits until then.
    pub fn defer(&mut self, until: Option<Wall>) {
        self.deferred_until = until.map(Stamp);
        self.deferred_ts = self.deferred_until.map(Stamp::unix_seconds);
    }

    /// Says what happened last.
    pub fn happened(&mut self, events: &[Happening]) {
        let failed = events.iter().rev().find_map(|event| event.error.as_ref());
        self.last_error = failed.map(ErrorView::of);
        let account = events.iter().rev().find_map(|event| event.account.clone());
        self.account = account;
    }
}

impl ErrorView {
    /// What is shown of an error.
    pub fn of(error: &LastError) -> Self {
        let is_http = error.enhanced.is_none() && error.code.is_some_and(is_http_only);
        let status = |wanted: bool| error.code.filter(|_| is_http == wanted);
        Self {
            code: match error.rule.as_str() {
                UNCERTAIN_RULE => "uncertain",
                _ => word(error.class),
            },
            smtp_status: status(false),
            enhanced: error
                .enhanced
                .map(|Enhanced(class, subject, detail)| format!("{class}.{subject}.{detail}")),
            http_status: status(true),
            provider_message: error.text.clone(),
            class: error.class.as_str(),
        }
    }
}

/// The rule by which a lost answer is read: what it means is not that the
/// network failed, but that nobody knows.
const UNCERTAIN_RULE: &str = "uncertain";

/// Statuses that no mail server answers.
const fn is_http_only(status: u16) -> bool {
    matches!(status, 400..=420 | 423..=430 | 505..=511)
}

const fn word(class: ReplyClass) -> &'static str {
    match class {
        ReplyClass::Accepted => "accepted",
        ReplyClass::Rate => "rate_limited",
        ReplyClass::Reputation => "blocked",
        ReplyClass::Content => "content_rejected",
        ReplyClass::Recipient => "recipient_rejected",
        ReplyClass::Greylist => "greylisted",
        ReplyClass::Authentication => "authentication_failed",
        ReplyClass::Network => "network_error",
        ReplyClass::Capacity => "overloaded",
        ReplyClass::Other => "other",
    }
}

impl EventView {
    /// What is shown of it.
    pub fn of(event: Happening) -> Self {
        Self {
            at: Stamp(event.at),
            what: event.what,
            account: event.account,
            until: event.until.map(Stamp),
            error: event.error.as_ref().map(ErrorView::of),
        }
    }
}

impl WaitingOn {
    /// A reason without a limit.
    pub const fn plain(reason: &'static str, until: Option<Stamp>) -> Self {
        Self {
            reason,
            limit: None,
            until,
            account: None,
            detail: None,
        }
    }

    /// What is shown of an obstacle.
    pub fn of(obstacle: &Obstacle) -> Self {
        match obstacle {
            Obstacle::Limit { key, until } => Self {
                limit: Some(key.to_string()),
                ..Self::plain("limit", until.map(Stamp))
            },
            Obstacle::AccountBlocked { account, until } => Self {
                account: Some(account.as_str().to_owned()),
                ..Self::plain("account_blocked", Some(Stamp(*until)))
            },
            Obstacle::AccountBroken { account, until } => Self {
                account: Some(account.as_str().to_owned()),
                ..Self::plain("account_broken", until.map(Stamp))
            },
            Obstacle::UnderPressure { account, until } => Self {
                account: Some(account.as_str().to_owned()),
                ..Self::plain("under_pressure", Some(Stamp(*until)))
            },
            Obstacle::NoSession { account, why } => Self {
                account: Some(account.as_str().to_owned()),
                detail: Some(why.to_string()),
                ..Self::plain("no_session", None)
            },
            Obstacle::Deferred { until } => Self::plain("due_time", Some(Stamp(*until))),
            Obstacle::NoAccountReady => Self::plain("no_account_ready", None),
            Obstacle::NoAccount => Self::plain("no_account", None),
            Obstacle::Unresolved => Self::plain("unresolved", None),
            Obstacle::Paused => Self::plain("paused", None),
            Obstacle::StoreFailing => Self::plain("store_failing", None),
            Obstacle::Draining => Self::plain("draining", None),
        }
    }
}

/// Until when a queued message waits, if that is known and not now.
pub fn waits_until(explanation: &Explanation, now: Wall) -> Option<Wall> {
    let waits = !explanation.waiting_on.is_empty() || explanation.ahead_in_flow > 0;
    explanation.earliest.filter(|at| waits && *at > now)
}
