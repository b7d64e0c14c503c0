//! Over a socket: served, bounded in time and number, ended in order.

use std::time::Duration;

use outflow_api::{Bounds, StartValues, serve};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

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
