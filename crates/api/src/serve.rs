//! Connections: accepted, bounded, and ended in an orderly way.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Connections at a time; more wait to be accepted.
const CONNECTIONS_MAX: usize = 4_096;
/// Whoever does not finish the head of a request in this time is hung up on.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// Accepting fails when files run out: wait for some to be closed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Requests that are being worked on have this long to end.
const GRACE: Duration = Duration::from_secs(10);

/// Serves until `shutdown` comes; then lets requests in progress end, for ten
/// seconds at most. Streams of events end when the state is closed.
pub async fn serve(listener: TcpListener, router: Router, shutdown: impl Future<Output = ()>) {
    serve_through(listener, router, shutdown, |stream| {
        std::future::ready(Ok(stream))
    })
    .await;
}

/// The same over connections that `secure` makes of what is accepted: TLS. One
/// that is not made in time is dropped.
pub async fn serve_through<Io, Secured>(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()>,
    secure: impl Fn(TcpStream) -> Secured,
) where
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    Secured: Future<Output = io::Result<Io>> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let graceful = GracefulShutdown::new();
    tokio::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = accept(&listener, &places) => accepted,
        };
        let Ok((stream, place)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        // Answers are small and awaited: they must not wait for more to say.
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(router.clone());
        let (secured, watcher) = (secure(stream), graceful.watcher());
        tokio::spawn(async move {
            if let Ok(Ok(stream)) = tokio::time::timeout(HEAD_TIMEOUT, secured).await {
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEAD_TIMEOUT)
                    .serve_connection(TokioIo::new(stream), service);
                // A client that hangs up midway is none of our faults.
                let _ = watcher.watch(connection).await;
            }
            drop(place);
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(GRACE, graceful.shutdown()).await;
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await;
    let place = place.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, place))
}
