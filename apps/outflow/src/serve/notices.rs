//! What the node tells, passed on to those who listen over the API.

use outflow_api::ApiState;
use outflow_api::events::{Notice, NoticeKind};
use outflow_api::stamp::Stamp;
use outflow_core::engine::action::Alert;
use outflow_core::flow::FlowKey;
use outflow_core::message_id::MessageId;
use outflow_telemetry::catalogue::Event;
use outflow_telemetry::sink::Sink;
use serde_json::{Value, json};

/// Passes events on, if anybody listens.
pub struct Notices(pub ApiState);

impl std::fmt::Debug for Notices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Notices")
    }
}

impl Sink for Notices {
    fn emit(&self, event: &Event<'_>) {
        if self.0.events.has_listeners()
            && let Some(notice) = notice(event)
        {
            self.0.events.publish(notice);
        }
    }
}

fn notice(event: &Event<'_>) -> Option<Notice> {
    let (kind, key, data) = match event {
        Event::Settled(settled) => {
            let mut data = about(settled.message, settled.key);
            data["state"] = json!(settled.state.as_str());
            data["account"] = json!(settled.account);
            (NoticeKind::Settled, Some(settled.key), data)
        }
        Event::Died {
            message,
            key,
            account,
            ..
        } => {
            let mut data = about(*message, key);
            data["state"] = json!("dead");
            data["account"] = json!(account);
            (NoticeKind::Settled, Some(*key), data)
        }
        Event::Deferred {
            message,
            key,
            until,
            attempted,
        } => {
            let mut data = about(*message, key);
            data["until"] = json!(Stamp(*until));
            data["attempted"] = json!(attempted);
            (NoticeKind::Deferred, Some(*key), data)
        }
        Event::Alert(alert) => (NoticeKind::Alert, None, described(alert)),
        _ => return None,
    };
    Some(Notice {
        kind,
        tenant: key.map(|key| key.tenant.clone()),
        data: data.to_string().into(),
    })
}

fn about(message: Option<MessageId>, key: &FlowKey) -> Value {
    json!({
        "id": message.map(|id| id.to_string()),
        "tenant": key.tenant.as_str(),
        "class": key.class.as_str(),
        "campaign": key.campaign.as_ref().map(|name| name.as_str()),
        "destination": key.destination.to_string(),
    })
}

fn described(alert: &Alert) -> Value {
    match alert {
        Alert::StoreFailing => json!({ "what": "store_failing" }),
        Alert::StoreRecovered => json!({ "what": "store_recovered" }),
        Alert::LedgerAway { key } => json!({ "what": "ledger_away", "limit": key.to_string() }),
        Alert::Authentication { account } => {
            json!({ "what": "authentication", "account": account.as_str() })
        }
        Alert::WorkerLost { .. } => json!({ "what": "worker_lost" }),
    }
}
