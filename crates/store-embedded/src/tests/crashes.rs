//! A death before every single write, sync and rename of a little story.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use outflow_core::handle::FlowId;
use outflow_core::message::{Seq, State};
use outflow_core::time::Nanos;
use outflow_ports::conformance::store::Harness;
use outflow_ports::store::Store;

use super::driver::{Driver, Said, message, settlement};
use super::harness::Rig;

const FLOW: FlowId = FlowId(0);

#[derive(Default)]
pub struct Story {
    pub accepted: BTreeSet<Seq>,
    pub settled: BTreeSet<Seq>,
    pub unsure: BTreeSet<Seq>,
}

/// Enough to fill several segments, give some up and rewrite others.
pub fn tell(driver: &mut Driver, story: &mut Story) {
    driver.open(FLOW);
    for round in 0..20_u64 {
        let body: Arc<[u8]> = Arc::from(vec![round as u8; 900]);
        let messages = (0..4).map(|no| message(FLOW, round * 4 + no, &body));
        let Said::Given(given) = driver.accept(messages.collect()) else {
            return;
        };
        story.accepted.extend(given.iter().map(|it| it.seq));
        let page = driver.page(FLOW, 4);
        for head in page.iter().skip(usize::from(round % 3 == 0)) {
            let said = driver.commit(settlement(FLOW, head.seq, State::Delivered));
            if said != Said::Committed {
                story.unsure.insert(head.seq);
                return;
            }
            story.settled.insert(head.seq);
        }
        driver.pass(Nanos::from_millis(250));
        driver.turn();
    }
}

pub fn check(driver: &mut Driver, story: &Story, no: u64) {
    let mut found = BTreeSet::new();
    let store = driver.rig.store();
    store.scan(Seq(0), usize::MAX, &mut |it| {
        found.insert(it.head.seq);
    });
    for seq in &found {
        let parcel = store.parcel(*seq).unwrap().read();
        assert!(parcel.is_ok(), "the parcel of {seq:?} is lost, death {no}");
    }
    for seq in &story.accepted {
        if story.settled.contains(seq) {
            assert!(!found.contains(seq), "{seq:?} comes back, death {no}");
        } else if !story.unsure.contains(seq) {
            assert!(found.contains(seq), "{seq:?} is lost, death {no}");
        }
    }
}

pub fn begin(seed: u64) -> Driver {
    let mut rig = Rig::on_memory(seed);
    rig.settings.envelope_segment_bytes = 4_096;
    rig.settings.body_segment_bytes = 8_192;
    rig.settings.slack_bytes = 4_096;
    rig.settings.reading_grace = Nanos::ZERO;
    rig.settings.record.batch_time = Nanos::from_millis(1);
    rig.crash();
    Driver::new(rig)
}

#[test]
fn a_death_at_every_write() {
    let mut driver = begin(0);
    tell(&mut driver, &mut Story::default());
    let operations = driver.rig.disk.mood.operations.load(SeqCst);
    assert!(operations > 200, "the story is long enough: {operations}");
    drop(driver);
    for no in 1..=operations {
        let mut driver = begin(no);
        let mood = Arc::clone(&driver.rig.disk.mood);
        mood.operations.store(0, SeqCst);
        mood.dies_at.store(no, SeqCst);
        let mut story = Story::default();
        tell(&mut driver, &mut story);
        driver.restart();
        check(&mut driver, &story, no);
        driver.restart();
        check(&mut driver, &story, no);
    }
}
