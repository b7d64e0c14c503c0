//! Disk space comes back, and nobody who reads notices.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outflow_core::engine::action::{Hold, Record};
use outflow_core::engine::event::Event;
use outflow_core::handle::{AppendNo, FlowId};
use outflow_core::message::{Seq, State};
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::scope::Scope;
use outflow_core::time::Nanos;
use outflow_ports::conformance::store::Harness;
use outflow_ports::parcel::ParcelRef;
use outflow_ports::store::{Store, StoreDone, StoreWork};

use super::driver::{Driver, Said, message, settlement};
use super::harness::Rig;

const FLOW: FlowId = FlowId(0);

fn bytes(driver: &Driver) -> usize {
    driver.rig.memory.as_ref().unwrap().total_bytes()
}

/// Turns until something holds, with real time for the threads behind.
pub fn until(driver: &mut Driver, what: &str, mut holds: impl FnMut(&mut Driver) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds(driver) {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        driver.pass(Nanos::from_millis(200));
        driver.turn();
        std::thread::yield_now();
    }
}

fn story(grace: Nanos) -> (Driver, Vec<(Seq, ParcelRef)>) {
    let mut rig = Rig::on_memory(5);
    rig.settings.reading_grace = grace;
    rig.settings.record.batch_time = Nanos::from_millis(1);
    rig.crash();
    let mut driver = Driver::new(rig);
    driver.open(FLOW);
    let mut stays = Vec::new();
    for round in 0..200_u64 {
        let body: Arc<[u8]> = Arc::from(vec![round as u8; 1_500]);
        let messages = (0..10).map(|no| {
            let own: Arc<[u8]> = Arc::from(vec![no as u8; 200]);
            message(FLOW, round * 10 + no, if no < 5 { &body } else { &own })
        });
        let said = driver.accept(messages.collect());
        assert_ne!(said, Said::Failed);
        for (no, head) in driver.page(FLOW, 10).iter().enumerate() {
            if round % 20 == 0 && no % 5 == 0 {
                let parcel = driver.rig.store().parcel(head.seq).unwrap();
                stays.push((head.seq, parcel));
            } else {
                driver.commit(settlement(FLOW, head.seq, State::Delivered));
            }
        }
    }
    (driver, stays)
}

#[test]
fn space_comes_back() {
    let (mut driver, stays) = story(Nanos::ZERO);
    until(&mut driver, "little is left on the disk", |driver| {
        bytes(driver) < 700 << 10
    });
    for _ in 0..2 {
        for (seq, _) in &stays {
            let parcel = driver.rig.store().parcel(*seq).unwrap();
            let mark = parcel.read().unwrap().envelope;
            assert!(mark.starts_with(b"envelope "), "{mark:?}");
        }
        assert_eq!(driver.rig.store().len(), stays.len());
        let recovered = driver.restart();
        assert_eq!(recovered.flows.len(), 1, "the flow is still named");
    }
    for (seq, _) in &stays {
        driver.commit(settlement(FLOW, *seq, State::Delivered));
    }
    until(&mut driver, "nearly all space is back", |driver| {
        bytes(driver) < 500 << 10
    });
}

#[test]
fn who_carries_a_message_can_read_it_all_the_while() {
    let (mut driver, stays) = story(Nanos::from_secs(3_600));
    until(&mut driver, "segments are given up", |driver| {
        driver.rig.store().reclaim.leaving > 3
    });
    for (_, parcel) in &stays {
        assert!(parcel.read().is_ok(), "a place given out earlier is good");
    }
}

/// What is known is written again before its segment is given up, but not behind
/// something newer: the last record counts.
#[test]
fn what_is_written_again_does_not_outlive_what_is_newer() {
    let mut driver = Driver::new(Rig::on_memory(5));
    let key = Arc::new(LimitKey::of(Scope::Account, "main"));
    let hour = driver.rig.now().wall + Nanos::from_secs(3_600);
    let held = |per_minute| Record::Held {
        key: Arc::clone(&key),
        hold: Hold {
            until: hour,
            per_minute,
        },
    };
    driver.commit(held(60));
    let (no, record) = (AppendNo(2), held(6));
    driver.submit(StoreWork::Append { no, record });
    assert!(
        driver.rig.store().restate_limits(u32::MAX),
        "it goes on later"
    );
    driver.wait(|done| match done {
        StoreDone::Event(Event::Committed { through }) => (*through >= no).then_some(()),
        _ => None,
    });
    let recovered = driver.restart();
    assert_eq!(recovered.holds.get(&*key).map(|it| it.per_minute), Some(6));
}
