//! What the disk does without us: the yardstick of `enqueue`.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Bytes of one record: about what a small message takes in the journal.
pub const RECORD: usize = 400;

/// Small appends a second, each synced before the next.
pub fn fdatasync(dir: &Path, span: Duration) -> io::Result<f64> {
    let path = dir.join("fdatasync");
    let mut file = File::create(&path)?;
    let record = [b'r'; RECORD];
    let began = Instant::now();
    let mut count = 0_u64;
    while began.elapsed() < span {
        file.write_all(&record)?;
        file.sync_data()?;
        count += 1;
    }
    let rate = count as f64 / began.elapsed().as_secs_f64();
    std::fs::remove_file(&path)?;
    Ok(rate)
}

type Append = (Vec<u8>, oneshot::Sender<()>);

/// Appends a second of several writers to one log, each acknowledged when it is
/// synced; whatever waits is synced together.
pub async fn append_log(dir: &Path, span: Duration, writers: usize) -> io::Result<f64> {
    let path = dir.join("append-log");
    let file = File::create(&path)?;
    let (sender, appends) = channel::<Append>();
    let log = thread::spawn(move || commit(file, &appends));
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..writers {
        let sender: Sender<Append> = sender.clone();
        tasks.spawn(async move {
            let mut count = 0_u64;
            while began.elapsed() < span {
                let (done, durable) = oneshot::channel();
                let append = (vec![b'r'; RECORD], done);
                if sender.send(append).is_err() || durable.await.is_err() {
                    break;
                }
                count += 1;
            }
            count
        });
    }
    drop(sender);
    let mut count = 0;
    while let Some(written) = tasks.join_next().await {
        count += written.map_err(io::Error::other)?;
    }
    let rate = count as f64 / began.elapsed().as_secs_f64();
    let gone = |_| io::Error::other("the log's thread panicked");
    log.join().map_err(gone)??;
    std::fs::remove_file(&path)?;
    Ok(rate)
}

fn commit(mut file: File, appends: &Receiver<Append>) -> io::Result<()> {
    let mut bytes = Vec::new();
    let mut waiting = Vec::new();
    while let Ok(first) = appends.recv() {
        bytes.clear();
        for (record, done) in std::iter::once(first).chain(appends.try_iter()) {
            bytes.extend_from_slice(&record);
            waiting.push(done);
        }
        file.write_all(&bytes)?;
        file.sync_data()?;
        for done in waiting.drain(..) {
            // Who does not listen any more needs no answer.
            let _ = done.send(());
        }
    }
    Ok(())
}
