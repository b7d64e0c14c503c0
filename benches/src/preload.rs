//! Many messages at once, before a benchmark begins: large requests over a few
//! connections.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::task::LocalSet;

use crate::http;
use crate::letters::{self, Letter};
use crate::server::{Server, progress};

/// Connections that submit at the same time.
const CONNECTIONS: usize = 4;
/// How an answer ends when all of a request were taken.
const NONE_REJECTED: &[u8] = br#""rejected":[]}"#;
/// Between two lines of progress.
const REPORT_EVERY: Duration = Duration::from_secs(5);

/// Submits messages 0 to `count` in requests of `size` lines. How long it took.
pub async fn preload(
    server: &Server,
    count: u64,
    size: u64,
    letter: impl Fn(u64) -> Letter + Clone + 'static,
) -> io::Result<Duration> {
    let began = Instant::now();
    let next = Rc::new(Cell::new(0));
    let reported = Rc::new(Cell::new(began));
    let local = LocalSet::new();
    let mut tasks = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut connection = server.connect().await?;
        let (next, reported, letter) = (Rc::clone(&next), Rc::clone(&reported), letter.clone());
        let mut body = Vec::new();
        let token = server.token.clone();
        tasks.push(local.spawn_local(async move {
            loop {
                let first = next.get();
                if first >= count {
                    return Ok::<_, io::Error>(());
                }
                let end = count.min(first + size);
                next.set(end);
                body.clear();
                letters::lines(&mut body, (first..end).map(&letter));
                let request = http::submission(&token, "application/x-ndjson", &body);
                let answer = connection.call(&request).await?.expect(202)?;
                if !answer.body.ends_with(NONE_REJECTED) {
                    let text = String::from_utf8_lossy(answer.body);
                    let from = text.find("\"rejected\"").unwrap_or_default();
                    let text: String = text.chars().skip(from).take(300).collect();
                    return Err(io::Error::other(format!("a message was refused: {text}")));
                }
                if reported.get().elapsed() >= REPORT_EVERY {
                    reported.set(Instant::now());
                    let rate = end as f64 / began.elapsed().as_secs_f64();
                    progress(&format!("  {end} of {count} queued, {rate:.0}/s"));
                }
            }
        }));
    }
    local
        .run_until(async {
            for task in tasks {
                task.await.map_err(io::Error::other)??;
            }
            Ok::<_, io::Error>(())
        })
        .await?;
    Ok(began.elapsed())
}
