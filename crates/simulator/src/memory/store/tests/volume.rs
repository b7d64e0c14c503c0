use std::sync::Arc;

use outflow_core::destination::Destination;
use outflow_core::engine::action::Record;
use outflow_core::engine::event::Event;
use outflow_core::flow::FlowKey;
use outflow_core::handle::AppendNo;
use outflow_core::message::Recipient;
use outflow_ports::store::{BatchId, NewMessage};

use crate::memory::store::*;

fn at(millis: u64) -> Now {
    Now {
        mono: Mono(0) + Nanos::from_millis(millis),
        wall: Wall(0) + Nanos::from_millis(millis),
        entropy: Entropy(0),
    }
}

fn message(flow: u32, body: &Arc<[u8]>) -> NewMessage {
    NewMessage {
        flow: FlowId(flow),
        idempotency_key: None,
        not_before: None,
        expires_at: Wall(0) + Nanos::from_secs(3_600),
        recipient: Recipient(0),
        cost: 1,
        envelope: Arc::clone(body),
        body: Arc::clone(body),
    }
}

#[test]
fn a_million_messages_pass_through() {
    let (flows, batches, size) = (100, 1_000, 1_000);
    let mut store = MemoryStore::new(Settings::default(), Faults::default());
    store.recover(&at(0));
    let key = Arc::new(FlowKey::to(Destination::isp("example")));
    for flow in 0..flows {
        let (flow, key) = (FlowId(flow), Arc::clone(&key));
        store.submit(&at(0), StoreWork::OpenFlow { flow, key });
    }
    let body: Arc<[u8]> = Arc::from(*b"hello");
    let mut done = Vec::new();
    for batch in 0..batches {
        let messages = (0..size).map(|i| message((batch + i) % flows, &body));
        let work = StoreWork::Accept {
            batch: BatchId(u64::from(batch)),
            messages: messages.collect(),
        };
        store.submit(&at(u64::from(batch)), work);
        store.complete(&at(u64::from(batch)), &mut done);
    }
    store.complete(&at(10_000), &mut done);
    while store.next_completion() < at(20_000).mono {
        let now = Now {
            mono: store.next_completion(),
            ..at(10_000)
        };
        store.complete(&now, &mut done);
    }
    assert_eq!(store.live(), 1_000_000);
    done.clear();
    let mut no = 0;
    let mut millis = 20_000;
    while store.live() > 0 {
        millis += 1;
        for flow in 0..flows {
            let flow = FlowId(flow);
            store.submit(&at(millis), StoreWork::Page { flow, max: 64 });
        }
        store.complete(&at(millis), &mut done);
        for event in done.drain(..) {
            let StoreDone::Event(Event::Paged { flow, heads }) = event else {
                continue;
            };
            for head in heads {
                no += 1;
                let record = Record::Settlement {
                    flow,
                    seq: head.seq,
                    state: State::Delivered,
                    account: None,
                    error: None,
                };
                let no = AppendNo(no);
                store.submit(&at(millis), StoreWork::Append { no, record });
            }
        }
    }
    assert_eq!(store.ended(State::Delivered), 1_000_000);
}
