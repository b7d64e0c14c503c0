//! At most `slots` in flight.

use outflow_core::limit::{LimitSpec, Need, Until};
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
