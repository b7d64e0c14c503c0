//! Receipts are made of what the journal knows, also after a death.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outflow_core::engine::action::{Attempt, Record};
use outflow_core::handle::FlowId;
use outflow_core::message::{Seq, State};
use outflow_core::name::Name;
use outflow_core::outcome::ReplyClass;
use outflow_core::reply::Enhanced;
use outflow_core::retry::dead_letter::LastError;
use outflow_core::time::Nanos;
use outflow_ports::conformance::store::Harness;
use outflow_ports::receipts::Receipt;

use super::driver::{Driver, Said, key_of, message, settlement};
use super::harness::Rig;

const FLOW: FlowId = FlowId(0);

fn trouble(text: &str) -> LastError {
    LastError {
        code: Some(421),
        enhanced: Some(Enhanced(4, 7, 28)),
        class: ReplyClass::Rate,
        rule: Name::from("rate"),
        text: text.into(),
    }
}

fn tried(driver: &mut Driver, seq: Seq, attempts: u16) {
    let at = driver.rig.now().wall;
    let said = driver.commit(Record::Deferral {
        flow: FLOW,
        seq,
        until: at + Nanos::from_secs(1),
        attempt: Some(Box::new(Attempt {
            first_attempt_at: at,
            attempts,
            uncertain: 0,
            delay: Nanos::from_secs(1),
            error: trouble(&format!("slower, {attempts}")),
            account: Name::from("one"),
        })),
    });
    assert_eq!(said, Said::Committed);
    driver.pass(Nanos::from_secs(2));
    driver.turn();
    assert_eq!(driver.page(FLOW, 1).len(), 1);
}

fn receipt(driver: &mut Driver, seq: Seq) -> Receipt {
    let receipts = driver.rig.store().receipts();
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(receipt) = receipts.get(seq).unwrap() {
            return receipt;
        }
        assert!(Instant::now() < deadline, "no receipt is written");
        driver.turn();
        std::thread::yield_now();
    }
}

fn whats(events: &[outflow_ports::receipts::Happening]) -> Vec<&str> {
    events.iter().map(|it| it.what.as_str()).collect()
}

/// Asks as another thread would, while the store's own turns.
fn events(driver: &mut Driver, seq: Seq) -> Vec<outflow_ports::receipts::Happening> {
    let receipts = driver.rig.store().receipts();
    let asking = std::thread::spawn(move || receipts.events(seq));
    while !asking.is_finished() {
        driver.turn();
        std::thread::yield_now();
    }
    asking.join().unwrap().unwrap()
}

#[test]
fn a_receipt_tells_the_story() {
    for dies in [false, true] {
        let mut driver = Driver::new(Rig::on_memory(3));
        driver.open(FLOW);
        let body: Arc<[u8]> = Arc::from([1]);
        let Said::Given(given) = driver.accept(vec![message(FLOW, 42, &body)]) else {
            panic!("a healthy disk takes messages");
        };
        let seq = given[0].seq;
        driver.page(FLOW, 1);
        tried(&mut driver, seq, 1);
        tried(&mut driver, seq, 2);
        let so_far = events(&mut driver, seq);
        assert_eq!(whats(&so_far), ["accepted", "deferred", "deferred"]);
        assert_eq!(so_far[2].error.as_ref().unwrap().text, "slower, 2");
        driver.commit(settlement(FLOW, seq, State::Delivered));
        if dies {
            driver.restart();
        }
        let receipt = receipt(&mut driver, seq);
        assert_eq!(receipt.key, key_of(FLOW));
        assert_eq!((receipt.state, receipt.attempts), (State::Delivered, 3));
        assert_eq!(receipt.accepted_at, given[0].accepted_at);
        assert_eq!(receipt.account.as_deref(), Some("one"));
        assert_eq!(receipt.envelope, b"envelope 42");
        assert_eq!(
            whats(&receipt.events),
            ["accepted", "deferred", "deferred", "delivered"]
        );
        let settled = events(&mut driver, seq);
        assert_eq!(whats(&settled).last(), Some(&"delivered"));
    }
}

#[test]
fn a_cancelled_flow_leaves_receipts() {
    let mut driver = Driver::new(Rig::on_memory(4));
    driver.open(FLOW);
    let body: Arc<[u8]> = Arc::from([1]);
    driver.accept((0..5).map(|mark| message(FLOW, mark, &body)).collect());
    driver.commit(Record::Cancelled {
        flow: FLOW,
        through: Seq(4),
    });
    driver.restart();
    for seq in 1..=4 {
        assert_eq!(receipt(&mut driver, Seq(seq)).state, State::Cancelled);
    }
    let receipts = driver.rig.store().receipts();
    assert_eq!(receipts.get(Seq(5)).unwrap(), None, "that one lives");
}
