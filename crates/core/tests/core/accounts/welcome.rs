//! Far ends that want fewer connections, or shorter ones, and say so.

use super::world::{World, secs};
use outflow_core::account::AccountSpec;
use outflow_core::engine::event::Event;
use outflow_core::handle::{FlowId, SessionRef};
use outflow_core::policy::key::LimitKey;
use outflow_core::reply::{Reply, Stage};
use outflow_core::tally::{Counter, Window};

const TOO_MANY: &str = "4.7.0 Too many connections from your host";

/// A server that lets so many in, and takes so many messages from each.
struct FarEnd {
    most: usize,
    messages: u32,
    open: Vec<(SessionRef, u32)>,
    refused: usize,
    too_long: usize,
    seen: usize,
}

impl FarEnd {
    const fn new(most: usize, messages: u32) -> Self {
        Self {
            most,
            messages,
            open: Vec::new(),
            refused: 0,
            too_long: 0,
            seen: 0,
        }
    }

    /// Answers all that waits for an answer, then what follows from it.
    fn serve(&mut self, world: &mut World) {
        loop {
            let closed: Vec<SessionRef> = world.closed.drain(..).map(|(_, it)| it).collect();
            self.open.retain(|(session, _)| !closed.contains(session));
            if let Some(&(_, session)) = world.opened.get(self.seen) {
                self.seen += 1;
                self.greet(world, session);
            } else if let Some(index) = world.sent.iter().position(|sent| !sent.answered) {
                self.take(world, index);
            } else {
                return;
            }
        }
    }

    fn greet(&mut self, world: &mut World, session: SessionRef) {
        let event = if self.open.len() < self.most {
            self.open.push((session, 0));
            Event::SessionReady { session }
        } else {
            self.refused += 1;
            let reply = Box::new(Reply::said(Stage::Greeting, 421, TOO_MANY));
            Event::SessionRefused { session, reply }
        };
        world.step(event);
    }

    fn take(&mut self, world: &mut World, index: usize) {
        let session = world.sent[index].session;
        let link = self.open.iter_mut().find(|(it, _)| *it == session).unwrap();
        link.1 += 1;
        if link.1 <= self.messages {
            return world.reply(index);
        }
        self.too_long += 1;
        self.open.retain(|(it, _)| *it != session);
        let text = "4.7.0 Too many messages on this connection, reconnect";
        world.answer(index, Reply::said(Stage::Sender, 421, text), false);
    }
}

fn world(messages: usize) -> (World, FlowId) {
    let mut world = World::new();
    world.connects = false;
    let mut account = AccountSpec::new("a");
    account.sessions.max_connections = 12;
    account.sessions.per_destination = 10;
    account.sessions.idle_timeout = secs(100_000);
    world.account(account);
    let flow = world.flow("google", "acme");
    world.queue(flow, &vec![1; messages]);
    (world, flow)
}

#[test]
fn no_more_connections_are_opened_than_were_welcome() {
    let (mut world, flow) = world(2_000);
    let mut far = FarEnd::new(3, u32::MAX);
    for _ in 0..20 {
        far.serve(&mut world);
        world.run(secs(1), false);
    }
    far.serve(&mut world);
    assert_eq!(world.sent.len(), 2_000, "what is open goes on");
    assert!(
        (1..=10).contains(&far.refused),
        "one after the other: {}",
        far.refused
    );
    let lanes = world.engine.lanes(&world.now);
    assert_eq!(lanes[0].sessions_welcome, Some(3));
    // One more is tried an hour later, not before.
    let refused = far.refused;
    for hour in [3_300, 600] {
        world.run(secs(hour), false);
        world.queue(flow, &[1; 2_000]);
        for _ in 0..5 {
            far.serve(&mut world);
            world.run(secs(1), false);
        }
        let more = far.refused - refused;
        assert_eq!(more, usize::from(hour == 600), "after {hour} s more");
    }
    far.serve(&mut world);
    assert_eq!(world.sent.len(), 6_000);
}

#[test]
fn connections_are_closed_before_they_have_carried_too_much() {
    let (mut world, _) = world(3_000);
    let mut far = FarEnd::new(100, 20);
    for _ in 0..200 {
        far.serve(&mut world);
        world.run(secs(10), false);
    }
    far.serve(&mut world);
    let delivered = world.sent.len() - far.too_long;
    assert_eq!(
        delivered,
        3_000 - far.too_long,
        "the refused wait for later"
    );
    assert!(
        (1..=10).contains(&far.too_long),
        "as many as were open: {}",
        far.too_long
    );
}

#[test]
fn a_refusal_with_nothing_open_is_a_failed_connect() {
    let (mut world, _) = world(5);
    let mut far = FarEnd::new(0, 1);
    for _ in 0..60 {
        far.serve(&mut world);
        world.run(secs(1), false);
    }
    // It backs off, and does not conclude that one is too many for an hour.
    assert!((3..30).contains(&far.refused), "{}", far.refused);
    far.most = 100;
    for _ in 0..600 {
        far.serve(&mut world);
        world.run(secs(1), false);
    }
    assert_eq!(world.sent.len(), 5);
    let lanes = world.engine.lanes(&world.now);
    assert!(lanes.iter().all(|lane| lane.sessions_welcome.is_none()));
}

/// A block that is said at the door counts like one that a message is told.
#[test]
fn a_block_at_the_door_stops_the_account_there() {
    let (mut world, _) = world(50);
    let mut opened = 0;
    for _ in 0..3_600 {
        while let Some(&(_, session)) = world.opened.get(opened) {
            opened += 1;
            let text = "5.7.1 Service unavailable; client host [192.0.2.1] blocked using \
                        zen.spamhaus.org";
            let reply = Box::new(Reply::said(Stage::Greeting, 554, text));
            world.step(Event::SessionRefused { session, reply });
        }
        world.run(secs(1), false);
    }
    let views = world.engine.limit_views(&world.now);
    let learnt = views.iter().find_map(|view| view.learnt.as_ref());
    let learnt = learnt.expect("it is learnt of");
    assert!(learnt.mode.is_stop(), "{}", learnt.sentence);
    // It asks again now and then, more rarely than after a mere failure.
    assert!((2..30).contains(&opened), "{opened} connects in an hour");
}

/// Nobody's message was given back: the door was shut to all of them.
#[test]
fn a_door_that_is_shut_for_good_bounces_nobody() {
    let (mut world, _) = world(5);
    let mut opened = 0;
    for _ in 0..60 {
        while let Some(&(_, session)) = world.opened.get(opened) {
            opened += 1;
            let text = "mx.example.com does not accept mail";
            let reply = Box::new(Reply::said(Stage::Greeting, 521, text));
            world.step(Event::SessionRefused { session, reply });
        }
        world.run(secs(1), false);
    }
    let key: LimitKey = "isp:google".parse().unwrap();
    let tally = world.engine.tally(&key).expect("it was counted");
    let count = |counter| tally.count(world.now.mono, Window::FiveMinutes, counter);
    assert!(count(Counter::Deferred) > 0);
    assert_eq!(count(Counter::Bounced), 0);
}
