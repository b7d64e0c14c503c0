//! A restart never sends faster: over all lives of a limit together, in real
//! time, its guarantee holds.

use std::collections::{BTreeMap, VecDeque};

use outflow_core::class::Class;
use outflow_core::entropy::Entropy;
use outflow_core::limit::{Fill, Headroom, Limit, LimitSpec, Need, Rate, Saved, Until};
use outflow_core::time::{Mono, Nanos, Now, Wall};
use proptest::prelude::*;

use super::{
    DAY, HOUR, MINUTE, NEW_YEAR, SECOND, at, cases, fresh, full, promise_all, spec, try_take,
};

#[derive(Clone, Debug)]
enum Op {
    Wait(u64),
    Take(u32),
    TakeWhenReady(u32),
    Reserve,
    DiskAnswers,
    Crash {
        down: u64,
        underestimate: u64,
        boot: u64,
        /// How many of the reservations under way reached the disk unheard.
        durable: usize,
    },
}

fn ops(cost_max: u32) -> impl Strategy<Value = Vec<Op>> {
    let waits = prop_oneof![0..SECOND, 0..MINUTE, 0..HOUR];
    let downs = prop_oneof![0..SECOND, 0..MINUTE, 0..2 * HOUR];
    let crash = (downs, 0..3_u64, 0..DAY, 0..3_usize);
    let op = prop_oneof![
        3 => waits.prop_map(Op::Wait),
        6 => (1..=cost_max).prop_map(Op::Take),
        6 => (1..=cost_max).prop_map(Op::TakeWhenReady),
        6 => Just(Op::Reserve),
        5 => Just(Op::DiskAnswers),
        1 => crash.prop_map(|(down, underestimate, boot, durable)| Op::Crash {
            down,
            underestimate,
            boot,
            durable,
        }),
    ];
    prop::collection::vec(op, 1..120)
}

/// A reservation as the journal keeps it, with the time at which it was made.
struct Reservation {
    saved: Saved,
    block: u32,
    made_at: u64,
}

/// A node and its journal, in real time.
struct World {
    limit: Limit,
    spec: LimitSpec,
    time: u64,
    /// The monotonic clock minus real time.
    mono_ahead: i128,
    /// The last one that is durable.
    durable: Option<Reservation>,
    pending: VecDeque<Reservation>,
    grants: Vec<(u64, u32)>,
    crashed: bool,
}

impl World {
    fn new(spec: LimitSpec) -> Self {
        let start = DAY;
        let limit = fresh(spec.clone(), &at(start));
        assert!(limit.needs_reserve());
        Self {
            limit,
            spec,
            time: start,
            mono_ahead: 0,
            durable: None,
            pending: VecDeque::new(),
            grants: Vec::new(),
            crashed: false,
        }
    }

    fn now(&self) -> Now {
        let mono = i128::from(self.time) + self.mono_ahead;
        Now {
            mono: Mono(u64::try_from(mono).unwrap()),
            wall: Wall(NEW_YEAR) + Nanos(self.time),
            entropy: Entropy(0),
        }
    }

    fn take(&mut self, cost: u32) {
        let now = self.now();
        self.limit.expect_cost(cost);
        if self.limit.fits(&now, Class::Normal, Need::whole(cost)) {
            self.limit.take(&now, Class::Normal, cost);
            self.grants.push((self.time, cost));
        }
    }

    fn step(&mut self, op: Op) {
        let now = self.now();
        match op {
            Op::Wait(span) => self.time += span,
            Op::Take(cost) => self.take(cost),
            Op::TakeWhenReady(cost) => {
                let until = self.limit.until(&now, Class::Normal, Need::whole(cost));
                if let Until::At(time) = until {
                    self.time += time.since(now.mono).0;
                }
                self.take(cost);
            }
            Op::Reserve => {
                if let Some(block) = self.limit.reservation_due() {
                    let saved = self.limit.save(&now);
                    self.limit.reserve_asked(block);
                    self.pending.push_back(Reservation {
                        saved,
                        block,
                        made_at: self.time,
                    });
                }
            }
            Op::DiskAnswers => {
                if let Some(reservation) = self.pending.pop_front() {
                    self.limit.reserve_committed(reservation.block);
                    self.durable = Some(reservation);
                }
            }
            Op::Crash {
                down,
                underestimate,
                boot,
                durable,
            } => self.crash(down, underestimate, boot, durable),
        }
    }

