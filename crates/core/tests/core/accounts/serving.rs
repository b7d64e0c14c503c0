//! Whom an account serves: tenants of its own, and pauses at a destination.

use super::world::{World, account, secs};
use outflow_core::account::AccountSpec;
use outflow_core::engine::command::{Command, PauseId};
use outflow_core::engine::event::Event;
use outflow_core::name::Name;
use outflow_core::policy::matcher::Match;

fn kept_for(tenant: &str, mut spec: AccountSpec) -> AccountSpec {
    spec.tenant = Some(Name::from(tenant));
    spec
}

#[test]
fn an_account_of_a_tenant_serves_nobody_else() {
    let mut world = World::new();
    let (acme, beta) = (world.flow("google", "acme"), world.flow("google", "beta"));
    world.account(kept_for("acme", account("own", 2, &[])));
    world.queue(beta, &[1; 5]);
    assert_eq!(world.sent.len(), 0, "there is no account for it");
    world.account(account("shared", 2, &[]));
    world.queue(acme, &[1; 20]);
    world.reply_all();
    assert_eq!(world.sent.len(), 25);
    assert_eq!(world.senders_of(beta), ["shared"]);
    assert_eq!(world.senders_of(acme), ["own", "shared"]);

    world.remove("own");
    world.queue(acme, &[1]);
    assert_eq!(world.sent.last().unwrap().account, "shared");
    // An account that is kept for another tenant from now on.
    world.account(kept_for("beta", account("shared", 2, &[])));
    world.queue(acme, &[1; 4]);
    world.queue(beta, &[1; 4]);
    world.reply_all();
    assert_eq!(world.sent.len(), 30);
    world.account(account("third", 2, &[]));
    world.reply_all();
    assert_eq!(world.sent.len(), 34);
    assert_eq!(world.senders_of(acme), ["own", "shared", "third"]);
}

#[test]
fn lanes_of_one_destination_share_its_cap_and_its_limits() {
    let mut world = World::new();
    let mut shared = account("shared", 10, &[]);
    shared.sessions.per_destination = 3;
    world.account(shared);
    let (acme, beta) = (world.flow("google", "acme"), world.flow("google", "beta"));
    world.queue(beta, &[1; 10]);
    world.account(kept_for("acme", account("own", 1, &[])));
    world.queue(acme, &[1; 10]);
    let by_shared = |world: &World| {
        let shared = world.sent.iter().filter(|sent| sent.account == "shared");
        shared.filter(|sent| !sent.answered).count()
    };
    assert_eq!((by_shared(&world), world.in_flight()), (3, 4));
    let mut most = 0;
    while let Some(index) = world.sent.iter().position(|sent| !sent.answered) {
        world.reply(index);
        most = most.max(by_shared(&world));
    }
    assert_eq!((most, world.sent.len()), (3, 20));
}

#[test]
fn a_pause_of_an_account_at_a_destination_holds_just_that() {
    let mut world = World::new();
    world.account(account("a", 2, &[]));
    world.account(account("b", 2, &[]));
    let (google, yahoo) = (world.flow("google", "acme"), world.flow("yahoo", "acme"));
    let id = PauseId(1);
    world.step(Event::Command(Command::Pause {
        id,
        matches: Match::from_pairs([("account", "a"), ("isp", "google")]).unwrap(),
        until: None,
    }));
    world.queue(google, &[1; 10]);
    world.queue(yahoo, &[1; 10]);
    world.reply_all();
    assert_eq!(world.senders_of(google), ["b"]);
    assert_eq!(world.senders_of(yahoo), ["a", "b"]);
    // It holds at lanes and accounts that come later, too.
    world.remove("a");
    world.account(account("a", 2, &[]));
    world.queue(google, &[1; 10]);
    world.reply_all();
    assert_eq!(world.senders_of(google), ["b"]);
    world.step(Event::Command(Command::Resume { id }));
    world.queue(google, &[1; 10]);
    world.run(secs(1), true);
    assert_eq!(world.senders_of(google), ["a", "b"]);
}
