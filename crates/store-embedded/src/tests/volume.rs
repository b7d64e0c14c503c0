//! Figures: how fast, how large, how soon ready again. Run by hand:
//! `OUTFLOW_VOLUME=5000000 cargo test --profile ci -p outflow-store-embedded
//! -- --ignored --nocapture volume`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outflow_core::destination::Destination;
use outflow_core::engine::event::Event;
use outflow_core::entropy::Entropy;
use outflow_core::flow::FlowKey;
use outflow_core::handle::{AppendNo, FlowId};
use outflow_core::message::State;
use outflow_core::name::Name;
use outflow_core::time::{Mono, Nanos, Now, Wall};
use outflow_ports::store::{BatchId, NewMessage, Store, StoreDone, StoreWork};

use super::driver::{message, settlement};
use super::scratch::Scratch;
use crate::boot::{BootClock, SystemBoot};
use crate::{EmbeddedStore, Settings};

const BATCH: u64 = 500;

fn now(start: Instant) -> Now {
    Now {
        mono: Mono(start.elapsed().as_nanos() as u64),
        wall: SystemBoot.wall(),
        entropy: Entropy(0),
    }
}

fn resident_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    let kb: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kb / 1_024
}

fn open(scratch: &Scratch) -> (EmbeddedStore, crate::Opened) {
    let me = std::thread::current();
    let wake = Arc::new(move || me.unpark());
    EmbeddedStore::open(scratch.path(), Settings::default(), wake).unwrap()
}

fn of_batch(first: u64, flows: u64, body: &[u8]) -> Vec<NewMessage> {
    let messages = (first..first + BATCH).map(|no| {
        let mut body = body.to_vec();
        body[..8].copy_from_slice(&no.to_le_bytes());
        NewMessage {
            idempotency_key: Some(Arc::from(format!("key-{no}"))),
            expires_at: SystemBoot.wall() + Nanos::from_secs(4 * 86_400),
            envelope: Arc::from([b'e'; 180]),
            ..message(FlowId((no % flows) as u32), no, &Arc::from(body))
        }
    });
    messages.collect()
}

#[test]
#[ignore = "takes minutes and prints figures"]
#[expect(clippy::print_stdout, reason = "figures are its purpose")]
fn volume() {
    let count: u64 = std::env::var("OUTFLOW_VOLUME").map_or(200_000, |it| it.parse().unwrap());
    let flows = (count / 50).max(1);
    let scratch = Scratch::new();
    let start = Instant::now();
    let (mut store, _) = open(&scratch);
    store.recover(&now(start));
    for flow in 0..flows {
        let key = FlowKey {
            tenant: Name::from(format!("tenant-{}", flow % 1_000)),
            ..FlowKey::to(Destination::isp(format!("isp-{}", flow / 2)))
        };
        let flow = FlowId(flow as u32);
        store.submit(
            &now(start),
            StoreWork::OpenFlow {
                flow,
                key: Arc::new(key),
            },
        );
    }
    let body = vec![7; 2_048];
    let (mut submitted, mut accepted) = (0, 0);
    let began = Instant::now();
    let mut done = Vec::new();
    while accepted < count {
        while submitted < count && submitted - accepted < 20 * BATCH {
            let messages = of_batch(submitted, flows, &body);
            let batch = BatchId(submitted);
            store.submit(&now(start), StoreWork::Accept { batch, messages });
            submitted += BATCH;
        }
        std::thread::park_timeout(Duration::from_millis(5));
        store.complete(&now(start), &mut done);
        for it in done.drain(..) {
            match it {
                StoreDone::Accepted { given, .. } => accepted += given.len() as u64,
                StoreDone::AcceptFailed { .. } => panic!("intake failed"),
                StoreDone::Event(_) => {}
            }
        }
    }
    let took = began.elapsed().as_secs_f64();
    println!(
        "accepted {count} in {took:.1} s: {:.0}/s, {} MB resident",
        count as f64 / took,
        resident_mb()
    );
    drop(store);
    let (mut store, opened) = open(&scratch);
    let recovering = Instant::now();
    let recovered = store.recover(&now(start));
    println!(
        "opened {opened:?}, taking stock {:?}, {} flows, {} MB resident",
        recovering.elapsed(),
        recovered.flows.len(),
        resident_mb()
    );
    pass_through(&mut store, start, count.min(300_000), flows, &body);
    println!("{} MB resident", resident_mb());
}

/// Accepts and settles at the same time.
#[expect(clippy::print_stdout, reason = "figures are its purpose")]
fn pass_through(store: &mut EmbeddedStore, start: Instant, count: u64, flows: u64, body: &[u8]) {
    let (mut submitted, mut accepted, mut settled, mut no) = (0, 0, 0, 0);
    let began = Instant::now();
    let mut done = Vec::new();
    let mut flow = 0;
    while accepted < count || settled < count {
        while submitted < count && submitted - accepted < 8 * BATCH {
            let messages = of_batch(1 << 40 | submitted, flows, body);
            let batch = BatchId(1 << 40 | submitted);
            store.submit(&now(start), StoreWork::Accept { batch, messages });
            submitted += BATCH;
        }
        while no < count && no - settled < 4_000 {
            flow = (flow + 1) % flows;
            let flow = FlowId(flow as u32);
            store.submit(&now(start), StoreWork::Page { flow, max: 64 });
            let mut heads = Vec::new();
            store.complete(&now(start), &mut done);
            done.retain_mut(|it| match it {
                StoreDone::Event(Event::Paged { heads: page, .. }) => {
                    heads.append(page);
                    false
                }
                _ => true,
            });
            for head in heads {
                no += 1;
                let record = settlement(flow, head.seq, State::Delivered);
                store.submit(
                    &now(start),
                    StoreWork::Append {
                        no: AppendNo(no),
                        record,
                    },
                );
            }
        }
        if done.is_empty() {
            std::thread::park_timeout(Duration::from_millis(5));
            store.complete(&now(start), &mut done);
        }
        for it in done.drain(..) {
            match it {
                StoreDone::Accepted { given, .. } => accepted += given.len() as u64,
                StoreDone::AcceptFailed { .. } => panic!("intake failed"),
                StoreDone::Event(Event::Committed { through }) => settled = through.0,
                StoreDone::Event(_) => {}
            }
        }
    }
    let took = began.elapsed().as_secs_f64();
    println!(
        "accepted and settled {count} each in {took:.1} s: {:.0}/s, {} not recorded yet",
        count as f64 / took,
        store.unrecorded()
    );
    let _ = Wall(0);
}
