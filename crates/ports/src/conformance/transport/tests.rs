//! The suite passes a transport that keeps the contract, and finds out those
//! that do not.

use std::collections::{BTreeMap, BTreeSet};

use outflow_core::account::AccountSpec;
use outflow_core::destination::Destination;
use outflow_core::engine::event::Event;
use outflow_core::entropy::Entropy;
use outflow_core::handle::SessionRef;
use outflow_core::reply::{Reply, Stage};
use outflow_core::time::{Mono, Nanos, Now, Wall};

use super::{Harness, exercise, exercise_one};
use crate::transport::{Transport, TransportWork};

const LATENCY: Nanos = Nanos::from_millis(3);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    RepliesTwice,
    ForgetsClosed,
    AnswersClose,
    SaysNever,
}

/// A transport that takes everything.
struct Taker {
    flaw: Flaw,
    mono: Mono,
    open: BTreeSet<SessionRef>,
    coming: BTreeMap<(Mono, usize), Event>,
    count: usize,
}

impl Taker {
    const fn new(flaw: Flaw) -> Self {
        Self {
            flaw,
            mono: Mono(0),
            open: BTreeSet::new(),
            coming: BTreeMap::new(),
            count: 0,
        }
    }

    fn say(&mut self, now: &Now, event: Event) {
        self.count += 1;
        self.coming.insert((now.mono + LATENCY, self.count), event);
    }
}

impl Transport for Taker {
    fn submit(&mut self, now: &Now, work: TransportWork<'_>) {
        match work {
            TransportWork::Open {
                session,
                destination,
                ..
            } => {
                if destination.name.as_str() == "nowhere" {
                    self.say(now, Event::SessionClosed { session });
                } else {
                    self.open.insert(session);
                    self.say(now, Event::SessionReady { session });
                }
            }
            TransportWork::Close { session } => {
                self.open.remove(&session);
                if self.flaw == Flaw::AnswersClose {
                    self.say(now, Event::SessionClosed { session });
                }
            }
            TransportWork::Deliver { delivery, .. } => {
                let is_open = self.open.contains(&delivery.session);
                if !is_open && self.flaw == Flaw::ForgetsClosed {
                    return;
                }
                let times = if self.flaw == Flaw::RepliesTwice {
                    2
                } else {
                    1
                };
                for _ in 0..times {
                    let reply = if is_open {
                        Reply::accepted()
                    } else {
                        Reply::Network {
                            stage: Stage::Connect,
                            text: "closed".into(),
                        }
                    };
                    let event = Event::Replied {
                        permit: delivery.permit,
                        reply,
                        session_lives: is_open,
                    };
                    self.say(now, event);
                }
            }
        }
    }

    fn complete(&mut self, now: &Now, done: &mut Vec<Event>) {
        while let Some(first) = self.coming.first_entry() {
            if first.key().0 > now.mono {
                break;
            }
            done.push(first.remove());
        }
    }

    fn next_completion(&self) -> Mono {
        match self.coming.first_key_value() {
            Some(((at, _), _)) if self.flaw != Flaw::SaysNever => *at,
            _ => Mono::NEVER,
        }
    }
}

impl Harness for Taker {
    type Transport = Self;

    fn transport(&mut self) -> &mut Self {
        self
    }

    fn now(&self) -> Now {
        Now {
            mono: self.mono,
            wall: Wall(0) + Nanos(self.mono.0),
            entropy: Entropy(0),
        }
    }

    fn advance(&mut self, to: Mono) {
        self.mono = self.mono.max(to);
    }

    fn account(&self) -> AccountSpec {
        AccountSpec::new("a")
    }

    fn destination(&self) -> Destination {
        Destination::isp("somewhere")
    }

    fn dead_end(&self) -> Option<Destination> {
        Some(Destination::isp("nowhere"))
    }
}

fn exercise_flaw(case: &str, flaw: Flaw) {
    assert!(exercise_one(case, || Taker::new(flaw)), "no such case");
}

#[test]
fn a_transport_that_keeps_the_contract() {
    exercise(|| Taker::new(Flaw::None));
}

#[test]
#[should_panic(expected = "a delivery has several replies")]
fn replying_twice_is_found_out() {
    exercise_flaw("a delivery has one reply", Flaw::RepliesTwice);
}

#[test]
#[should_panic(expected = "a delivery has no reply")]
fn a_lost_delivery_is_found_out() {
    exercise_flaw("a closed session still replies", Flaw::ForgetsClosed);
}

#[test]
#[should_panic(expected = "closing is answered")]
fn an_answered_close_is_found_out() {
    exercise_flaw("closing is not answered", Flaw::AnswersClose);
}

#[test]
#[should_panic(expected = "something comes unforetold")]
fn a_false_forecast_is_found_out() {
    exercise_flaw("an open is answered once", Flaw::SaysNever);
}
