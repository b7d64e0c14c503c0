//! What is lent counts where mail is counted: both together keep to a limit.

use std::sync::Arc;

use outflow_core::class::Class;
use outflow_core::engine::event::Event;
use outflow_core::engine::lend::{Lent, Want};
use outflow_core::limit::spec::{Headroom, LimitSpec};
use outflow_core::policy::applied::Applied;
use outflow_core::policy::policy::{Policy, WhenAway};
use outflow_core::policy::set::Policies;
use outflow_core::time::Nanos;

use super::world::{World, account, secs};

/// What a borrower hears while a reservation is on its way to the disk.
const SOON: Nanos = Nanos::from_millis(5);

fn want(key: &str, limit: &str, cost: u32) -> Want {
    let applied = Applied {
        key: key.parse().unwrap(),
        spec: LimitSpec::parse(limit).unwrap(),
        headroom: Headroom::default(),
        when_away: WhenAway::Closed,
        learning: None,
    };
    Want { applied, cost }
}

impl World {
    /// Borrows, as often as it takes until all that must be on disk is.
    fn lend(&mut self, wants: &[Want]) -> Lent {
        for _ in 0..4 {
            let lent = self.lend_once(wants);
            if !matches!(lent, Lent::Refused { retry_after, .. } if retry_after == SOON) {
                return lent;
            }
        }
        self.lend_once(wants)
    }

    fn lend_once(&mut self, wants: &[Want]) -> Lent {
        let mut actions = Vec::new();
        let lent = self
            .engine
            .lend(&self.now, wants, Class::Normal, &mut actions);
        for action in actions {
            if let Some(event) = self.act(action) {
                self.step(event);
            }
        }
        self.step(Event::Woke);
        lent
    }
}

fn with_policy(matches: &str, limit: &str) -> World {
    let mut policies = Policies::default();
    policies.set_headroom(Headroom::default());
    let policy = Policy {
        limits: vec![LimitSpec::parse(limit).unwrap()],
        ..Policy::new(matches.parse().unwrap())
    };
    policies.insert(policy).unwrap();
    let mut world = World::with(Default::default(), policies);
    world.account(account("a", 100, &[]));
    world
}

fn refused(lent: Lent) -> (usize, Nanos) {
    match lent {
        Lent::Refused { by, retry_after } => (by, retry_after),
        Lent::Granted => panic!("lent what is not there"),
    }
}

#[test]
fn mail_and_borrowers_share_one_count() {
    let mut world = with_policy("tenant:acme", "1/s burst 10");
    let flow = world.flow("google", "acme");
    world.queue(flow, &[1; 4]);
    assert_eq!(world.sent.len(), 4);
    let lent = world.lend(&[want("tenant:acme", "1/s burst 10", 6)]);
    assert_eq!(lent, Lent::Granted);
    let (by, wait) = refused(world.lend(&[want("tenant:acme", "1/s burst 10", 1)]));
    assert_eq!((by, wait), (0, secs(1)));
    world.queue(flow, &[1; 3]);
    assert_eq!(world.sent.len(), 4, "all ten are gone");
    world.run(secs(4), true);
    assert_eq!(world.sent.len(), 7, "and come back at their rate");
}

#[test]
fn all_or_nothing_is_lent() {
    let mut world = with_policy("tenant:acme", "1/s burst 10");
    let both = [
        want("tenant:acme", "1/s burst 10", 1),
        want("campaign:q4", "1/s burst 2", 1),
    ];
    assert_eq!(world.lend(&both), Lent::Granted);
    assert_eq!(world.lend(&both), Lent::Granted);
    assert_eq!(refused(world.lend(&both)).0, 1, "the second has least");
    let rest = world.lend(&[want("tenant:acme", "1/s burst 10", 8)]);
    assert_eq!(rest, Lent::Granted, "the refusal took nothing");
}

#[test]
fn slots_that_were_lent_come_back() {
    let mut world = with_policy("tenant:acme", "3 concurrent");
    let flow = world.flow("google", "acme");
    let slots = |cost| [want("tenant:acme#concurrency", "3 concurrent", cost)];
    assert_eq!(world.lend(&slots(2)), Lent::Granted);
    world.queue(flow, &[1; 5]);
    assert_eq!(world.sent.len(), 1, "one slot was left");
    refused(world.lend(&slots(1)));
    let key = "tenant:acme#concurrency".parse().unwrap();
    world.engine.take_back(&world.now.clone(), &[(key, 2)]);
    world.step(Event::Woke);
    assert_eq!(world.sent.len(), 3, "whoever waits is served");
}

#[test]
fn a_quota_is_lent_once_it_is_on_disk() {
    let mut world = World::new();
    let day = [want("tenant:acme", "100/day", 1)];
    // The first asks for a reservation, which this world writes at once.
    let mut granted = 0;
    for _ in 0..300 {
        granted += u32::from(world.lend(&day) == Lent::Granted);
    }
    assert_eq!(granted, 100, "no more and no less");
    let (_, wait) = refused(world.lend(&day));
    assert!(wait > secs(80_000), "{wait}");
}

#[test]
fn an_accounts_limit_is_lent_too() {
    let mut world = World::new();
    world.account(account("a", 100, &["1/s burst 5"]));
    let flow = world.flow("google", "acme");
    let lent = world.lend(&[want("account:a", "1/s burst 5", 3)]);
    assert_eq!(lent, Lent::Granted);
    world.queue(flow, &[1; 3]);
    assert_eq!(
        world.sent.len(),
        1,
        "of two that were left one is kept for the urgent"
    );
}

#[test]
fn what_can_never_fit_is_said_so() {
    let mut world = World::new();
    let (_, wait) = refused(world.lend(&[want("tenant:acme", "1/s burst 5", 6)]));
    assert_eq!(wait, Nanos::MAX);
}

#[test]
fn a_pause_holds_for_mail_and_borrowers() {
    let mut world = with_policy("tenant:acme", "10/s burst 10");
    let flow = world.flow("google", "acme");
    world.queue(flow, &[1]);
    world.reply_all();
    let key = Arc::new("tenant:acme".parse().unwrap());
    let lasts = secs(5);
    world.step(Event::Paused { key, lasts });
    world.queue(flow, &[1; 3]);
    assert_eq!(world.sent.len(), 1, "nothing during the pause");
    let (_, wait) = refused(world.lend(&[want("tenant:acme", "10/s burst 10", 1)]));
    assert_eq!(wait, lasts);
    world.run(secs(4), true);
    assert_eq!(world.sent.len(), 1);
    world.run(secs(2), true);
    assert_eq!(world.sent.len(), 4);
    let key = Arc::new("account:a".parse().unwrap());
    world.step(Event::Paused { key, lasts });
    world.queue(flow, &[1]);
    world.run(secs(4), true);
    assert_eq!(world.sent.len(), 4, "the account is left alone");
    world.run(secs(2), true);
    assert_eq!(world.sent.len(), 5);
}
