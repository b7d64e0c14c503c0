//! `enqueue`: durable submissions over HTTP, one by one over 64 connections and
//! in batches of 500, beside what the same disk does for anybody: a plain
//! `fdatasync` after each small append, and a bare append log with group commit.
//!
//! Everything is paused, so that intake is measured and not delivery. How much
//! comes in while all of it is delivered at the same time is printed beside it.

mod disk;

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::LocalSet;

use crate::figures::{median, short};
use crate::http;
use crate::letters::{self, Letter};
use crate::server::{Scratch, Server, block_on, own_cpu, progress};

/// Connections that submit at the same time.
pub const CONNECTIONS: usize = 64;
/// Connections that submit batches: more only wait.
const BATCH_CONNECTIONS: usize = 4;
const BATCH: u64 = 500;
const ROUNDS: usize = 5;
/// How long each side runs in a round.
const SPAN: Duration = Duration::from_secs(2);
const DOMAINS: u64 = 100;

/// Runs all sides in turn, round by round.
pub fn run() -> io::Result<Value> {
    block_on(async {
        let scratch = Scratch::new("enqueue")?;
        let server = Server::start(scratch.path(), "").await?;
        let paused = server.pause(json!({ "class": "normal" })).await?;
        let mut sides: [Vec<f64>; 6] = Default::default();
        let mut client_cpu = Vec::new();
        for round in 1..=ROUNDS {
            let fdatasync = disk::fdatasync(scratch.path(), SPAN)?;
            let log = disk::append_log(scratch.path(), SPAN, CONNECTIONS).await?;
            let health = healthz(&server).await?;
            let before = own_cpu();
            let single = submit(&server, CONNECTIONS, 1, "normal").await?;
            client_cpu.push((own_cpu() - before).as_secs_f64() / SPAN.as_secs_f64());
            let batch = submit(&server, BATCH_CONNECTIONS, BATCH, "normal").await?;
            // High is not paused.
            let flowing = submit(&server, CONNECTIONS, 1, "high").await?;
            progress(&format!(
                "round {round} of {ROUNDS}: {single:.0}/s single, {batch:.0}/s in batches, \
                 {flowing:.0}/s single while delivering; fdatasync {fdatasync:.0}/s, \
                 append log {log:.0}/s, GET /healthz {health:.0}/s"
            ));
            let figures = [single, batch, fdatasync, log, health, flowing];
            for (side, figure) in sides.iter_mut().zip(figures) {
                side.push(figure);
            }
        }
        server.resume(&paused).await?;
        let [single, batch, fdatasync, log, health, flowing] = sides.map(|side| median(&side));
        println!("single      {single:>9.0}/s over {CONNECTIONS} connections");
        println!("batches     {batch:>9.0}/s, {BATCH} each, over {BATCH_CONNECTIONS} connections");
        println!("delivering  {flowing:>9.0}/s single, all delivered meanwhile");
        println!(
            "fdatasync   {fdatasync:>9.0}/s, an append of {} bytes each",
            disk::RECORD
        );
        println!("append log  {log:>9.0}/s, group commit, no HTTP, {CONNECTIONS} writers");
        println!("/healthz    {health:>9.0}/s, what client and HTTP do without a message");
        Ok(json!({
            "bench": "enqueue",
            "single_per_s": short(single),
            "batch_per_s": short(batch),
            "fdatasync_per_s": short(fdatasync),
            "append_log_per_s": short(log),
            "single_while_delivering_per_s": short(flowing),
            "healthz_per_s": short(health),
            "client_cpu": short(median(&client_cpu)),
        }))
    })
}

/// Messages accepted a second, `size` to a request.
async fn submit(
    server: &Server,
    connections: usize,
    size: u64,
    class: &'static str,
) -> io::Result<f64> {
    let no = Rc::new(Cell::new(0));
    let token = server.token.clone();
    let build = move || {
        let first = no.get();
        no.set(first + size);
        let letters = (first..first + size).map(|no| Letter {
            tenant: 1,
            class,
            domain: no % DOMAINS,
            no,
            has_key: false,
        });
        let mut body = Vec::with_capacity(256 * size as usize);
        match size {
            1 => letters.for_each(|letter| letter.write(&mut body)),
            _ => letters::batch(&mut body, letters),
        }
        http::submission(&token, "application/json", &body)
    };
    let requests = repeat(server, connections, 202, build).await?;
    Ok(requests * size as f64)
}

/// Requests a second that no message is in.
async fn healthz(server: &Server) -> io::Result<f64> {
    let request = http::get("/healthz", &server.token);
    repeat(server, CONNECTIONS, 200, move || request.clone()).await
}

/// Requests a second over some connections, each after the answer to the last.
async fn repeat(
    server: &Server,
    connections: usize,
    status: u16,
    build: impl Fn() -> Vec<u8> + Clone + 'static,
) -> io::Result<f64> {
    let mut open = Vec::new();
    for _ in 0..connections {
        open.push(server.connect().await?);
    }
    let count = Rc::new(Cell::new(0_u64));
    let began = Instant::now();
    let local = LocalSet::new();
    let tasks: Vec<_> = open
        .into_iter()
        .map(|mut connection| {
            let (count, build) = (Rc::clone(&count), build.clone());
            local.spawn_local(async move {
                while began.elapsed() < SPAN {
                    connection.call(&build()).await?.expect(status)?;
                    count.set(count.get() + 1);
                }
                Ok::<_, io::Error>(())
            })
        })
        .collect();
    local
        .run_until(async {
            for task in tasks {
                task.await.map_err(io::Error::other)??;
            }
            Ok::<_, io::Error>(())
        })
        .await?;
    Ok(count.get() as f64 / began.elapsed().as_secs_f64())
}
