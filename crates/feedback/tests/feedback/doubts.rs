//! When bounces are not believed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use outflow_core::class::Class;
use outflow_core::suppression::Reason;
use outflow_ports::suppression::{
    Suppression, SuppressionChange, SuppressionFilter, Suppressions as _,
};

use crate::world::{World, bounce, world, world_on};

#[test]
fn a_surge_is_held_back_with_what_led_to_it() {
    let world = world();
    // 1 % of 10,000 bounced over the day; now 60 of 100 do.
    *world.node.counts.lock().expect("one at a time") = (100, 10_000, 160);
    for no in 0..60 {
        let learnt = world.learner.learn(vec![bounce(no, "isp:google")]);
        learnt.expect("a disk");
        let other = world.learner.learn(vec![bounce(1_000 + no, "isp:yahoo")]);
        other.expect("a disk");
    }
    // Yahoo said nothing about attempts: counted against nothing, 50 are a surge
    // too. Of Google all are held, also those before it was doubted.
    assert_eq!(world.held("isp:google"), (60, 0));
    for no in 0..60 {
        let to = format!("{no}@example.org");
        assert_eq!(world.stops(Class::Low, &to), None, "{to}");
    }
    let alarms = world.alarms.lock().expect("one at a time").clone();
    let google = alarms.iter().filter(|it| it.destination == "isp:google");
    let google: Vec<_> = google.collect();
    let [surge] = google[..] else {
        panic!("one alarm: {alarms:?}");
    };
    assert_eq!((surge.counts.hard, surge.counts.attempts), (50, 100));
    let usual = surge.counts.usual_share().expect("a day before");
    assert!((0.010..0.012).contains(&usual), "{usual}");
    assert_eq!(surge.held, 49, "what it had taught before");
    // A person looked: they are in force, also after a start.
    let filter = SuppressionFilter {
        destination: Some("isp:google".to_owned()),
        ..SuppressionFilter::default()
    };
    let approved = world.list.change(&filter, SuppressionChange::Approve);
    assert_eq!(approved.expect("a disk").len(), 60);
    assert_eq!(
        world.stops(Class::Low, "7@example.org"),
        Some(Reason::HardBounce)
    );
    // An hour later all is calm.
    world.pass(3_600);
    let calm = world.learner.learn(vec![bounce(99, "isp:google")]);
    calm.expect("a disk");
    assert_eq!(
        world.stops(Class::Low, "99@example.org"),
        Some(Reason::HardBounce)
    );
}

#[test]
fn bounces_as_usual_are_believed() {
    let world = world();
    // 60 of 10,000 in the last quarter of an hour.
    *world.node.counts.lock().expect("one at a time") = (10_000, 400_000, 2_400);
    for no in 0..60 {
        let learnt = world.learner.learn(vec![bounce(no, "isp:google")]);
        learnt.expect("a disk");
    }
    assert_eq!(
        world.stops(Class::Low, "59@example.org"),
        Some(Reason::HardBounce)
    );
    assert!(world.alarms.lock().expect("one at a time").is_empty());
}

/// Minutes of a surge in which 10 messages are sent and all bounce, after a day
/// with 1,000 messages of which 1 % did.
fn minutes(world: &World, from: u64, to: u64) {
    for minute in from..to {
        world.pass(60);
        for no in 0..10 {
            let sent = minute * 10 + no + 1;
            let counts = (sent.min(150), 1_000 + sent, 10 + sent);
            *world.node.counts.lock().expect("one at a time") = counts;
            world.learn(bounce(sent, "isp:google"));
        }
    }
}

/// Before long what is usual over the day is the surge itself.
#[test]
fn doubt_lasts_as_long_as_the_surge() {
    let world = world();
    minutes(&world, 0, 60);
    assert_eq!(world.held("isp:google"), (600, 0));
    minutes(&world, 60, 90);
    assert_eq!(world.held("isp:google"), (900, 0));
    // After a start there is no day before at all.
    let fresh = world_on(Arc::default());
    for sent in 1..900 {
        fresh.pass(6);
        *fresh.node.counts.lock().expect("one at a time") = (sent.min(150), sent, sent);
        fresh.learn(bounce(sent, "isp:google"));
    }
    assert_eq!(fresh.held("isp:google"), (899, 0));
    for world in [&world, &fresh] {
        assert_eq!(world.alarms.lock().expect("one at a time").len(), 1);
    }
}

