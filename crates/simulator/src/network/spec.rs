//! A network as data, and the words in which each protocol refuses.

use outflow_core::reply::{Reply, Stage};
use outflow_core::time::Nanos;
use serde::Deserialize;

use super::bounce::LateBounces;
use super::connections::ConnectionCap;
use super::greylist::GreylistSpec;
use super::latency::Latency;
use super::noise::Noise;
use super::outage::OutageSpec;
use super::penalty::PenaltySpec;
use super::quota::QuotaSpec;
use super::rate::HiddenRateSpec;
use super::reputation::ReputationSpec;
use super::shape::Shape;
use super::suspension::SuspensionSpec;
use crate::units::{DestinationText, Span};

/// A far end: whom it stands for, what it allows, how it answers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkSpec {
    /// Its name in the scenario.
    pub name: String,
    /// The destinations that it stands for; all that no other has, if empty.
    #[serde(default)]
    pub destinations: Vec<DestinationText>,
    /// In which words it refuses.
    #[serde(default)]
    pub protocol: Protocol,
    /// Whether it counts each account by itself or all together.
    #[serde(default)]
    pub judges: Judges,
    /// The time from a message to its reply.
    #[serde(default)]
    pub latency: Latency,
    /// The time to open a session.
    #[serde(default)]
    pub connect: Latency,
    /// How long a sender waits for an answer that does not come.
    #[serde(default = "a_minute")]
    pub timeout: Span,
    /// The hidden rate and burst.
    pub rate: Option<HiddenRateSpec>,
    /// How that rate moves over the day.
    #[serde(default)]
    pub shape: Shape,
    /// How it follows the sender's conduct.
    pub reputation: Option<ReputationSpec>,
    /// Connections and messages per connection.
    pub connections: Option<ConnectionCap>,
    /// A quota by the hour or the day.
    pub quota: Option<QuotaSpec>,
    /// A block that grows while one keeps pushing.
    pub penalty: Option<PenaltySpec>,
    /// First attempts are put off.
    pub greylist: Option<GreylistSpec>,
    /// Failures at random.
    pub failures: Option<Noise>,
    /// Bounces after acceptance.
    pub late_bounces: Option<LateBounces>,
    /// Accounts that it suspends for a while.
    #[serde(default)]
    pub suspensions: Vec<SuspensionSpec>,
    /// When it is not there.
    #[serde(default)]
    pub outages: Vec<OutageSpec>,
}

fn a_minute() -> Span {
    Span(Nanos::from_secs(60))
}

impl NetworkSpec {
    /// A network that takes everything at once.
    pub fn open(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            destinations: Vec::new(),
            protocol: Protocol::Smtp,
            judges: Judges::Account,
            latency: Latency::default(),
            connect: Latency::default(),
            timeout: a_minute(),
            rate: None,
            shape: Shape::default(),
            reputation: None,
            connections: None,
            quota: None,
            penalty: None,
            greylist: None,
            failures: None,
            late_bounces: None,
            suspensions: Vec::new(),
            outages: Vec::new(),
        }
    }

    /// What in these numbers cannot be meant.
    pub fn problems(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut check = |ok: bool, what: &str| {
            if !ok {
                found.push(what.to_owned());
            }
        };
        check(
            self.latency.is_sound(),
            "latency: its lower value is above the higher one",
        );
        check(
            self.connect.is_sound(),
            "connect: its lower value is above the higher one",
        );
        check(
            self.rate.is_none_or(|rate| rate.burst > 0),
            "rate: burst must be at least 1",
        );
        check(
            self.rate.is_some() || self.shape == Shape::default(),
            "shape: has no rate to move",
        );
        check(
            self.rate.is_some() || self.reputation.is_none(),
            "reputation: has no rate to scale",
        );
        check(
            self.rate.is_some() || self.penalty.is_none(),
            "penalty: nothing starts it without a rate",
        );
        check(
            self.suspensions.iter().all(|it| it.every > 0),
            "suspensions: every must be at least 1",
        );
        check(
            self.outages.iter().all(OutageSpec::is_sound),
            "outages: one lasts longer than the time until the next",
        );
        found
    }
}

/// A refusal that asks to wait.
pub(super) fn asking(mut reply: Reply, asked: Option<Nanos>) -> Reply {
    if let Reply::Said { retry_after, .. } = &mut reply {
        *retry_after = asked;
    }
    reply
}

/// Whom a network tells apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Judges {
    /// Each account by itself.
    #[default]
    Account,
    /// All senders together.
    Everyone,
}

/// In which words a network refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// A mail server.
    #[default]
    Smtp,
    /// A provider's HTTP interface.
    Http,
}

impl Protocol {
    fn said(self, smtp: (Stage, u16, &str), http: (u16, &str)) -> Reply {
        match self {
            Self::Smtp => Reply::said(smtp.0, smtp.1, smtp.2),
            Self::Http => Reply::said(Stage::Data, http.0, http.1),
        }
    }

    /// The message was taken.
    pub fn accepted(self) -> Reply {
        self.said((Stage::Data, 250, "2.0.0 Ok: queued"), (202, "Accepted"))
    }

    /// Above the rate.
    pub fn too_fast(self) -> Reply {
        self.said(
            (
                Stage::Sender,
                421,
                "4.7.28 Our system has detected an unusual rate of mail, try again later",
            ),
            (429, "Too Many Requests: maximum sending rate exceeded"),
        )
    }

    /// Blocked for pushing on.
    pub fn blocked(self) -> Reply {
        self.said(
            (
                Stage::Sender,
                421,
                "4.7.0 Temporarily rate limited due to unexpected volume, try again later",
            ),
            (429, "Too Many Requests: sending is paused"),
        )
    }

    /// Above the quota.
    pub fn over_quota(self) -> Reply {
        self.said(
            (Stage::Sender, 452, "4.5.3 Daily sending quota exceeded"),
            (429, "Daily message quota exceeded"),
        )
    }

    /// One connection too many.
    pub fn too_many_connections(self) -> Reply {
        self.said(
            (
                Stage::Connect,
                421,
                "4.7.0 Too many concurrent connections from your IP",
            ),
            (429, "Too many concurrent requests"),
        )
    }

    /// One message too many on this connection.
    pub fn too_many_messages(self) -> Reply {
        self.said(
            (
                Stage::Sender,
                421,
                "4.7.0 Too many messages on this connection, reconnect",
            ),
            (429, "Too many requests on this connection"),
        )
    }

    /// Out of order, and says so.
    pub fn unavailable(self) -> Reply {
        self.said(
            (
                Stage::Greeting,
                421,
                "4.3.2 Service not available, closing channel",
            ),
            (503, "Service Unavailable"),
        )
    }

    /// A passing trouble.
    pub fn passing_trouble(self) -> Reply {
        self.said(
            (
                Stage::Data,
                451,
                "4.3.0 Temporary local problem, please try later",
            ),
            (500, "Internal Server Error"),
        )
    }

    /// No such mailbox.
    pub fn no_such_user(self) -> Reply {
        self.said(
            (
                Stage::Recipient,
                550,
                "5.1.1 The email account does not exist",
            ),
            (400, "Invalid recipient"),
        )
    }
}
