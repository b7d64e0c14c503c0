//! A proxy before a server that drops connections: before a command reaches the
//! server, or after the server has executed it and before the answer is heard.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// When a connection is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drop {
    /// The command never reaches the server.
    Before,
    /// The server has executed it; nobody hears the answer.
    After,
}

/// Which command is dropped next, by a text that only it contains, and how.
type Plan = Arc<Mutex<Option<(String, Drop)>>>;

/// A proxy; its threads end with the test.
pub struct Proxy {
    pub port: u16,
    plan: Plan,
}

impl Proxy {
    /// Listens on a port and passes on to the server on another one.
    pub fn start(port: u16, server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("a port to listen on");
        let plan = Plan::default();
        thread::spawn({
            let plan = Arc::clone(&plan);
            move || {
                for client in listener.incoming().flatten() {
                    let plan = Arc::clone(&plan);
                    thread::spawn(move || pass(client, server, &plan));
                }
            }
        });
        Self { port, plan }
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Drops the connection of the next command that contains `text`, once.
    pub fn drop_at(&self, text: &str, when: Drop) {
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = Some((text.to_owned(), when));
    }

    /// Whether it has dropped what it was told to.
    pub fn has_dropped(&self) -> bool {
        let plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        plan.is_none()
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|part| part == text.as_bytes())
}

/// Passes on what a client says, and what the server answers.
fn pass(mut client: TcpStream, port: u16, plan: &Plan) {
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)) else {
        return;
    };
    let silenced = Arc::new(AtomicBool::new(false));
    let answers = thread::spawn({
        let silenced = Arc::clone(&silenced);
        let mut from = server.try_clone().expect("a second handle");
        let mut to = client.try_clone().expect("a second handle");
        move || {
            let mut buffer = [0; 65_536];
            while let Ok(length @ 1..) = from.read(&mut buffer) {
                if silenced.load(Ordering::SeqCst) {
                    // The server has answered, so it has executed.
                    break;
                }
                let bytes = buffer.get(..length).unwrap_or_default();
                if to.write_all(bytes).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Both);
            let _ = from.shutdown(Shutdown::Both);
        }
    });
    let mut buffer = [0; 65_536];
    while let Ok(length @ 1..) = client.read(&mut buffer) {
        let bytes = buffer.get(..length).unwrap_or_default();
        let drop = {
            let mut plan = plan.lock().unwrap_or_else(PoisonError::into_inner);
            let met = plan.take_if(|(text, _)| contains(bytes, text));
            met.map(|(_, when)| when)
        };
        match drop {
            Some(Drop::Before) => break,
            Some(Drop::After) => silenced.store(true, Ordering::SeqCst),
            None => {}
        }
        if server.write_all(bytes).is_err() {
            break;
        }
        if drop.is_some() {
            let _ = answers.join();
            return;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}
