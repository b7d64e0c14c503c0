//! One look at a server.

use std::time::Duration;

use outflow_transport_smtp::probe;
use tokio::net::TcpListener;

use crate::certificates::certificate;
use crate::server::{Manner, Server};

/// No wait is longer; nothing is measured by it.
const PATIENCE: Duration = Duration::from_secs(60);

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

#[test]
fn a_look_tells_whether_and_how_a_server_speaks_tls() {
    runtime().block_on(async {
        let plain = Server::start(Manner::offering(&["PIPELINING"])).await;
        let seen = probe("mx.test", plain.address, "client.test", PATIENCE).await;
        let seen = seen.unwrap();
        assert!(!seen.offers_tls && seen.certificate.is_none(), "{seen:?}");

        let (acceptor, _) = certificate("mx.test");
        let mut manner = Manner::offering(&["STARTTLS"]);
        manner.tls = Some(acceptor);
        let protected = Server::start(manner).await;
        let seen = probe("mx.test", protected.address, "client.test", PATIENCE).await;
        let seen = seen.unwrap();
        assert!(seen.offers_tls && seen.certificate.is_some(), "{seen:?}");
        assert_eq!(seen.handshake_error, None);
        // It is one that nobody vouches for.
        assert!(seen.distrust.is_some(), "{seen:?}");
        assert!(plain.taken().is_empty() && protected.taken().is_empty());
    });
}

#[test]
fn a_server_that_is_away_or_silent_is_told_of() {
    runtime().block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let short = Duration::from_millis(200);
        let silent = probe("mx.test", address, "client.test", short).await;
        let silent = silent.unwrap_err();
        assert!(silent.contains("time"), "{silent}");
        drop(listener);
        let away = probe("mx.test", address, "client.test", PATIENCE).await;
        assert!(away.is_err(), "{away:?}");
    });
}
