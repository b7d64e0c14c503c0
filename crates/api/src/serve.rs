//! Connections: accepted, bounded, and ended in an orderly way.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Request;
use axum::{Extension, Router};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tower::ServiceExt;

use crate::doors::{Caps, Doors};
use crate::patience::Patient;
use crate::server::Crowded;

/// Whoever does not finish the head of a request in this time is hung up on.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// The same for those who found no place, and how long they have in all.
const SPARE_HEAD_TIMEOUT: Duration = Duration::from_secs(1);
const SPARE_TIMEOUT: Duration = Duration::from_secs(5);
/// What a connection holds of a request's head, and of what is not written yet:
/// thousands of them must fit into memory.
const BUFFER_BYTES_MAX: usize = 64 << 10;
/// Accepting fails when files run out: wait for some to be closed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Those who gave way leave when they run next: they are given so many moments,
/// so that nobody is refused for somebody who is already going.
const MOMENTS: u32 = 20;
const MOMENT: Duration = Duration::from_millis(1);
/// How many may wait to be let in.
const BACKLOG: u32 = 4_096;
/// How much of what is said waits in the system for its reader.
const SEND_BYTES: u32 = 128 << 10;
/// Requests that are being worked on have this long to end.
const GRACE: Duration = Duration::from_secs(10);

/// Listens with room for a crowd that comes at once: with less, the system drops
/// who comes last, and they try again a second later.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    // Connections inherit it: whoever does not read has only so much said to them.
    socket.set_send_buffer_size(SEND_BYTES)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves until `shutdown` comes; then lets requests in progress end, for ten
/// seconds at most. Streams of events end when the state is closed.
pub async fn serve(listener: TcpListener, router: Router, shutdown: impl Future<Output = ()>) {
    let plain = |stream| std::future::ready(Ok(stream));
    let doors = Doors::new(Caps::default());
    serve_within(listener, router, shutdown, plain, doors).await;
}

/// The same through these doors, over connections that `secure` makes of what is
/// accepted: TLS. One that is not made in time is dropped.
pub async fn serve_within<Io, Secured>(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()>,
    secure: impl Fn(TcpStream) -> Secured,
    doors: Arc<Doors>,
) where
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    Secured: Future<Output = io::Result<Io>> + Send + 'static,
{
    let graceful = GracefulShutdown::new();
    let crowded = router.clone().layer(Extension(Crowded));
    tokio::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, from)) = accepted else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        for _ in 0..MOMENTS {
            if !doors.is_crowded() {
                break;
            }
            tokio::time::sleep(MOMENT).await;
        }
        let Some(place) = doors.admit(from.ip()) else {
            continue;
        };
        // Answers are small and awaited: they must not wait for more to say.
        let _ = stream.set_nodelay(true);
        let is_spare = place.is_spare();
        let place = Arc::new(place);
        let router = if is_spare { &crowded } else { &router };
        // Whoever shows a token is known by it from then on.
        let of_request = Arc::clone(&place);
        let service = router
            .clone()
            .map_request(move |mut request: Request<Incoming>| {
                request.extensions_mut().insert(Arc::clone(&of_request));
                request
            });
        let service = TowerToHyperService::new(service);
        let (secured, watcher) = (secure(stream), graceful.watcher());
        let head_timeout = match is_spare {
            true => SPARE_HEAD_TIMEOUT,
            false => HEAD_TIMEOUT,
        };
        tokio::spawn(async move {
            let secured = tokio::select! {
                secured = tokio::time::timeout(head_timeout, secured) => secured,
                () = place.turned_out() => return,
            };
            if let Ok(Ok(stream)) = secured {
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(head_timeout)
                    .max_buf_size(BUFFER_BYTES_MAX)
                    .keep_alive(!is_spare)
                    .serve_connection(TokioIo::new(Patient::new(stream)), service);
                let serving = watcher.watch(connection);
                // A client that hangs up midway is none of our faults.
                if is_spare {
                    let _ = tokio::time::timeout(SPARE_TIMEOUT, serving).await;
                } else {
                    tokio::select! {
                        _ = serving => {}
                        () = place.turned_out() => {}
                    }
                }
            }
            drop(place);
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(GRACE, graceful.shutdown()).await;
}
