//! How a node ends: in good order, too late, or in a panic.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use outflow_core::engine::event::Event;
use outflow_core::message::{Seq, State};
use outflow_core::time::{Mono, Nanos, Now};
use outflow_ports::control::Control;
use outflow_ports::intake::{Intake, Refused};
use outflow_ports::query::Query;
use outflow_ports::store::Store;
use outflow_ports::transport::{Transport, TransportWork};
use outflow_simulator::memory::store::Faults;
use outflow_transport_sandbox::{Answer, Behaviour, Failure, Latency};

use super::seat::{Answered, PATIENCE, Seat, account, answer, ask, settled, start, submission};

#[test]
fn a_shutdown_under_load_loses_nothing() {
    let seat = Seat::new(&[]);
    seat.behave(Behaviour {
        latency: Latency::about(Nanos::from_millis(5)),
        ..Behaviour::default()
    });
    let (sender, answers) = channel::<Answered>();
    let closed = AtomicBool::new(false);
    let mut submitted = 0;
    thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|_| {
                let (handle, sender, closed) = (seat.handle.clone(), sender.clone(), &closed);
                scope.spawn(move || {
                    let mut batches = 0_usize;
                    while !closed.load(Ordering::Relaxed) {
                        let sender = sender.clone();
                        let then = Box::new(move |answer| drop(sender.send(answer)));
                        handle.submit(vec![submission(); 5], then);
                        batches += 1;
                        // One answer each, so that nobody floods the machine.
                        while batches > 2_000 && !closed.load(Ordering::Relaxed) {
                            thread::yield_now();
                        }
                    }
                    batches
                })
            })
            .collect();
        seat.until("many are delivered", |seat| seat.taken() >= 500);
        seat.handle.shut_down(Nanos::from_secs(60));
        let refused = ask(|then| seat.handle.submit(vec![submission()], then));
        assert_eq!(refused.unwrap_err(), Refused::Closing);
        closed.store(true, Ordering::Relaxed);
        for worker in workers {
            submitted += worker.join().unwrap();
        }
    });
    drop(sender);
    let mut end = seat.end();
    assert!(end.settled);
    let settled = settled(&mut end);
    let mut given: BTreeSet<Seq> = BTreeSet::new();
    for _ in 0..submitted {
        match answers.recv_timeout(PATIENCE).unwrap() {
            Ok(batch) => given.extend(batch.iter().map(|taken| taken.unwrap().seq)),
            Err(refused) => assert_eq!(refused, Refused::Closing),
        }
    }
    assert!(answers.recv().is_err(), "answered twice");
    for seq in given {
        let waits = end.ports.store.find(seq).is_some();
        match settled.get(&seq).map(Vec::as_slice) {
            Some([State::Delivered]) => assert!(!waits),
            None => assert!(waits, "{seq:?} is lost"),
            Some(other) => panic!("{seq:?} became {other:?}"),
        }
    }
}

#[test]
fn a_shutdown_does_not_wait_for_ever() {
    let seat = Seat::new(&[]);
    seat.behave(Behaviour {
        failures: vec![Failure {
            permille: 1_000,
            answer: Answer::Silence {
                after: Nanos::from_secs(3_600),
            },
        }],
        ..Behaviour::default()
    });
    let seq = seat.submit(1)[0];
    seat.until("it is on its way", |seat| {
        seat.state(seq) == Some(State::Sending)
    });
    seat.handle.shut_down(Nanos::from_millis(50));
    let end = seat.thread.join().unwrap();
    assert!(!end.settled);
    assert!(
        end.ports.store.find(seq).is_some(),
        "the next start finds it"
    );
    // Whoever comes too late hears so, or nothing.
    let refused = ask(|then| seat.handle.submit(vec![submission()], then));
    assert_eq!(refused.unwrap_err(), Refused::Closing);
    let nothing = answer(|then| seat.handle.message(seq, then));
    assert!(nothing.recv_timeout(PATIENCE).is_err());
}

#[test]
fn a_node_that_nobody_can_reach_ends() {
    let seat = Seat::new(&[]);
    seat.submit(3);
    let Seat { handle, thread, .. } = seat;
    drop(handle);
    thread.join().unwrap();
}

/// A transport with a bug.
#[derive(Debug)]
struct Bug;

impl Transport for Bug {
    fn submit(&mut self, _: &Now, _: TransportWork<'_>) {
        panic!("a bug, on purpose");
    }

    fn complete(&mut self, _: &Now, _: &mut Vec<Event>) {}

    fn next_completion(&self) -> Mono {
        Mono::NEVER
    }
}

#[test]
fn a_panic_reaches_whoever_joins_and_callers_are_answered() {
    let (handle, thread) = start(Bug, Faults::default());
    ask(|then| handle.submit(vec![submission()], then)).unwrap();
    handle.set_account(account(&[]));
    let panic = thread.join().unwrap_err();
    let said = panic.downcast_ref::<&str>().unwrap();
    assert_eq!(*said, "a bug, on purpose");
    let refused = ask(|then| handle.submit(vec![submission()], then));
    assert_eq!(refused.unwrap_err(), Refused::Closing);
}
