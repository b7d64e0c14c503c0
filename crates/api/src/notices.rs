//! From what the node tells of itself to notices for those who listen.
//!
//! While nobody listens this costs one look at a counter: events come at the
//! rate of messages, on the node's thread.

use outflow_core::engine::action::{Alert, Refusal};
use outflow_core::engine::learners::Adapted;
use outflow_core::flow::FlowKey;
use outflow_core::message_id::MessageId;
use outflow_core::pool::welcome::Welcome;
use outflow_core::reply::Reply;
use outflow_core::suppression::surge::Surge;
use outflow_telemetry::{Event, Sink, without_addresses};
use serde_json::{Value, json};

use crate::events::{Events, Notice, NoticeKind};
use crate::messages::view::ErrorView;
use crate::stamp::Stamp;

impl Sink for Events {
    fn emit(&self, event: &Event<'_>) {
        if let Event::Alert(alert) = event {
            self.standstills.note(alert);
        }
        if self.has_listeners()
            && let Some(notice) = notice(event)
        {
            self.publish(notice);
        }
    }
}

fn notice(event: &Event<'_>) -> Option<Notice> {
    match event {
        Event::Settled(settled) => {
            let more = json!({
                "state": settled.state.as_str(),
                "account": settled.account,
                "last_error": settled.error.map(ErrorView::of),
                "age_s": settled.age.map(|age| age.as_secs_f64()),
            });
            Some(about(
                NoticeKind::Settled,
                settled.message,
                settled.key,
                more,
            ))
        }
        Event::Died {
            message,
            key,
            account,
            letter,
        } => {
            let more = json!({
                "state": "dead",
                "account": account,
                "cause": letter.cause.as_str(),
                "attempts": letter.attempts,
                "last_error": ErrorView::of(&letter.error),
            });
            Some(about(NoticeKind::Settled, *message, key, more))
        }
        Event::Deferred {
            message,
            key,
            until,
            attempted,
        } => {
            let more = json!({ "until": Stamp(*until), "attempted": attempted });
            Some(about(NoticeKind::Deferred, *message, key, more))
        }
        Event::Alert(alert) => Some(Notice {
            kind: NoticeKind::Alert,
            tenant: None,
            data: alerted(alert).to_string().into(),
        }),
        Event::Surge(surge) => {
            let (to, detail) = (&surge.destination, surge_detail(surge));
            let data = json!({ "what": "suppressions.hold", "destination": to, "detail": detail });
            Some(Notice {
                kind: NoticeKind::Alert,
                tenant: None,
                data: data.to_string().into(),
            })
        }
        _ => None,
    }
}

/// A notice about one message.
fn about(kind: NoticeKind, id: Option<MessageId>, key: &FlowKey, more: Value) -> Notice {
    let mut data = json!({
        "id": id.map(|id| id.to_string()),
        "tenant": key.tenant.as_str(),
        "class": key.class.as_str(),
        "campaign": key.campaign.as_ref().map(|name| name.as_str()),
        "pool": key.pool.as_str(),
        "destination": key.destination.to_string(),
    });
    if let (Value::Object(data), Value::Object(more)) = (&mut data, more) {
        data.extend(more);
    }
    Notice {
        kind,
        tenant: Some(key.tenant.clone()),
        data: data.to_string().into(),
    }
}

