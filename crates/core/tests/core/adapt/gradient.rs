//! A far end that answers more slowly the more is in flight beyond what it can
//! work on at once.

use outflow_core::adapt::gradient::Gradient;
use outflow_core::entropy::Entropy;
use outflow_core::time::{Mono, Nanos};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A far end with `slots` workers, each of which takes `work` and a bit by
/// chance; always as much is in flight as the gradient allows. The limit at the
/// end of each second.
fn run(gradient: &mut Gradient, slots: usize, work_ms: u64, from: u64, secs: u64) -> Vec<u32> {
    let mut free: BinaryHeap<Reverse<u64>> = (0..slots).map(|_| Reverse(0)).collect();
    let mut flying: BinaryHeap<Reverse<(u64, u64)>> = BinaryHeap::new();
    let mut seed = Entropy(7).0;
    let mut now = from * 1_000_000_000;
    let mut limits = Vec::new();
    while now < (from + secs) * 1_000_000_000 {
        while flying.len() < gradient.limit() as usize {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let jitter = (seed >> 33) % (work_ms * 1_000_000 / 4);
            let Reverse(worker) = free.pop().unwrap();
            let done = worker.max(now) + work_ms * 1_000_000 + jitter;
            free.push(Reverse(done));
            flying.push(Reverse((done, now)));
        }
        let in_flight = flying.len() as u32;
        let Reverse((done, sent)) = flying.pop().unwrap();
        now = now.max(done);
        gradient.replied(Mono(now), Nanos(now - sent), in_flight);
        let second = (now / 1_000_000_000 - from) as usize;
        limits.resize(second + 1, gradient.limit());
    }
    limits
}

#[test]
fn it_finds_the_knee_and_stays_there() {
    for slots in [1, 4, 20, 50, 200] {
        let mut gradient = Gradient::new(4, 1_000);
        let limits = run(&mut gradient, slots, 50, 0, 240);
        let late = &limits[limits.len() / 2..];
        let (least, most) = (late.iter().min().unwrap(), late.iter().max().unwrap());
        let slots = slots as u32;
        assert!(*least * 10 >= slots * 9, "{slots}: {least} to {most}");
        assert!(*most <= slots * 2 + 6, "{slots}: {least} to {most}");
    }
}

#[test]
fn it_follows_a_far_end_that_loses_half_of_its_workers() {
    let mut gradient = Gradient::new(4, 1_000);
    let before = *run(&mut gradient, 80, 50, 0, 60).last().unwrap();
    let after = *run(&mut gradient, 40, 50, 60, 60).last().unwrap();
    assert!(
        before >= 72 && (36..=90).contains(&after),
        "{before}, {after}"
    );
    let again = *run(&mut gradient, 80, 50, 120, 60).last().unwrap();
    assert!(again >= 72, "{again}");
}

#[test]
fn it_never_leaves_its_bounds_and_does_not_grow_unused() {
    let mut gradient = Gradient::new(50, 60);
    for tick in 0..10_000_u64 {
        gradient.replied(Mono(tick * 1_000_000), Nanos::from_millis(10), 60);
    }
    assert_eq!(gradient.limit(), 60);
    let mut gradient = Gradient::new(50, 1_000);
    for tick in 0..10_000_u64 {
        gradient.replied(Mono(tick * 1_000_000), Nanos::from_millis(10), 3);
    }
    assert_eq!(gradient.limit(), 50);
    let mut gradient = Gradient::new(50, 1_000);
    for tick in 0..10_000_u64 {
        let took = Nanos::from_millis(10 + tick);
        gradient.replied(Mono(tick * 1_000_000), took, 50);
    }
    assert!(gradient.limit() >= 1 && gradient.limit() < 8);
}
