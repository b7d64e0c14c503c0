//! A pool of which one account is asked to wait.

use outflow_core::engine::Settings;
use outflow_core::engine::event::Event;
use outflow_core::policy::set::Policies;
use outflow_core::pressure::UnderPressure;
use outflow_core::reply::{Reply, Stage};
use outflow_core::time::{Mono, Nanos};

use crate::accounts::world::{World, account, secs};

/// Ten accounts of two a second, of which each sends one a second for two
/// minutes; then the first is asked to wait for half a minute while a thousand
/// messages wait. What each sent in that time.
fn run(under_pressure: UnderPressure) -> (World, Vec<usize>, Mono) {
    let mut settings = Settings::default();
    settings.pool.under_pressure = under_pressure;
    let mut world = World::with(settings, Policies::default());
    for number in 0..10 {
        world.account(account(&format!("a{number}"), 4, &["2/s burst 2"]));
    }
    let flow = world.flow("google", "acme");
    for _ in 0..1_200 {
        world.queue(flow, &[1]);
        world.run(Nanos::from_millis(100), true);
    }
    world.queue(flow, &[1; 1_000]);
    let index = world
        .sent
        .iter()
        .position(|it| !it.answered && it.account == "a0");
    let sent = &mut world.sent[index.unwrap()];
    sent.answered = true;
    let permit = sent.permit;
    let mut reply = Reply::said(Stage::Data, 429, "Too Many Requests");
    if let Reply::Said { retry_after, .. } = &mut reply {
        *retry_after = Some(secs(30));
    }
    let began = world.now.mono;
    let session_lives = true;
    world.step(Event::Replied {
        permit,
        reply,
        session_lives,
    });
    world.run(secs(30), true);
    let end = began + secs(30);
    let by = |name: &str| {
        let sent = world.sent.iter().filter(|it| it.account == name);
        sent.filter(|it| it.at > began && it.at < end).count()
    };
    let counts = (0..10).map(|number| by(&format!("a{number}"))).collect();
    (world, counts, end)
}

#[test]
fn the_others_keep_their_rate_and_the_one_waits_exactly_that_long() {
    let (mut world, counts, end) = run(UnderPressure::Keep);
    assert_eq!(counts[0], 0, "it was asked to wait");
    for count in &counts[1..] {
        assert!((29..=31).contains(count), "{counts:?}");
    }
    world.run(secs(10), true);
    let first = world
        .sent
        .iter()
        .find(|it| it.account == "a0" && it.at >= end);
    assert_eq!(first.unwrap().at, end, "not later either");
    // With nobody blocked all may do what they may again.
    let later = |name: &str| {
        let sent = world.sent.iter().filter(|it| it.account == name);
        sent.filter(|it| it.at >= end + secs(5)).count()
    };
    for number in 0..10 {
        let count = later(&format!("a{number}"));
        assert!((9..=12).contains(&count), "{number}: {count}");
    }
}

#[test]
fn they_fill_up_to_their_limit_if_that_is_set() {
    let (_, counts, _) = run(UnderPressure::Fill);
    assert_eq!(counts[0], 0);
    for count in &counts[1..] {
        assert!((59..=63).contains(count), "{counts:?}");
    }
}

#[test]
fn a_message_need_not_wait_for_its_account_if_there_is_another() {
    for (accounts, retried) in [(1, false), (2, true)] {
        let mut world = World::new();
        for number in 0..accounts {
            world.account(account(&format!("a{number}"), 4, &[]));
        }
        let flow = world.flow("google", "acme");
        world.queue(flow, &[1]);
        let permit = world.sent[0].permit;
        world.sent[0].answered = true;
        let mut reply = Reply::said(Stage::Data, 429, "Too Many Requests");
        if let Reply::Said { retry_after, .. } = &mut reply {
            *retry_after = Some(secs(86_400));
        }
        let session_lives = true;
        world.step(Event::Replied {
            permit,
            reply,
            session_lives,
        });
        let until = world.deferred.pop().unwrap().since(world.now.wall);
        assert_eq!(until < secs(600), retried, "{until}");
    }
}