    fn crash(&mut self, down: u64, underestimate: u64, boot: u64, durable: usize) {
        for reservation in self.pending.drain(..).take(durable) {
            self.durable = Some(reservation);
        }
        self.time += down;
        let mut unharmed = self.limit.clone();
        promise_all(&mut unharmed);
        let unharmed_now = self.now();

        self.mono_ahead = i128::from(boot) - i128::from(self.time);
        let now = self.now();
        let (spec, none) = (self.spec.clone(), Headroom::default());
        self.limit = match &self.durable {
            None => fresh(spec, &now),
            Some(Reservation {
                saved,
                block,
                made_at,
            }) => {
                let downtime = Nanos((self.time - made_at) >> underestimate);
                Limit::restore(spec, none, saved, u64::from(*block), &now, downtime)
            }
        };

        // Later lives were restored themselves, perhaps too carefully.
        let first_life = !std::mem::replace(&mut self.crashed, true);
        let mut restored = self.limit.clone();
        promise_all(&mut restored);
        for need in [1, 2, 3].map(Need::whole) {
            let wait = wait(&restored, &now, need);
            assert!(!first_life || wait >= self::wait(&unharmed, &unharmed_now, need));
        }
    }
}

/// How long `need` waits, for ever if it never fits.
fn wait(limit: &Limit, now: &Now, need: Need) -> u64 {
    match limit.until(now, Class::Normal, need) {
        Until::Now => 0,
        Until::At(time) => time.since(now.mono).0,
        Until::Released | Until::Granted | Until::Never => u64::MAX,
    }
}

fn lives(spec: LimitSpec, ops: Vec<Op>) -> Vec<(u64, u32)> {
    let mut world = World::new(spec);
    for op in ops {
        world.step(op);
    }
    world.grants
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn restart_never_sends_faster_token_bucket(
        count in 1..100_u32,
        burst in prop_oneof![3..20_u32, 3..2_000_u32],
        ops in ops(3),
    ) {
        let rate = Rate { count, per: Nanos(HOUR) };
        let grants = lives(LimitSpec::TokenBucket { rate, burst }, ops);
        for (i, first) in grants.iter().enumerate() {
            let mut sum = 0;
            for last in &grants[i..] {
                sum += u128::from(last.1);
                let accrued = u128::from(last.0 - first.0) * u128::from(count);
                prop_assert!(sum * u128::from(HOUR) <= u128::from(burst) * u128::from(HOUR) + accrued);
            }
        }
    }

    #[test]
    fn restart_never_sends_faster_leaky_bucket(
        count in 1..400_u32,
        per in prop_oneof![Just(SECOND), Just(MINUTE), Just(HOUR)],
        ops in ops(30),
    ) {
        let rate = Rate { count, per: Nanos(per) };
        let grants = lives(LimitSpec::LeakyBucket { rate }, ops);
        for (i, first) in grants.iter().enumerate() {
            let mut tokens = u64::from(first.1);
            for second in &grants[i + 1..] {
                let least = u128::from(tokens) * u128::from(per) / u128::from(count);
                prop_assert!(u128::from(second.0 - first.0) >= least);
                tokens += u64::from(second.1);
            }
        }
    }

    #[test]
    fn restart_never_sends_faster_sliding_window(
        count in prop_oneof![3..40_u32, 257..1_000_u32],
        window in prop_oneof![Just(MINUTE), Just(HOUR), Just(DAY)],
        ops in ops(3),
    ) {
        let sliding = LimitSpec::SlidingWindow { count, window: Nanos(window) };
        let grants = lives(sliding, ops);
        for (i, first) in grants.iter().enumerate() {
            let inside = grants[i..].iter().take_while(|grant| grant.0 < first.0 + window);
            prop_assert!(inside.map(|grant| grant.1).sum::<u32>() <= count);
        }
    }

    #[test]
    fn restart_never_sends_faster_calendar_window(count in 3..40_u32, hourly in any::<bool>(), ops in ops(3)) {
        let period = if hourly { HOUR } else { DAY };
        let text = format!("{count}/{}@UTC", if hourly { "h" } else { "day" });
        let grants = lives(spec(&text), ops);
        let mut used: BTreeMap<u64, u32> = BTreeMap::new();
        for (time, cost) in grants {
            *used.entry(time / period).or_default() += cost;
        }
        prop_assert!(used.values().all(|used| *used <= count));
    }
}

