//! How many requests at once, found from latency by a whole engine.

use outflow_core::engine::Settings;
use outflow_core::policy::set::Policies;
use outflow_core::time::{Mono, Nanos};

use crate::accounts::world::{World, account, secs};

/// A far end that works on `workers` messages at once, 50 ms each, with a long
/// queue before an account of 500 slots. The most that was in flight in each
/// second.
fn run(adapts: bool, workers: usize, limits: &[&str]) -> Vec<usize> {
    let mut settings = Settings::default();
    settings.pool.adapt_concurrency = adapts;
    let mut world = World::with(settings, Policies::default());
    world.account(account("main", 500, limits));
    let flow = world.flow("google", "acme");
    let mut free = vec![Mono(0); workers];
    let mut done: Vec<(Mono, usize)> = Vec::new();
    let mut known = 0;
    let mut most = vec![0; 40];
    let end = Mono(0) + secs(most.len() as u64);
    while world.now.mono < end {
        if known == world.sent.len() {
            world.queue(flow, &[1; 200]);
        }
        // The worker that is free first takes the next one.
        for index in known..world.sent.len() {
            let worker = free.iter_mut().min().unwrap();
            *worker = (*worker).max(world.sent[index].at) + Nanos::from_millis(50);
            done.push((*worker, index));
        }
        known = world.sent.len();
        let second = (world.now.mono.0 / 1_000_000_000) as usize;
        if let Some(most) = most.get_mut(second) {
            *most = world.in_flight().max(*most);
        }
        done.sort_unstable_by(|a, b| b.cmp(a));
        let (at, index) = done.pop().unwrap();
        let passed = at.since(world.now.mono);
        world.now.mono = world.now.mono + passed;
        world.now.wall = world.now.wall + passed;
        world.reply(index);
    }
    most
}

#[test]
fn an_account_without_a_published_limit_finds_the_knee() {
    let most = run(true, 30, &[]);
    let late = &most[20..];
    assert!(
        late.iter().all(|&count| (27..=66).contains(&count)),
        "{most:?}"
    );
}

#[test]
fn it_does_so_only_if_that_is_set_and_no_limit_says_it() {
    assert!(run(false, 30, &[])[20..].iter().all(|&count| count > 150));
    let said = run(true, 30, &["120 concurrent"]);
    assert!(said[20..].iter().all(|&count| count == 120), "{said:?}");
}