fn alerted(alert: &Alert) -> Value {
    match alert {
        Alert::StoreFailing => json!({ "what": "store_failing" }),
        Alert::StoreRecovered => json!({ "what": "store_recovered" }),
        Alert::LedgerAway { key } => json!({ "what": "ledger_away", "limit": key.to_string() }),
        Alert::Refused(refusal) => json!({
            "what": "sending.refused",
            "about": refusal.about.to_string(),
            "detail": refusal_detail(refusal),
        }),
        Alert::Broken {
            account,
            destination,
            until,
            why,
        } => json!({
            "what": "account_broken",
            "account": account.as_str(),
            "destination": destination.as_ref().map(ToString::to_string),
            "until": Stamp(*until),
            "why": why.as_str(),
        }),
        Alert::Restored {
            account,
            destination,
        } => json!({
            "what": "account_restored",
            "account": account.as_str(),
            "destination": destination.as_ref().map(ToString::to_string),
        }),
        Alert::WorkerLost { .. } => json!({ "what": "worker_lost" }),
        Alert::Adapted(adapted) => {
            let (what, limit) = (adapted.turn.as_str(), adapted.key.to_string());
            json!({ "what": what, "limit": limit, "detail": adapted_detail(adapted) })
        }
        Alert::Unwelcome {
            account,
            destination,
            welcome,
            reply,
        } => json!({
            "what": "connections.capped",
            "account": account.as_str(),
            "destination": destination.to_string(),
            "detail": unwelcome_detail(*welcome, reply),
        }),
    }
}

/// What is told of a refusal that a person must mend, also in the audit.
pub fn refusal_detail(refusal: &Refusal) -> Value {
    json!({
        "account": refusal.account.as_str(),
        "class": refusal.class.as_str(),
        "rule": refusal.rule.as_str(),
        "until": refusal.until.map(Stamp),
        "reason": without_addresses(&refusal.reply.to_string()),
    })
}

/// What is told of connections that are not welcome, also in the audit, where
/// nobody looks for people's addresses.
pub fn unwelcome_detail(welcome: Welcome, reply: &Reply) -> Value {
    json!({
        "connections": welcome.sessions,
        "messages_each": welcome.messages,
        "reason": without_addresses(&reply.to_string()),
    })
}

/// What is told of a destination whose bounces are not believed, also in the
/// audit.
pub fn surge_detail(surge: &Surge) -> Value {
    json!({
        "hard_bounces": surge.counts.hard,
        "attempts": surge.counts.attempts,
        "minutes": 15,
        "usual_share": surge.counts.usual_share(),
        "held": surge.held,
    })
}

/// What is told of a rate that changed by what was learnt, also in the audit.
pub fn adapted_detail(adapted: &Adapted) -> Value {
    json!({
        "from": adapted.from.in_a_second(),
        "to": adapted.to.in_a_second(),
        "mode": adapted.mode.as_str(),
        "reason": adapted.sentence,
        "evidence": {
            "refused": adapted.evidence.refused,
            "of": adapted.evidence.replies,
            "code": adapted.evidence.code,
        },
    })
}

#[cfg(test)]
mod tests {
    use outflow_core::reply::Stage;
    use outflow_core::suppression::surge::SurgeCounts;
    use outflow_core::time::Mono;

    use super::*;

    #[test]
    fn nobody_s_address_gets_into_the_audit() {
        let said = "4.7.0 too many connections for <jo.doe@gmail.com>";
        let reply = Reply::said(Stage::Data, 421, said);
        let welcome = Welcome {
            sessions: Some(1),
            messages: None,
            try_at: Mono(0),
        };
        let detail = unwelcome_detail(welcome, &reply).to_string();
        assert!(detail.contains("too many connections"), "{detail}");
        assert!(!detail.contains("gmail.com"), "{detail}");
    }

    #[test]
    fn a_surge_is_an_alert_with_its_evidence() {
        let surge = Surge {
            destination: "isp:google".to_owned(),
            counts: SurgeCounts {
                hard: 60,
                attempts: 100,
                day_bounced: 160,
                day_attempts: 10_100,
            },
            held: 49,
        };
        let notice = notice(&Event::Surge(&surge)).expect("a notice");
        assert_eq!((notice.kind, &notice.tenant), (NoticeKind::Alert, &None));
        let data: Value = serde_json::from_str(&notice.data).expect("JSON");
        let detail = json!({
            "hard_bounces": 60, "attempts": 100, "minutes": 15, "usual_share": 0.01, "held": 49,
        });
        let wanted = json!({
            "what": "suppressions.hold", "destination": "isp:google", "detail": detail,
        });
        assert_eq!(data, wanted);
    }
}
