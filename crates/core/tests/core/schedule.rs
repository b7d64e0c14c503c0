//! Who goes next: no class is shut out by flows that are booked elsewhere, and
//! no place that could be served sleeps.

use outflow_core::class::Class;
use outflow_core::handle::{FlowId, LaneId};
use outflow_core::limit::{Fill, Headroom, Limit, LimitSpec};
use outflow_core::schedule::place::{Holder, PlaceId};
use outflow_core::schedule::{Outlet, Schedule, TenantId};
use outflow_core::time::{Mono, Nanos, Now};

use super::limits::{at, spec};

/// Sends whatever passes; every message costs 1.
#[derive(Default)]
struct Sent {
    counts: Vec<u32>,
    /// How many messages each flow has; those that are not named have no end.
    ends: Vec<Option<u32>>,
}

impl Outlet for Sent {
    fn gate_open(&self, _: LaneId, _: Class, _: u32) -> bool {
        true
    }

    fn prepare(&mut self, _: &Now, _: FlowId) -> Option<u32> {
        Some(1)
    }

    fn send(&mut self, _: &Now, flow: FlowId) -> Option<u32> {
        let index = flow.index();
        self.counts[index] += 1;
        let is_over = self.ends[index].is_some_and(|end| self.counts[index] >= end);
        (!is_over).then_some(1)
    }
}

#[derive(Default)]
struct World {
    schedule: Schedule,
    sent: Sent,
}

impl World {
    fn limit(&mut self, spec: LimitSpec, fill: Fill) -> PlaceId {
        let mut limit = Limit::owned(spec, Headroom::default(), &at(0), fill);
        limit.expect_cost(1);
        limit.reserve_committed(u32::MAX);
        self.schedule.add_place(Holder::Limit(Box::new(limit)))
    }

    /// A flow with a tenant of its own that has so many messages.
    fn flow(&mut self, class: Class, places: &[PlaceId], messages: Option<u32>) -> FlowId {
        let id = FlowId(self.sent.counts.len() as u32);
        self.sent.counts.push(0);
        self.sent.ends.push(messages);
        self.schedule.add_flow(id, class, TenantId(id.0), 1, places);
        self.schedule.offer(id, 1);
        id
    }

    fn sent_by(&self, flow: FlowId) -> u32 {
        self.sent.counts[flow.index()]
    }

    fn run(&mut self, now: u64) {
        let mut budget = 100_000;
        assert!(self.schedule.run(&at(now), &mut budget, &mut self.sent));
        self.check(now);
    }

    fn check(&self, now: u64) {
        let found = self.schedule.check(&at(now), &self.sent);
        assert_eq!(found, Ok(()), "at {now}");
    }

    /// Goes from one wake to the next; in between nothing may be left undone.
    fn run_until(&mut self, end: Nanos) {
        let mut now = 0;
        loop {
            self.run(now);
            let Mono(next) = self.schedule.next_wake();
            for step in 1..10 {
                self.check(now + (next.min(end.0).saturating_sub(now)) / 10 * step);
            }
            if next > end.0 {
                return;
            }
            now = next.max(now);
        }
    }
}

/// A hundred flows need a wide bucket and a narrow one of their own, which is
/// empty for a moment: each would book at once and count against the wide one.
fn crowd(wide: &str) -> (World, PlaceId) {
    let mut world = World::default();
    let wide = world.limit(spec(wide), Fill::Full);
    for _ in 0..100 {
        let narrow = world.limit(spec("1/s burst 2"), Fill::Empty);
        world.flow(Class::High, &[wide, narrow], Some(1));
    }
    world.run(0);
    (world, wide)
}

#[test]
fn booked_flows_are_few_however_many_could_be_booked() {
    let (mut world, wide) = crowd("100/s burst 100");
    let low = world.flow(Class::Low, &[wide], Some(1));
    world.run(0);
    assert_eq!(world.sent_by(low), 1, "booked flows left nothing to others");
}

#[test]
fn a_full_bucket_is_not_kept_for_those_who_stand_elsewhere() {
    let (mut world, wide) = crowd("100/s burst 8");
    let low = world.flow(Class::Low, &[wide], Some(1));
    world.run(0);
    assert_eq!(world.sent_by(low), 1, "tokens that accrue now are lost");
}

#[test]
fn everybody_who_waited_for_a_ticket_is_sent() {
    let (mut world, _) = crowd("100/s burst 8");
    world.run_until(Nanos::from_secs(10));
    let sent: u32 = world.sent.counts.iter().sum();
    assert_eq!(sent, 100);
}

#[test]
fn credit_serves_a_booked_flow_that_higher_classes_passed_by() {
    let mut world = World::default();
    let bucket = world.limit(spec("10/s burst 10"), Fill::Empty);
    let low = world.flow(Class::Low, &[bucket], None);
    world.run(0);
    for _ in 0..3 {
        world.flow(Class::High, &[bucket], None);
    }
    world.run_until(Nanos::from_secs(60));
    let (low, all) = (world.sent_by(low), world.sent.counts.iter().sum::<u32>());
    assert!(all >= 590, "{all} sends");
    assert!(low * 1_000 >= all * 18, "{low} of {all}");
}

#[test]
fn a_window_that_recovers_wakes_those_it_paced() {
    let mut world = World::default();
    let ten_seconds = LimitSpec::SlidingWindow {
        count: 24,
        window: Nanos::from_secs(10),
    };
    let window = world.limit(ten_seconds, Fill::Full);
    let shut = world.limit(spec("1/h"), Fill::Empty);
    // Somebody may come from elsewhere, so those who wait here are paced.
    world.flow(Class::Normal, &[window, shut], None);
    world.flow(Class::Normal, &[window], None);
    world.run_until(Nanos::from_secs(60));
}
