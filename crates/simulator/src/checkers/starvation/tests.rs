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
