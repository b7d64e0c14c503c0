//! The port on which commands are taken.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use outflow_connections::places::{Place, Places};
use outflow_ports::throttle::Throttling;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::connection::{Connection, House};
use crate::doorkeeper::Doorkeeper;
use crate::settings::Settings;

/// How long to wait when the machine cannot take another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// More than so many that have to leave are given so many moments to do it.
const LEAVING: usize = 32;
const MOMENTS: u32 = 20;
const MOMENT: Duration = Duration::from_millis(1);
/// How many may wait to be let in.
const BACKLOG: u32 = 4_096;
/// How much of what is said waits in the system for its reader.
const SEND_BYTES: u32 = 32 << 10;
/// What somebody hears who finds no place.
const FULL: &[u8] = b"-ERR max number of clients reached\r\n";

/// How TLS is spoken, if it is. Send another one to change it for connections
/// from then on.
pub type TlsWatch = watch::Receiver<Option<Arc<ServerConfig>>>;

/// What the server is built on.
pub struct Parts {
    /// Has the limits.
    pub throttle: Arc<dyn Throttling>,
    /// Knows the tokens.
    pub doorkeeper: Arc<dyn Doorkeeper>,
    /// How TLS is spoken.
    pub tls: TlsWatch,
}

/// The throttle over the Redis protocol: listening, not yet serving.
pub struct RespIntake {
    listener: TcpListener,
    house: Arc<House>,
    places: Arc<Places>,
    tls: TlsWatch,
}

impl RespIntake {
    /// Begins to listen. Clients can connect, and wait until
    /// [`serve`](Self::serve) runs.
    pub async fn bind(settings: Settings, parts: Parts) -> io::Result<Self> {
        let listener = listen(settings.listen)?;
        let places = Places::of(
            settings.connections_max,
            settings.connections_per_address_max,
        );
        let house = House {
            throttle: parts.throttle,
            doorkeeper: parts.doorkeeper,
            settings,
        };
        Ok(Self {
            listener,
            house: Arc::new(house),
            places,
            tls: parts.tls,
        })
    }

    /// Its places for connections.
    pub fn places(&self) -> Arc<Places> {
        Arc::clone(&self.places)
    }

    /// Where it listens.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `shutdown` is done. Then nobody new is let in, idle clients
    /// are sent away, and who waits may hear an answer within the grace of the
    /// settings.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        let (closing, is_closing) = watch::channel(false);
        let mut connections = JoinSet::new();
        let mut id = 0;
        tokio::pin!(shutdown);
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                accepted = self.listener.accept() => {
                    let Ok((stream, peer)) = accepted else {
                        // Out of file descriptors, most likely; some will come back.
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                        continue;
                    };
                    self.let_out().await;
                    let bell = Arc::new(Notify::new());
                    let rung = Arc::clone(&bell);
                    let ring = Box::new(move || rung.notify_one());
                    let Some(place) = self.places.enter(peer.ip(), ring) else {
                        // Whoever does not hear it sees it closed.
                        let _ = stream.try_write(FULL);
                        continue;
                    };
                    // It only costs time if it fails.
                    let _ = stream.set_nodelay(true);
                    id += 1;
                    let house = Arc::clone(&self.house);
                    let serving = serve(house, place, stream, id, self.tls(), is_closing.clone());
                    connections.spawn(async move {
                        tokio::select! {
                            () = serving => {}
                            () = bell.notified() => {}
                        }
                    });
                }
            }
        }
        drop(self.listener);
        // Nobody is left to hear it if it fails.
        let _ = closing.send(true);
        let all_left = async { while connections.join_next().await.is_some() {} };
        let grace = self.house.settings.grace;
        if tokio::time::timeout(grace, all_left).await.is_err() {
            connections.shutdown().await;
        }
    }

    /// Those who gave way leave when they run next: gives them a moment, so that
    /// nobody is refused for somebody who is already going.
    async fn let_out(&self) {
        let max = self.house.settings.connections_max;
        for _ in 0..MOMENTS {
            if self.places.taken() < max + LEAVING {
                return;
            }
            tokio::time::sleep(MOMENT).await;
        }
    }

    fn tls(&self) -> Option<Arc<ServerConfig>> {
        self.tls.borrow().clone()
    }
}

async fn serve(
    house: Arc<House>,
    place: Place,
    stream: TcpStream,
    id: i64,
    tls: Option<Arc<ServerConfig>>,
    closing: watch::Receiver<bool>,
) {
    let Some(tls) = tls else {
        Connection::new(house, place, stream, id, closing)
            .run()
            .await;
        return;
    };
    let login = house.settings.login;
    let protected = tokio::time::timeout(login, TlsAcceptor::from(tls).accept(stream)).await;
    if let Ok(Ok(stream)) = protected {
        Connection::new(house, place, stream, id, closing)
            .run()
            .await;
    }
}

/// Listens with room for a crowd that comes at once: with less, the system drops
/// who comes last, and they try again a second later.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
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
