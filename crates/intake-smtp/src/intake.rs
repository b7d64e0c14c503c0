//! The port on which messages are taken in.

use std::future::Future;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use outflow_connections::places::Places;
use outflow_core::time::Wall;
use outflow_ports::hearing::Hearing;
use outflow_ports::intake::Intake;
use outflow_ports::naming::Naming;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_rustls::rustls::ServerConfig;

use crate::connection::Connection;
use crate::doorkeeper::Doorkeeper;
use crate::observer::{Happened, Observer};
use crate::room::Room;
use crate::server::Rules;
use crate::server::reply::Reply;
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
const SEND_BYTES: u32 = 8 << 10;

/// Reads the wall clock.
pub trait Clock: Send + Sync {
    /// What it says.
    fn now(&self) -> Wall;
}

/// How TLS is spoken, if it is. Send another one to change it for connections
/// from then on.
pub type TlsWatch = watch::Receiver<Option<Arc<ServerConfig>>>;

/// What the server is built on.
pub struct Parts {
    /// Takes the messages.
    pub intake: Arc<dyn Intake>,
    /// Knows the tokens.
    pub doorkeeper: Arc<dyn Doorkeeper>,
    /// Reads the wall clock.
    pub clock: Arc<dyn Clock>,
    /// Gives Message-IDs to messages without one.
    pub naming: Naming,
    /// Hears what happens.
    pub observer: Arc<dyn Observer>,
    /// How TLS is spoken.
    pub tls: TlsWatch,
    /// Who hears reports, if our return addresses lead here.
    pub hearing: Option<Arc<dyn Hearing>>,
}

/// What all connections share.
pub(crate) struct House {
    pub intake: Arc<dyn Intake>,
    pub doorkeeper: Arc<dyn Doorkeeper>,
    pub clock: Arc<dyn Clock>,
    pub naming: Naming,
    pub observer: Arc<dyn Observer>,
    pub tls: TlsWatch,
    pub hearing: Option<Arc<dyn Hearing>>,
    pub settings: Settings,
    pub rules: Arc<Rules>,
    pub room: Arc<Room>,
}

/// Submission over SMTP: listening, not yet serving.
pub struct SmtpIntake {
    listener: TcpListener,
    house: Arc<House>,
}

impl SmtpIntake {
    /// Begins to listen. Clients can connect, and wait until
    /// [`serve`](Self::serve) runs.
    pub async fn bind(settings: Settings, parts: Parts) -> io::Result<Self> {
        let listener = listen(settings.listen)?;
        let room = Room::new(
            settings.connections_max,
            settings.connections_per_address_max,
            settings.held_bytes_max,
            settings.busy,
        );
        let house = House {
            intake: parts.intake,
            doorkeeper: parts.doorkeeper,
            clock: parts.clock,
            naming: parts.naming,
            observer: parts.observer,
            tls: parts.tls,
            hearing: parts.hearing,
            rules: Arc::new(settings.rules.clone()),
            room: Arc::new(room),
            settings,
        };
        Ok(Self {
            listener,
            house: Arc::new(house),
        })
    }

    /// Its places for connections.
    pub fn places(&self) -> Arc<Places> {
        self.house.room.places()
    }

    /// Where it listens.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `shutdown` is done. Then nobody new is let in, idle clients
    /// hear 421, and messages that are coming in may finish, within the grace of
    /// the settings.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        let (closing, is_closing) = watch::channel(false);
        let mut connections = JoinSet::new();
        tokio::pin!(shutdown);
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, peer)) => {
                        self.let_out().await;
                        if let Some((connection, bell)) = self.let_in(stream, peer, &is_closing) {
                            connections.spawn(async move {
                                tokio::select! {
                                    ended = connection.run() => ended,
                                    () = bell.notified() => Ok(()),
                                }
                            });
                        }
                    }
                    // Out of file descriptors, most likely; some will come back.
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                },
            }
        }
        drop(self.listener);
        // Nobody is left to hear it if it fails.
        let _ = closing.send(true);
        let grace = self.house.settings.grace;
        let all_left = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(grace, all_left).await.is_err() {
            connections.shutdown().await;
        }
    }

    /// Those who gave way leave when they run next: gives them a moment, so that
    /// nobody is refused for somebody who is already going.
    async fn let_out(&self) {
        let max = self.house.settings.connections_max;
        let places = self.house.room.places();
        for _ in 0..MOMENTS {
            if places.taken() < max + LEAVING {
                return;
            }
            tokio::time::sleep(MOMENT).await;
        }
    }

    fn let_in(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        closing: &watch::Receiver<bool>,
    ) -> Option<(Connection, Arc<Notify>)> {
        // It only costs time if it fails.
        let _ = stream.set_nodelay(true);
        let bell = Arc::new(Notify::new());
        let rung = Arc::clone(&bell);
        let ring = Box::new(move || rung.notify_one());
        let Some(place) = self.house.room.enter(peer.ip(), ring) else {
            let mut line = Vec::new();
            let (code, status) = (421, "4.7.0");
            Reply::new(code, status, "too many connections: try again later").write(&mut line);
            let refused = Happened::Refused { code, status };
            self.house.observer.happened(peer.ip(), refused);
            // A fresh connection has room for a line; whoever does not hear it
            // sees it closed. The executor does not know yet that it has.
            let _ = stream.into_std().and_then(|mut open| open.write(&line));
            return None;
        };
        let house = Arc::clone(&self.house);
        let connection = Connection::new(house, place, stream, peer.ip(), closing.clone());
        Some((connection, bell))
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