#[test]
fn short_buckets_start_empty_and_reserve_nothing() {
    let mut limit = full(spec("10/s burst 50"), &at(0));
    assert!(!limit.needs_reserve());
    assert!(try_take(&mut limit, &at(0), 50));
    let saved = limit.save(&at(0));
    let none = Headroom::default();
    let restored = Limit::restore(limit.spec().clone(), none, &saved, 0, &at(9), Nanos(DAY));
    assert!(!restored.fits(&at(9), Class::Critical, Need::whole(1)));
    assert!(restored.fits(&at(9 + 5 * SECOND), Class::Critical, Need::whole(50)));
}

#[test]
fn a_floor_needs_no_reservation() {
    let mut limit = fresh(spec("1000/day@UTC"), &at(0));
    limit.reserve_asked(10);
    limit.reserve_committed(10);
    assert!(limit.fits(&at(0), Class::Low, Need::whole(301)));
}

#[test]
fn a_block_by_the_far_end_outlives_a_restart() {
    let mut limit = full(spec("10/s burst 10"), &at(0));
    limit.block_until(Mono(HOUR));
    let saved = limit.save(&at(MINUTE));
    let none = Headroom::default();
    let restored =
        |downtime| Limit::restore(limit.spec().clone(), none, &saved, 0, &at(5), downtime);
    let left = restored(Nanos(MINUTE)).blocked_until(&at(5));
    assert_eq!(left, Some(Mono(5 + 58 * MINUTE)));
    assert_eq!(restored(Nanos(HOUR)).blocked_until(&at(5)), None);
}

#[test]
fn another_algorithm_never_starts_full() {
    let texts = ["10/s burst 20", "10/s spaced", "20/min", "20/h@UTC"];
    for from in texts {
        for to in texts.into_iter().filter(|to| *to != from) {
            let mut limit = full(spec(from), &at(0));
            let mut used = 0;
            while used < 20 && try_take(&mut limit, &at(0), 1) {
                used += 1;
            }
            limit.reconfigure(&at(0), spec(to));
            promise_all(&mut limit);
            let left = 20_u32.saturating_sub(used);
            let fits = |need| limit.fits(&at(0), Class::Normal, Need::whole(need));
            assert!(!fits(left + 1), "{from} to {to}");
        }
    }
}

#[test]
fn what_is_saved_is_plain_and_small() {
    let mut limit = full(spec("250/day"), &at(0));
    for minute in 0..250 {
        assert!(try_take(&mut limit, &at(minute * MINUTE), 1));
    }
    let saved = limit.save(&at(250 * MINUTE));
    let text = toml::to_string(&saved).unwrap();
    assert_eq!(toml::from_str::<Saved>(&text).unwrap(), saved);
    assert!(text.len() < 2_000, "{text}");
    let empty = Limit::owned(spec("250/day"), Headroom::default(), &at(0), Fill::Empty);
    assert!(!empty.fits(&at(DAY - 1), Class::Normal, Need::whole(1)));
}
