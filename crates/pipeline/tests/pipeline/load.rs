//! Many callers at once.

use std::collections::BTreeSet;
use std::sync::mpsc::channel;
use std::thread;

use outflow_core::message::{Seq, State};
use outflow_core::time::Nanos;
use outflow_ports::intake::{Intake, Refused};
use outflow_simulator::memory::store::Faults;
use outflow_transport_sandbox::{Behaviour, Latency, Sandbox, Settings};

use super::seat::{Answered, PATIENCE, Seat, account, ask, settled, start, submission};
use outflow_ports::control::Control;

#[test]
fn what_eight_threads_submit_is_answered_once_and_delivered_once() {
    const THREADS: usize = 8;
    const BATCHES: usize = 125;
    const BATCH: usize = 10;
    let seat = Seat::new(&[]);
    seat.behave(Behaviour {
        latency: Latency::about(Nanos::from_millis(2)),
        ..Behaviour::default()
    });
    let (sender, answers) = channel::<Answered>();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let (handle, sender) = (seat.handle.clone(), sender.clone());
            scope.spawn(move || {
                for _ in 0..BATCHES {
                    let batch = (0..BATCH).map(|_| submission()).collect();
                    let sender = sender.clone();
                    let then = Box::new(move |answer| drop(sender.send(answer)));
                    handle.submit(batch, then);
                }
            });
        }
    });
    drop(sender);
    let mut seqs: BTreeSet<Seq> = BTreeSet::new();
    for _ in 0..THREADS * BATCHES {
        let given = answers.recv_timeout(PATIENCE).unwrap().unwrap();
        assert_eq!(given.len(), BATCH);
        for given in given.into_iter().map(Result::unwrap) {
            assert!(!given.known && seqs.insert(given.seq), "given twice");
        }
    }
    assert!(answers.recv_timeout(PATIENCE).is_err(), "answered twice");
    assert_eq!(seqs.len(), THREADS * BATCHES * BATCH);
    let all = seqs.len() as u64;
    seat.until("all are delivered", |seat| seat.taken() == all);
    let sandbox = seat.sandbox.clone();
    let mut end = seat.end();
    assert!(end.settled);
    let settled = settled(&mut end);
    assert_eq!(settled.keys().copied().collect::<BTreeSet<_>>(), seqs);
    assert!(settled.values().all(|states| *states == [State::Delivered]));
    let taken: u64 = sandbox.counts().values().map(|counts| counts.taken).sum();
    assert_eq!(taken, all, "delivered twice");
}

#[test]
fn too_much_at_once_is_refused_on_the_spot() {
    let seat = Seat::new(&[]);
    let batch = vec![submission(); 100_001];
    let answer = ask(|then| seat.handle.submit(batch, then));
    assert_eq!(answer.unwrap_err(), Refused::Busy);
    // What was refused weighs nothing any more.
    assert_eq!(seat.submit(10).len(), 10);
    seat.end();
}

#[test]
fn a_disk_that_does_not_take_messages_says_so_to_each_caller() {
    let faults = Faults {
        fail_permille: 1_000,
        ..Faults::default()
    };
    let (handle, thread) = start(Sandbox::new(Settings::default()), faults);
    handle.set_account(account(&[]));
    for _ in 0..20 {
        let answer = ask(|then| handle.submit(vec![submission()], then));
        assert_eq!(answer.unwrap_err(), Refused::NotStored);
    }
    handle.shut_down(Nanos::from_millis(10));
    thread.join().unwrap();
}
