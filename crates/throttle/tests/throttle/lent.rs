//! Limits that the node counts.

use std::sync::{Arc, Mutex};

use outflow_core::class::Class;
use outflow_core::engine::lend::{Lent, Want};
use outflow_core::policy::key::LimitKey;
use outflow_core::time::Nanos;
use outflow_ports::intake::Then;
use outflow_ports::lender::Lender;
use outflow_ports::throttle::Acquired;
use outflow_throttle::{Service, Settings};

use crate::{ask, begin, is_granted, refused_by};

/// A node that lends as long as it has something.
#[derive(Default)]
struct Node {
    left: Mutex<u32>,
    asked: Mutex<Vec<String>>,
    kept: Mutex<Vec<Then<Lent>>>,
}

impl Lender for Node {
    fn lend(&self, wants: Vec<Want>, _: Class, then: Then<Lent>) {
        let keys = wants.iter().map(|want| want.applied.key.to_string());
        self.asked.lock().unwrap().extend(keys);
        let mut left = self.left.lock().unwrap();
        if *left == u32::MAX {
            self.kept.lock().unwrap().push(then);
            return;
        }
        let enough = *left > 0;
        *left = left.saturating_sub(1);
        drop(left);
        then(match enough {
            true => Lent::Granted,
            false => Lent::Refused {
                by: 0,
                retry_after: Nanos::from_millis(3),
            },
        });
    }

    fn give_back(&self, _: Vec<(LimitKey, u32)>) {}

    fn pause(&self, key: LimitKey, _: Nanos) {
        self.asked.lock().unwrap().push(format!("pause {key}"));
    }
}

fn start() -> (Arc<Service>, Arc<Node>) {
    let node = Arc::new(Node::default());
    let service = Service::start(Settings {
        lender: Some(Arc::clone(&node) as _),
        ..Settings::default()
    });
    (service.unwrap(), node)
}

#[test]
fn what_must_outlive_a_restart_is_asked_of_the_node() {
    let (service, node) = start();
    *node.left.lock().unwrap() = 2;
    let want = [("quota", "50k/day,10/s burst 5", 1)];
    assert!(is_granted(&ask(&service, 0, &want)));
    assert!(is_granted(&ask(&service, 0, &want)));
    let refused = ask(&service, 0, &want);
    assert_eq!(
        refused,
        Ok(Acquired::Refused {
            by: 0,
            why: outflow_core::throttle::Why::Limited,
            retry_after: Some(Nanos::from_millis(3)),
        })
    );
    assert_eq!(*node.asked.lock().unwrap(), ["key:quota#day"; 3]);
    // What is short is counted here.
    assert!(is_granted(&ask(
        &service,
        0,
        &[("short", "10/s burst 5", 1)]
    )));
    assert_eq!(node.asked.lock().unwrap().len(), 3);
    // What is counted here is looked at first, and not taken for nothing.
    assert!(is_granted(&ask(
        &service,
        0,
        &[("short", "10/s burst 5", 4)]
    )));
    *node.left.lock().unwrap() = 1;
    let both = [("quota", "50k/day", 1), ("short", "10/s burst 5", 4)];
    assert_eq!(refused_by(&ask(&service, 0, &both)), 1);
    assert_eq!(*node.left.lock().unwrap(), 1);
    service.close();
}

#[test]
fn who_waits_asks_the_node_again() {
    let (service, node) = start();
    let want = [("quota", "50k/day", 1)];
    let later = begin(&service, None, 60_000, &want).unwrap_err();
    while node.asked.lock().unwrap().len() < 3 {
        std::thread::yield_now();
    }
    *node.left.lock().unwrap() = 1;
    assert!(is_granted(&later.recv().unwrap()));
    service.close();
}

#[test]
fn at_the_end_nobody_is_left_without_an_answer() {
    let (service, node) = start();
    *node.left.lock().unwrap() = u32::MAX;
    let later = begin(&service, None, 0, &[("quota", "50k/day", 1)]).unwrap_err();
    assert_eq!(service.counts().waiting, 1);
    service.close();
    assert!(later.recv().unwrap().is_err());
    // What comes too late hurts nobody.
    for then in node.kept.lock().unwrap().drain(..) {
        then(Lent::Granted);
    }
}
