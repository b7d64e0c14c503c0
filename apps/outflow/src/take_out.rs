//! `outflow store take-out`: withdraws one message while the server is stopped,
//! for the day when a server cannot go on because of it.
//!
//! The message is settled as cancelled, as if it had been withdrawn over the
//! API: its receipt says so, and its content is freed in time.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use outflow_config::Settings;
use outflow_core::engine::action::Record;
use outflow_core::engine::event::Event;
use outflow_core::entropy::Entropy;
use outflow_core::handle::AppendNo;
use outflow_core::message::State;
use outflow_core::message_id::MessageId;
use outflow_core::time::{Mono, Now, Wall};
use outflow_ports::store::{Store, StoreDone, StoreWork};
use outflow_store_embedded::EmbeddedStore;

use crate::serve::server::store_settings;

/// A disk that takes longer is not there.
const PATIENCE: Duration = Duration::from_secs(60);
const APPEND: AppendNo = AppendNo(1);

/// Takes a message out of the store in this directory.
pub fn run(settings: &Settings, id: &str) -> ExitCode {
    match take_out(settings, &settings.server.data_dir, id) {
        Ok(()) => {
            say!("{id} was withdrawn");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn now(begun: Instant) -> Now {
    let mono = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let wall = SystemTime::now().duration_since(UNIX_EPOCH);
    let wall = wall.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    });
    Now {
        mono: Mono(mono),
        wall: Wall(wall),
        entropy: Entropy::default(),
    }
}

fn take_out(settings: &Settings, dir: &Path, id: &str) -> Result<(), String> {
    let id: MessageId = id
        .parse()
        .map_err(|_| format!("{id} is not the id of a message"))?;
    // Opening would make a store where there is none.
    if !dir.join("journal").is_dir() {
        return Err(format!("{} holds no store", dir.display()));
    }
    let begun = Instant::now();
    let (wakes, woken) = channel();
    let wake = Arc::new(move || drop(wakes.send(())));
    let opened = EmbeddedStore::open(dir, store_settings(settings), wake);
    let (mut store, _) = opened.map_err(|error| error.to_string())?;
    store.recover(&now(begun));
    let found = store.find(id.seq()).filter(|found| {
        let is_it = MessageId::new(found.head.accepted_at, id.seq()) == id;
        is_it && !found.dead
    });
    let found = found.ok_or_else(|| format!("there is no message {id} that waits"))?;
    let record = Record::Settlement {
        flow: found.flow,
        seq: id.seq(),
        state: State::Cancelled,
        account: None,
        error: None,
    };
    store.submit(&now(begun), StoreWork::Append { no: APPEND, record });
    wait_for_commit(&mut store, &woken, begun)
}

fn wait_for_commit(
    store: &mut EmbeddedStore,
    woken: &Receiver<()>,
    begun: Instant,
) -> Result<(), String> {
    let failed = || "it could not be written: the disk failed, or takes too long".to_owned();
    let mut done = Vec::new();
    while begun.elapsed() < PATIENCE {
        store.complete(&now(begun), &mut done);
        for event in done.drain(..) {
            match event {
                StoreDone::Event(Event::Committed { through }) if through >= APPEND => {
                    return Ok(());
                }
                StoreDone::Event(Event::CommitFailed { .. }) => return Err(failed()),
                _ => {}
            }
        }
        if woken.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Disconnected) {
            return Err(failed());
        }
    }
    Err(failed())
}
