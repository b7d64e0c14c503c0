//! Who goes next: no class is shut out by flows that are booked elsewhere, and
//! no place that could be served sleeps.

use outflow_core::class::Class;
use outflow_core::handle::{FlowId, LaneId};
use outflow_core::limit::{Fill, Headroom, Limit, LimitSpec};
use outflow_core::schedule::place::{Holder, PlaceId};
use outflow_core::schedule::{Outlet, Schedule, TenantId};
use outflow_core::time::{Mono, Nanos, Now};

use super::limits::{at, spec};

/// Sends whatever passes.
#[derive(Default)]
struct Sent {
    counts: Vec<u32>,
    /// How many messages each flow has; those that are not named have no end.
    ends: Vec<Option<u32>>,
    /// What the messages of each flow cost; 1 if nothing is said.
    costs: Vec<u32>,
    places: Vec<Vec<PlaceId>>,
    /// Whether the gates are shut.
    shut: bool,
    /// Who sent, in order.
    log: Vec<FlowId>,
}

impl Sent {
    fn cost(&self, flow: FlowId) -> u32 {
        self.costs.get(flow.index()).copied().unwrap_or(1)
    }
}

impl Outlet for Sent {
    fn gate_open(&self, _: LaneId, _: Class, _: u32) -> bool {
        !self.shut
    }

    fn prepare(&mut self, _: &Now, flow: FlowId) -> Option<u32> {
        Some(self.cost(flow))
    }

    fn send(&mut self, _: &Now, flow: FlowId) -> Option<u32> {
        let index = flow.index();
        self.counts[index] += 1;
        self.log.push(flow);
        let is_over = self.ends[index].is_some_and(|end| self.counts[index] >= end);
        (!is_over).then_some(self.cost(flow))
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
        self.sent.places.push(places.to_vec());
        self.schedule.add_flow(id, class, TenantId(id.0), 1, places);
        self.schedule.offer(id, self.sent.cost(id));
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
        self.run_between(Nanos::ZERO, end);
    }

    fn run_between(&mut self, start: Nanos, end: Nanos) {
        let mut now = start.0;
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

/// A low flow of cost 2 gets its part of limits of 10/s beside high ones of
/// cost 1.
fn heavy_gets_its_part(limits: &[LimitSpec]) {
    let mut world = World::default();
    let places: Vec<PlaceId> = limits
        .iter()
        .map(|limit| world.limit(limit.clone(), Fill::Empty))
        .collect();
    world.sent.costs = vec![2];
    let low = world.flow(Class::Low, &places, None);
    world.run(0);
    for _ in 0..3 {
        world.flow(Class::High, &places, None);
        for &place in &places {
            world.flow(Class::High, &[place], None);
        }
    }
    world.run_until(Nanos::from_secs(120));
    let sent = &world.sent;
    for &place in &places {
        let uses = |flow: &FlowId| sent.places[flow.index()].contains(&place);
        let flows = (0..sent.counts.len() as u32).map(FlowId).filter(uses);
        let all: u32 = flows
            .map(|flow| sent.counts[flow.index()] * sent.cost(flow))
            .sum();
        assert!(all >= 1_150, "{all} tokens were used");
        let part = world.sent_by(low) * 2;
        assert!(part * 1_000 >= all * 18, "{part} of {all}");
    }
}

#[test]
fn credit_saves_up_what_a_heavy_message_costs() {
    heavy_gets_its_part(&[spec("10/s burst 10")]);
    heavy_gets_its_part(&[spec("10/s burst 2")]);
    let window = LimitSpec::SlidingWindow {
        count: 20,
        window: Nanos::from_secs(2),
    };
    heavy_gets_its_part(&[window]);
}

#[test]
fn a_heavy_message_gets_its_part_of_two_limits_at_once() {
    heavy_gets_its_part(&[spec("10/s burst 10"), spec("10/s burst 10")]);
}

#[test]
fn a_heavy_message_that_steps_away_for_a_moment_keeps_less_than_its_turn() {
    let mut world = World::default();
    let bucket = world.limit(spec("10/s burst 20"), Fill::Empty);
    world.sent.costs = vec![5];
    let low = world.flow(Class::Low, &[bucket], None);
    world.run(0);
    for _ in 0..3 {
        world.flow(Class::High, &[bucket], None);
    }
    for second in 0..240 {
        let (start, back) = (
            Nanos::from_secs(second),
            Nanos(second * 1_000_000_000 + 150_000_000),
        );
        world.schedule.withdraw(low);
        world.run_between(start, back);
        world.schedule.offer(low, 5);
        world.run_between(back, Nanos::from_secs(second + 1));
    }
    // It waits for 85 % of the time, and earns 2.2 % of what others get.
    assert!(world.sent_by(low) >= 8, "{}", world.sent_by(low));
}

#[test]
fn what_was_paid_for_a_turn_comes_back_from_a_gate_that_was_shut() {
    let mut world = World::default();
    let bucket = world.limit(spec("10/s burst 10"), Fill::Empty);
    let gate = world.schedule.add_place(Holder::Gate(LaneId(0)));
    for _ in 0..3 {
        world.flow(Class::High, &[bucket], None);
    }
    world.sent.costs = vec![1, 1, 1, 2];
    let low = world.flow(Class::Low, &[bucket, gate], None);
    // A session is there for a moment now and then: after its turn at the
    // bucket it has to wait for one, and then it needs the bucket again.
    for tenth in 0..1_200_u64 {
        world.sent.shut = tenth % 20 < 15;
        let start = Nanos(tenth * 100_000_000 + 1);
        if !world.sent.shut {
            world.schedule.mark(gate);
        }
        world.run_between(start, Nanos((tenth + 1) * 100_000_000));
    }
    let part = world.sent_by(low) * 2;
    assert!(part * 1_000 >= 1_200 * 18, "{part} of 1,200");
}

#[test]
fn a_heavy_message_gets_its_part_of_slots_that_come_back_one_by_one() {
    let mut world = World::default();
    let slots = world.limit(LimitSpec::Concurrency { slots: 5 }, Fill::Full);
    world.sent.costs = vec![5];
    let low = world.flow(Class::Low, &[slots], None);
    world.flow(Class::High, &[slots], None);
    world.flow(Class::High, &[slots], None);
    let mut over = 0;
    for milli in 0..4_000_u64 {
        world.run(milli * 1_000_000);
        if let Some(flow) = world.sent.log.get(over) {
            over += 1;
            let cost = world.sent.cost(*flow);
            world.schedule.limit_mut(slots).unwrap().release(cost);
            world.schedule.mark(slots);
        }
    }
    let (heavy, all) = (world.sent_by(low), world.sent.log.len() as u32);
    assert!(all >= 3_800, "{all} sends");
    let (part, used) = (heavy * 5, all + heavy * 4);
    assert!(part * 1_000 >= used * 18, "{part} of {used}");
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
