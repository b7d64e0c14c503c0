use super::super::hand_made::{accepted, found, ms, sent};
use super::*;

/// Two flows wait for limit 0; of each thousand sends `second` are of the
/// second flow.
fn after(classes: [Class; 2], second: u64) -> Vec<String> {
    let mut checker = Starvation::default();
    for (flow, class) in classes.into_iter().enumerate() {
        let flow = flow as u32;
        let opened = Trace::Flow {
            flow,
            class,
            tenant: flow,
            limits: &[0],
        };
        checker.observe(ms(0), &opened);
    }
    let each = 20_000;
    for message in 0..each {
        checker.observe(ms(0), &accepted(message, 0));
        checker.observe(ms(0), &accepted(each + message, 1));
    }
    let (mut first_sent, mut second_sent) = (0, 0);
    for n in 0..each - 1 {
        let of_second = n * second / 1_000 != (n + 1) * second / 1_000;
        let message = if of_second {
            second_sent += 1;
            each + second_sent - 1
        } else {
            first_sent += 1;
            first_sent - 1
        };
        checker.observe(ms(n * 10), &sent(message, 1, &[0]));
    }
    found(&mut checker, ms(each * 10))
}

#[test]
fn a_fiftieth_for_lower_classes_and_a_fair_share_for_tenants_are_silent() {
    assert!(after([Class::High, Class::Low], 20).is_empty());
    assert!(after([Class::Normal, Class::Normal], 500).is_empty());
}

#[test]
fn a_class_that_gets_nothing_speaks() {
    let found = after([Class::High, Class::Low], 0);
    assert!(!found.is_empty());
    assert!(found[0].starts_with("low got 0 of 2"), "{found:?}");
}

#[test]
fn a_tenant_that_gets_a_tenth_speaks() {
    let found = after([Class::Normal, Class::Normal], 100);
    assert!(!found.is_empty());
    assert!(found[0].starts_with("tenant 1 got "), "{found:?}");
}

#[test]
fn who_is_held_by_a_limit_that_stands_still_is_not_starved() {
    let mut checker = Starvation::default();
    for (flow, limits) in [(0, &[0_u32][..]), (1, &[0, 1][..])] {
        let opened = Trace::Flow {
            flow,
            class: Class::Normal,
            tenant: flow,
            limits,
        };
        checker.observe(ms(0), &opened);
    }
    checker.observe(ms(0), &accepted(0, 1));
    for message in 1..10_000 {
        checker.observe(ms(message * 10), &accepted(message, 0));
        checker.observe(ms(message * 10), &sent(message, 1, &[0]));
    }
    assert!(found(&mut checker, ms(100_000)).is_empty());
}

/// Tenants 0 and 1 wait, at the nodes of `homes`, for one limit, and 20,000
/// messages are sent: of each ten at the first node nine are of the first tenant
/// and at the second node one of ten is sent.
fn of_nodes(homes: [NodeNo; 2]) -> Vec<String> {
    let mut checker = Starvation::default();
    let each = 20_000;
    for (flow, home) in homes.into_iter().enumerate() {
        let flow = flow as u32;
        let opened = Trace::Flow {
            flow,
            class: Class::Normal,
            tenant: flow,
            limits: &[0],
        };
        checker.observe(ms(0), &opened);
        for message in 0..each {
            let accepted = Trace::Accepted {
                node: home,
                message: u64::from(flow) * each + message,
                flow,
                cost: 1,
                due: Nanos::ZERO,
                expires: Nanos::MAX,
            };
            checker.observe(ms(0), &accepted);
        }
    }
    let mut next = [0, each];
    for n in 0..each - 1 {
        let of = usize::from(n % 10 == 0);
        let dispatched = Trace::Dispatched {
            node: homes[of],
            message: next[of],
            attempt: 1,
            account: 0,
            cost: 1,
            limits: &[0],
        };
        next[of] += 1;
        checker.observe(ms(n * 10), &dispatched);
    }
    found(&mut checker, ms(each * 10))
}

#[test]
fn a_node_that_is_granted_less_than_another_is_silent_and_an_unfair_one_speaks() {
    assert_eq!(of_nodes([0, 1]), Vec::<String>::new());
    for node in [0, 1] {
        let found = of_nodes([node, node]);
        assert!(found[0].starts_with("tenant 1 got "), "{found:?}");
    }
}
