//! At most `slots` in flight.

use outflow_core::limit::spec::Headroom;
use outflow_core::limit::{Limit, LimitSpec, Need, Until};
use proptest::prelude::*;

use super::{at, cases, full, try_take, until_is_exact};

#[derive(Clone, Debug)]
enum Op {
    Take(u32),
    Release(usize),
    Change(u32),
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn at_most_slots_in_flight(
        slots in 1..20_u32,
        ops in prop::collection::vec(
            prop_oneof![
                6 => (1..5_u32).prop_map(Op::Take),
                5 => any::<usize>().prop_map(Op::Release),
                1 => (1..20_u32).prop_map(Op::Change),
            ],
            1..100,
        ),
    ) {
        let mut limit = full(LimitSpec::Concurrency { slots }, &at(0));
        let mut slots = slots;
        let mut held: Vec<u32> = Vec::new();
        for op in ops {
            match op {
                Op::Take(cost) => {
                    let until = until_is_exact(&limit, &at(0), Need::whole(cost));
                    let in_flight: u32 = held.iter().sum();
                    let expected = match () {
                        () if cost > slots => Until::Never,
                        () if in_flight + cost > slots => Until::Released,
                        () => Until::Now,
                    };
                    prop_assert_eq!(until, expected);
                    if try_take(&mut limit, &at(0), cost) {
                        held.push(cost);
                        prop_assert!(held.iter().sum::<u32>() <= slots);
                    }
                }
                Op::Release(which) if !held.is_empty() => {
                    let which = which % held.len();
                    limit.release(held.swap_remove(which));
                }
                Op::Release(_) => {}
                Op::Change(changed) => {
                    limit.reconfigure(&at(0), LimitSpec::Concurrency { slots: changed });
                    slots = changed;
                }
            }
            prop_assert_eq!(limit.is_idle(&at(0)), held.is_empty());
        }
    }
}

/// A fleet's slots: how many fewer a node may hold, its ledger says. Until then
/// nothing starts, whatever it held before.
#[test]
fn fewer_slots_of_a_fleet_count_at_once() {
    let now = at(0);
    let mut limit = Limit::leased(LimitSpec::Concurrency { slots: 12 }, Headroom::default());
    limit.hold(12, at(3_000).mono);
    for _ in 0..10 {
        assert!(try_take(&mut limit, &now, 1));
    }
    limit.reconfigure(&now, LimitSpec::Concurrency { slots: 5 });
    limit.release(1);
    assert!(!try_take(&mut limit, &now, 1), "nine are in flight");
    limit.hold(5, at(3_000).mono);
    assert!(!try_take(&mut limit, &now, 1), "nine are in flight");
    for _ in 0..5 {
        limit.release(1);
    }
    assert!(try_take(&mut limit, &now, 1), "four were");
    assert!(!try_take(&mut limit, &now, 1));
    limit.reconfigure(&now, LimitSpec::Concurrency { slots: 9 });
    assert!(!try_take(&mut limit, &now, 1), "more are not held yet");
}