#[test]
fn what_is_held_is_not_approved_by_another_bounce() {
    let world = world();
    minutes(&world, 0, 10);
    assert_eq!(world.held("isp:google"), (100, 0));
    assert_eq!(world.list.held(), 100);
    // Hours later nobody doubts the destination, and nobody has looked.
    world.pass(5 * 3_600);
    *world.node.counts.lock().expect("one at a time") = (1_000, 20_000, 300);
    world.learn(bounce(7, "isp:google"));
    assert_eq!(world.held("isp:google"), (100, 0));
    assert_eq!(world.stops(Class::Low, "7@example.org"), None);
    // After a start that doubts nobody.
    let again = world_on(Arc::clone(&world.disk));
    again.learn(bounce(7, "isp:google"));
    assert_eq!(again.held("isp:google"), (100, 0));
    assert_eq!(again.stops(Class::Low, "7@example.org"), None);
    // A person is sure.
    let sure = Suppression {
        source: "api".to_owned(),
        ..bounce(7, "isp:google")
    };
    again.list.put(&[sure], None).expect("a disk");
    assert_eq!(
        again.stops(Class::Low, "7@example.org"),
        Some(Reason::HardBounce)
    );
    assert_eq!(again.list.held(), 99);
}

#[test]
fn a_disk_that_fails_once_costs_neither_hold_nor_alarm() {
    let world = world();
    *world.node.counts.lock().expect("one at a time") = (100, 10_000, 160);
    for no in 0..49 {
        world.learn(bounce(no, "isp:google"));
    }
    world.disk.fails.store(true, Ordering::SeqCst);
    let failed = world.learner.learn(vec![bounce(49, "isp:google")]);
    assert!(failed.is_err());
    world.disk.fails.store(false, Ordering::SeqCst);
    world.learn(bounce(49, "isp:google"));
    assert_eq!(world.held("isp:google"), (50, 0));
    assert_eq!(world.alarms.lock().expect("one at a time").len(), 1);
}

#[test]
fn a_node_that_does_not_answer_changes_no_verdict() {
    let world = world();
    *world.node.counts.lock().expect("one at a time") = (10_000, 400_000, 2_400);
    world.node.is_silent.store(true, Ordering::SeqCst);
    for no in 0..100 {
        world.learn(bounce(no, "isp:google"));
    }
    assert_eq!(world.held("isp:google"), (0, 100));
    // It was asked once, and is asked again ten seconds later.
    assert_eq!(world.node.asked.load(Ordering::SeqCst), 1);
    world.pass(10);
    *world.node.counts.lock().expect("one at a time") = (100, 10_000, 160);
    world.node.is_silent.store(false, Ordering::SeqCst);
    world.learn(bounce(100, "isp:google"));
    assert_eq!(world.node.asked.load(Ordering::SeqCst), 2);
    assert_eq!(world.held("isp:google"), (101, 0));
    // Doubted it stays, while it is silent again.
    world.node.is_silent.store(true, Ordering::SeqCst);
    world.pass(14 * 60);
    for no in 101..201 {
        world.learn(bounce(no, "isp:google"));
    }
    world.pass(14 * 60);
    world.learn(bounce(201, "isp:google"));
    assert_eq!(world.held("isp:google"), (202, 0));
}

#[test]
fn the_audit_has_one_line_for_a_destination_and_minute() {
    let world = world();
    for no in 0..20 {
        world.pass(1);
        world.learn(bounce(no, "isp:google"));
        world.learn(bounce(1_000 + no, "isp:yahoo"));
        // Known already: nothing to say.
        world.learn(bounce(no, "isp:google"));
    }
    assert_eq!(world.audits().len(), 2, "the first of each at once");
    world.learner.write_notes(false).expect("a disk");
    assert_eq!(world.audits().len(), 2);
    world.pass(60);
    world.learner.write_notes(false).expect("a disk");
    let audits = world.audits();
    assert_eq!(audits.len(), 4);
    let line = "suppressions.learn isp:google {\"entries\":19,\"held\":0,\"sources\":\"reply\"}";
    assert_eq!(audits[2], line);
    // At the end nothing is left out.
    world.learn(bounce(99, "isp:google"));
    world.learner.write_notes(true).expect("a disk");
    assert_eq!(world.audits().len(), 5);
}
