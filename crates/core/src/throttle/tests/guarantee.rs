//! Whatever is asked, and in whatever order: no limit grants more than it may
//! in any interval, several keys are taken together or not at all, everybody
//! who waits hears something in time, and the same questions have the same
//! answers.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{MS, World, at, spec};
use crate::class::Class;
use crate::limit::spec::LimitSpec;
use crate::policy::facet::Facet;
use crate::throttle::request::{Key, Outcome, Ticket, Verdict};

const LIMITS: [(&str, &str, u32, u64); 3] = [
    // Name, numbers, burst, nanoseconds per token.
    ("a", "100/s burst 5", 5, 10 * MS),
    ("b", "50/s burst 1", 1, 20 * MS),
    ("c", "200/s burst 10", 10, 5 * MS),
];

#[derive(Clone, Debug)]
struct Step {
    after: u64,
    class: usize,
    wait: u64,
    /// For each limit: not wanted, or how much.
    costs: [u32; 3],
}

fn step() -> impl Strategy<Value = Step> {
    let after = prop_oneof![Just(0), 0..5 * MS, 0..200 * MS];
    let wait = prop_oneof![Just(0), 0..50 * MS, Just(2_000 * MS)];
    let costs = (0..=5_u32, 0..=1_u32, 0..=10_u32);
    (after, 0..4_usize, wait, costs).prop_map(|(after, class, wait, (a, b, c))| Step {
        after,
        class,
        wait,
        costs: [a, b, c],
    })
}

/// What was granted of each limit, and when.
type Granted = [Vec<(u64, u32)>; 3];

struct Run {
    granted: Granted,
    trace: Vec<(u64, Outcome)>,
    waiting: BTreeMap<Ticket, (u64, [u32; 3])>,
    world: World,
    now: u64,
}

fn run(steps: &[Step]) -> Run {
    let specs: Vec<LimitSpec> = LIMITS.iter().map(|(_, text, ..)| spec(text)).collect();
    let mut it = Run {
        granted: Granted::default(),
        trace: Vec::new(),
        waiting: BTreeMap::new(),
        world: World::plain(),
        now: 0,
    };
    for step in steps {
        it.now += step.after;
        it.pass(it.now);
        let wants: Vec<(&str, &LimitSpec, u32)> = LIMITS
            .iter()
            .zip(&specs)
            .zip(step.costs)
            .filter(|(_, cost)| *cost > 0)
            .map(|(((name, ..), spec), cost)| (*name, spec, cost))
            .collect();
        if wants.is_empty() {
            continue;
        }
        let class = Class::ALL[step.class];
        match it.world.ask(it.now, class, step.wait, &wants) {
            Verdict::Granted(_) => it.note(it.now, step.costs),
            Verdict::Waiting(ticket) => {
                it.waiting.insert(ticket, (it.now + step.wait, step.costs));
            }
            Verdict::Refused(refusal) => assert!(refusal.retry_after.is_some()),
        }
    }
    it.pass(it.now + 10_000 * MS);
    it
}

impl Run {
    fn note(&mut self, now: u64, costs: [u32; 3]) {
        for (granted, cost) in self.granted.iter_mut().zip(costs) {
            if cost > 0 {
                granted.push((now, cost));
            }
        }
    }

    fn pass(&mut self, until: u64) {
        for (now, outcome) in self.world.run(until) {
            let (deadline, costs) = self.waiting.remove(&outcome.ticket).expect("told once");
            assert!(now <= deadline, "told too late");
            if let Verdict::Granted(_) = outcome.verdict {
                self.note(now, costs);
            }
            self.trace.push((now, outcome));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn holds_in_every_interval_and_over_all_keys(steps in prop::collection::vec(step(), 1..120)) {
        let run = run(&steps);
        prop_assert!(run.waiting.is_empty(), "somebody still waits");
        prop_assert_eq!(run.world.throttle.waiters(), 0);
        for ((name, _, burst, per_token), granted) in LIMITS.iter().zip(&run.granted) {
            for (i, (from, _)) in granted.iter().enumerate() {
                let mut sum = 0_u64;
                for (to, cost) in &granted[i..] {
                    sum += u64::from(*cost);
                    // In units of the time of one token, so that nothing is rounded.
                    let most = u64::from(*burst) * per_token + (to - from);
                    prop_assert!(sum * per_token <= most, "{} from {} to {}: {}", name, from, to, sum);
                }
            }
        }
        // What was refused took nothing: after the last grant each limit is as
        // full as its own grants leave it.
        for ((name, text, burst, per_token), granted) in LIMITS.iter().zip(&run.granted) {
            let facet = Facet::of(&spec(text));
            let key = Key { space: "", name, facet: &facet };
            let (mut level, mut last) = (u64::from(*burst) * per_token, 0);
            for (now, cost) in granted {
                level = (level + (now - last)).min(u64::from(*burst) * per_token);
                level -= u64::from(*cost) * per_token;
                last = *now;
            }
            if let Some(look) = run.world.throttle.look(&at(last), &key) {
                prop_assert_eq!(look.available, level / per_token);
            }
        }
    }

    #[test]
    fn the_same_questions_have_the_same_answers(steps in prop::collection::vec(step(), 1..80)) {
        let (one, other) = (run(&steps), run(&steps));
        prop_assert_eq!(one.trace, other.trace);
        prop_assert_eq!(one.granted, other.granted);
    }
}
