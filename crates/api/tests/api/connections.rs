//! Over a socket: served, bounded in time and number, ended in order.

use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use bytes::Bytes;
use hyper::body::Frame;
use outflow_api::doors::{Caps, Doors};
use outflow_api::{Bounds, StartValues, serve, serve_within};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tower::ServiceExt;

use crate::world::{World, message};

#[tokio::test]
async fn a_server_serves_and_ends_in_order() {
    let world = World::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async {
        let _ = stopped.await;
    };
    let serving = tokio::spawn(serve(listener, world.router.clone(), shutdown));
    let body = message(json!({})).to_string();
    let request = format!(
        "POST /api/v1/messages HTTP/1.1\r\nHost: x\r\nX-API-Token: {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        world.admin,
        body.len(),
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    for _ in 0..2 {
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 202");
        // The rest of the answer; the connection stays open.
        let mut rest = vec![0; 4_096];
        assert!(stream.read(&mut rest).await.unwrap() > 0);
    }
    assert_eq!(world.node.messages().len(), 2);
    stop.send(()).unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(20), serving).await;
    ended
        .expect("an idle connection does not hold a shutdown up")
        .unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_given_up_and_others_wait_no_longer() {
    let bounds = Bounds {
        requests_max: 1,
        request_timeout: Duration::from_millis(20),
        ..Bounds::default()
    };
    let world = World::with(StartValues::default(), bounds);
    world.node.state.lock().unwrap().hangs = true;
    let body = || message(json!({}));
    let (first, second) = tokio::join!(
        world.post("/api/v1/messages", body()),
        world.post("/api/v1/messages", body()),
    );
    assert_eq!(first.code(), "timed_out");
    assert_eq!(second.code(), "busy");
    for answer in [&first, &second] {
        assert_eq!(answer.status, 503);
        assert!(answer.headers.contains_key("retry-after"));
    }
    world.node.state.lock().unwrap().hangs = false;
    assert_eq!(world.post("/api/v1/messages", body()).await.status, 202);
}

/// What a server says to one request on a new connection, until it hangs up.
async fn say(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    said
}

#[tokio::test]
async fn who_watches_the_server_is_answered_while_all_places_are_taken() {
    let world = World::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let plain = |stream| std::future::ready(Ok::<TcpStream, std::io::Error>(stream));
    let caps = Caps {
        all: 100,
        each: 3,
        spare: 2,
    };
    let router = world.router.clone();
    let never = std::future::pending();
    let serving = tokio::spawn(serve_within(
        listener,
        router,
        never,
        plain,
        Doors::new(caps),
    ));
    let mut idle = Vec::new();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // It is inside once it was answered.
        let request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
        stream.write_all(request).await.unwrap();
        stream.read_exact(&mut [0; 12]).await.unwrap();
        idle.push(stream);
    }
    for _ in 0..5 {
        let said = say(address, "/healthz").await;
        assert!(said.starts_with("HTTP/1.1 200"), "{said}");
        let said = say(address, "/openapi.json").await;
        assert!(said.starts_with("HTTP/1.1 503"), "{said}");
        assert!(said.contains("\"busy\""), "{said}");
    }
    drop(idle);
    serving.abort();
}

#[tokio::test]
async fn a_body_that_is_announced_and_never_comes_keeps_nobody_out() {
    let bounds = Bounds {
        held_bytes_max: 1 << 20,
        request_bytes_max: 512 << 10,
        ..Bounds::default()
    };
    let world = World::with(StartValues::default(), bounds);
    let submit = world.token(json!({ "scope": "submit" })).await;
    let other = world.token(json!({ "scope": "submit" })).await;
    let (sender, pieces) = mpsc::channel(1);
    let request = Request::post("/api/v1/messages")
        .header("content-type", "application/json")
        .header("content-length", 512 << 10)
        .header("x-api-token", &submit)
        .body(Body::new(Pieces(pieces)))
        .unwrap();
    let announcing = tokio::spawn(world.router.clone().oneshot(request));
    let small = message(json!({}));
    let path = "/api/v1/messages";
    let answer = world.call(&other, "POST", path, small.clone()).await;
    assert_eq!(answer.status, 202, "{}", answer.text);

    // One token has half of the memory, and that is all that others miss.
    // There is room for one piece on the way: the first has arrived.
    for bytes in [300 << 10, 1, 1] {
        sender.send(vec![b' '; bytes]).await.unwrap();
    }
    let answer = world.call(&other, "POST", path, small.clone()).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    let large = message(json!({ "text": "x".repeat(300 << 10) }));
    let answer = world.call(&submit, "POST", path, large.clone()).await;
    assert_eq!(answer.status, 503, "of the same token");
    assert_eq!(answer.code(), "busy");
    let answer = world.call(&other, "POST", path, large).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    drop(sender);
    let ended = announcing.await.unwrap().unwrap();
    assert_eq!(ended.status().as_u16(), 400, "it was no JSON");
}

/// A body that comes as it is sent.
struct Pieces(mpsc::Receiver<Vec<u8>>);

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let piece = self.0.poll_recv(context);
        piece.map(|piece| piece.map(|bytes| Ok(Frame::data(bytes.into()))))
    }
}
