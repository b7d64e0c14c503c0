//! What was sent where, over the API.

use std::sync::Mutex;

use outflow_core::time::{Nanos, Wall};
use outflow_ports::history::{
    Attempts, History, HistoryError, Page, RateInForce, Refusal, Slice, Span,
};
use serde_json::json;

use crate::world::{START, World};

/// A history that answers what it was told to, and knows what it was asked.
#[derive(Default)]
pub struct Chronicle {
    pub page: Mutex<Page>,
    pub asked: Mutex<Vec<Span>>,
}

impl History for Chronicle {
    fn write(&self, _: &[Slice], _: &[RateInForce]) -> Result<(), HistoryError> {
        Err(HistoryError("nobody writes here".to_owned()))
    }

    fn read(&self, span: &Span) -> Result<Page, HistoryError> {
        self.asked.lock().unwrap().push(span.clone());
        Ok(self.page.lock().unwrap().clone())
    }
}

#[tokio::test]
async fn slices_and_rates_are_shown_and_pages_go_on() {
    let world = World::new();
    *world.chronicle.page.lock().unwrap() = Page {
        slices: vec![Slice {
            at: START,
            destination: "isp:att".to_owned(),
            account: None,
            attempts: Attempts {
                attempts: 10,
                accepted: 7,
                refused: 3,
                ..Attempts::default()
            },
            peak: 10,
            refusal: Some(Refusal {
                at: START,
                class: "rate".to_owned(),
                code: Some(421),
                said: "slow down".to_owned(),
            }),
        }],
        rates: vec![RateInForce {
            at: START,
            limit: "isp:att".to_owned(),
            destination: "isp:att".to_owned(),
            rate: Some(2.5),
        }],
        next: Some(Wall(START.0 + 10_000_000_000)),
    };
    let answer = world
        .get("/api/v1/history?destination=isp:ATT&step=60&limit=7")
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let page = answer.json();
    assert_eq!(page["step"], 60);
    assert_eq!(page["slices"][0]["refused"], 3);
    assert_eq!(page["slices"][0]["refusal"]["said"], "slow down");
    assert_eq!(page["rates"][0]["rate"], 2.5);
    assert_eq!(page["next_since"], "2026-09-21T14:13:30.000Z");
    let asked = world.chronicle.asked.lock().unwrap();
    assert_eq!(asked[0].destination.as_deref(), Some("isp:att"));
    assert_eq!((asked[0].step_s, asked[0].rows_max), (60, 7));
    assert_eq!(asked[0].until, START);
    let hour = Nanos::from_secs(3_600);
    assert_eq!(
        asked[0].since,
        Wall(START.0 - hour.0.cast_signed() - 20_000_000_000)
    );
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused_before_the_disk_is_asked() {
    let world = World::new();
    let long = format!("destination={}", "x".repeat(301));
    for query in [
        "step=0",
        "step=15",
        "step=86410",
        "limit=0",
        "limit=50001",
        "since=yesterday",
        "since=2026-02-01T00:00:00Z&until=2026-01-01T00:00:00Z",
        "until=9999999-01-01",
        "account=a",
        long.as_str(),
    ] {
        let answer = world.get(&format!("/api/v1/history?{query}")).await;
        assert_eq!(answer.status, 400, "{query}: {}", answer.text);
        assert_eq!(answer.code(), "invalid_query");
    }
    assert!(world.chronicle.asked.lock().unwrap().is_empty());
    let tenant = json!({ "scope": "operator", "tenant": "acme" });
    let token = world.token(tenant).await;
    let answer = world.call(&token, "GET", "/api/v1/history", json!(null));
    assert_eq!(answer.await.status, 403);
}
