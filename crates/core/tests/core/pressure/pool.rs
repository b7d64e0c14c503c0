//! A pool of which one account is asked to wait.

use std::collections::BTreeMap;

use outflow_core::engine::event::Event;
use outflow_core::engine::{Engine, Settings, Start};
use outflow_core::handle::FlowId;
use outflow_core::policy::set::Policies;
use outflow_core::pressure::UnderPressure;
use outflow_core::reply::{Reply, Stage};
use outflow_core::time::{Mono, Nanos};

use crate::accounts::world::{World, account, secs};

/// Ten accounts of two a second, of which each sends one a second for two
/// minutes; then the first is asked to wait for half a minute while a thousand
/// messages wait. What each sent in that time.
fn run(under_pressure: UnderPressure) -> (World, Vec<usize>, Mono) {
    let mut world = with_ten(under_pressure);
    let began = block_the_first(&mut world, secs(30));
    world.run(secs(30), true);
    let counts = sent_by_each(&world, began, secs(30));
    (world, counts, began + secs(30))
}

fn ten(world: &mut World) -> FlowId {
    for number in 0..10 {
        world.account(account(&format!("a{number}"), 4, &["2/s burst 2"]));
    }
    world.flow("google", "acme")
}

fn with_ten(under_pressure: UnderPressure) -> World {
    let mut settings = Settings::default();
    settings.pool.under_pressure = under_pressure;
    let mut world = World::with(settings, Policies::default());
    let flow = ten(&mut world);
    for _ in 0..1_200 {
        world.queue(flow, &[1]);
        world.run(Nanos::from_millis(100), true);
    }
    world.queue(flow, &[1; 1_000]);
    world
}

/// The far end asks the first account to wait. When that was.
fn block_the_first(world: &mut World, lasts: Nanos) -> Mono {
    let index = world
        .sent
        .iter()
        .position(|it| !it.answered && it.account == "a0");
    let sent = &mut world.sent[index.unwrap()];
    sent.answered = true;
    let permit = sent.permit;
    let mut reply = Reply::said(Stage::Data, 429, "Too Many Requests");
    if let Reply::Said { retry_after, .. } = &mut reply {
        *retry_after = Some(lasts);
    }
    let began = world.now.mono;
    let session_lives = true;
    world.step(Event::Replied {
        permit,
        reply,
        session_lives,
    });
    began
}

fn sent_by_each(world: &World, began: Mono, lasts: Nanos) -> Vec<usize> {
    let by = |name: &str| {
        let sent = world.sent.iter().filter(|it| it.account == name);
        sent.filter(|it| it.at > began && it.at < began + lasts)
            .count()
    };
    (0..10).map(|number| by(&format!("a{number}"))).collect()
}

#[test]
fn a_restart_is_no_way_out() {
    let mut world = with_ten(UnderPressure::Keep);
    block_the_first(&mut world, secs(600));
    world.run(secs(30), true);
    let kept = |number: usize| {
        let key = format!("account:a{number}#kept").parse().unwrap();
        world.holds.get(&key).map_or(0, |hold| hold.per_minute)
    };
    let kept: Vec<u32> = (0..10).map(kept).collect();
    let start = Start::Again {
        counts_lost_at: None,
        limits: BTreeMap::new(),
        holds: std::mem::take(&mut world.holds),
        adapted: BTreeMap::new(),
        downtime: secs(2),
    };
    let mut again = World::new();
    again.now.wall = world.now.wall + secs(2);
    again.engine = Engine::new(Settings::default(), Policies::default(), start, &again.now);
    let flow = ten(&mut again);
    again.queue(flow, &[1; 2_000]);
    let began = again.now.mono;
    again.run(secs(60), true);
    let counts = sent_by_each(&again, began, secs(60));
    assert_eq!(counts[0], 0, "it was asked to wait");
    for (count, kept) in counts.iter().zip(kept).skip(1) {
        assert!((58..=62).contains(&kept), "{kept} in the minute before");
        let kept = kept as usize;
        assert!((kept - 2..=kept + 1).contains(count), "{count} of {kept}");
    }
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
