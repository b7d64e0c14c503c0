//! Server-sent events.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::{Request, header};
use http_body_util::BodyExt;
use outflow_api::events::{Notice, NoticeKind};
use outflow_core::destination::Destination;
use outflow_core::engine::action::Alert;
use outflow_core::flow::FlowKey;
use outflow_core::message::{Seq, State};
use outflow_core::message_id::MessageId;
use outflow_core::time::Nanos;
use outflow_telemetry::catalogue::Settled;
use outflow_telemetry::{Event, Sink};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::world::World;

async fn listen(world: &World, token: &str, query: &str) -> Body {
    let request = Request::get(format!("/api/v1/events{query}"))
        .header(header::AUTHORIZATION, format!("Bearer {token}"));
    let request = request.body(Body::empty()).unwrap();
    let response = world.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    response.into_body()
}

/// The next event, as it is written.
async fn next(body: &mut Body) -> Option<String> {
    let frame = tokio::time::timeout(Duration::from_secs(20), body.frame());
    let frame = frame.await.expect("an event comes")?.unwrap();
    let bytes = frame.into_data().unwrap();
    Some(String::from_utf8(bytes.to_vec()).unwrap())
}

#[tokio::test]
async fn what_the_node_tells_is_heard() {
    let world = World::new();
    let mut all = listen(&world, &world.admin, "").await;
    let key = FlowKey::to(Destination::isp("google"));
    world.state.events.emit(&Event::Settled(Settled {
        message: Some(MessageId::new(crate::world::START, Seq(7))),
        key: &key,
        state: State::Delivered,
        account: Some("primary"),
        error: None,
        age: Some(Nanos::from_millis(1_500)),
    }));
    world.state.events.emit(&Event::Stopping);
    world.state.events.emit(&Event::Alert(&Alert::StoreFailing));
    let settled = next(&mut all).await.unwrap();
    let data = settled.strip_prefix("event: settled\ndata: ").unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(
        (&data["state"], &data["age_s"]),
        (&json!("delivered"), &json!(1.5))
    );
    assert_eq!(data["destination"], "isp:google");
    let alert = next(&mut all).await.unwrap();
    assert_eq!(
        alert,
        "event: alert\ndata: {\"what\":\"store_failing\"}\n\n"
    );
}

fn settled(tenant: &str, number: usize) -> Notice {
    Notice {
        kind: NoticeKind::Settled,
        tenant: Some(tenant.into()),
        data: json!({ "n": number }).to_string().into(),
    }
}

#[tokio::test]
async fn listeners_hear_what_is_for_them() {
    let world = World::new();
    let acme = world
        .token(json!({ "scope": "submit", "tenant": "acme" }))
        .await;
    let mut own = listen(&world, &acme, "").await;
    let mut all = listen(&world, &world.admin, "?kinds=settled,changed").await;
    world.state.events.publish(settled("b", 1));
    world.token(json!({ "scope": "submit" })).await;
    world.state.events.publish(settled("acme", 2));
    assert_eq!(
        next(&mut own).await.unwrap(),
        "event: settled\ndata: {\"n\":2}\n\n"
    );
    assert_eq!(
        next(&mut all).await.unwrap(),
        "event: settled\ndata: {\"n\":1}\n\n"
    );
    let changed = next(&mut all).await.unwrap();
    assert!(
        changed.starts_with("event: changed\n") && changed.contains("token.add"),
        "{changed}"
    );
    assert!(next(&mut all).await.unwrap().contains("{\"n\":2}"));
    let wrong = world.get("/api/v1/events?kinds=all").await;
    assert_eq!(wrong.code(), "invalid_query");

    world.state.close();
    assert_eq!(next(&mut own).await, None, "a shutdown ends streams");
}

#[tokio::test]
async fn a_token_that_is_taken_away_hears_no_more() {
    let world = World::new();
    let token = world.token(json!({ "scope": "operator" })).await;
    let other = world.token(json!({ "scope": "operator" })).await;
    let mut gone = listen(&world, &token, "?kinds=settled").await;
    let mut stays = listen(&world, &other, "?kinds=settled").await;
    let id = token.split('_').nth(1).unwrap();
    let path = format!("/api/v1/tokens/{id}");
    let removed = world.call(&world.admin, "DELETE", &path, Value::Null).await;
    assert_eq!(removed.status, 204);
    world.state.events.publish(settled("acme", 1));
    assert_eq!(next(&mut gone).await, None);
    assert!(next(&mut stays).await.unwrap().contains("{\"n\":1}"));
}

#[tokio::test]
async fn a_slow_listener_is_told_what_it_missed_and_holds_nobody_up() {
    let world = World::new();
    let mut slow = listen(&world, &world.admin, "").await;
    for number in 0..5_000 {
        world.state.events.publish(settled("acme", number));
    }
    let first = next(&mut slow).await.unwrap();
    assert_eq!(first, "event: missed\ndata: {\"missed\":904}\n\n");
    assert!(next(&mut slow).await.unwrap().contains("{\"n\":904}"));
}

#[tokio::test]
async fn so_many_may_listen_and_a_seat_becomes_free() {
    let world = World::new();
    let mut listeners: Vec<BodyDataStream> = Vec::new();
    for _ in 0..64 {
        listeners.push(listen(&world, &world.admin, "").await.into_data_stream());
    }
    let refused = world.get("/api/v1/events").await;
    assert_eq!(
        (refused.status.as_u16(), refused.code()),
        (503, "busy".to_owned())
    );
    listeners.pop();
    let _body = listen(&world, &world.admin, "").await;
}
