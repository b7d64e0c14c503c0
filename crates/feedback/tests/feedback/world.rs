//! Everything that hears and learns, over a disk and a node in memory.

use std::hash::RandomState;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use outflow_core::class::Class;
use outflow_core::classify::Rules;
use outflow_core::destination::Destination;
use outflow_core::flow::FlowKey;
use outflow_core::message::State;
use outflow_core::message_id::MessageId;
use outflow_core::name::Name;
use outflow_core::suppression::Reason;
use outflow_core::suppression::surge::{Surge, SurgeRule};
use outflow_core::tally::Counter;
use outflow_core::time::{Mono, Wall};
use outflow_feedback::{Desk, Learner, Once, SuppressionList};
use outflow_ports::draft;
use outflow_ports::hearing::{Tale, Told};
use outflow_ports::letter::Envelope;
use outflow_ports::receipts::Receipt;
use outflow_ports::suppression::{Screen as _, Suppression, SuppressionFilter, Suppressions as _};

use crate::memory::{Disk, Node, Papers};
use crate::paths;

pub const MS: i64 = 1_000_000;
pub const NOW: Wall = Wall(1_800_000_500_000_000_000);

pub struct World {
    pub disk: Arc<Disk>,
    pub list: Arc<SuppressionList>,
    pub papers: Arc<Papers>,
    pub node: Arc<Node>,
    pub learner: Arc<Learner>,
    pub desk: Desk,
    pub alarms: Arc<Mutex<Vec<Surge>>>,
    pub seconds: Arc<AtomicU64>,
}

pub fn world() -> World {
    world_on(Arc::default())
}

/// What there is after a start on this disk.
pub fn world_on(disk: Arc<Disk>) -> World {
    world_of(disk, 10_000)
}

/// The same, with so many entries on the list at most.
pub fn world_of(disk: Arc<Disk>, entries_max: u64) -> World {
    let keys = RandomState::new();
    let list = SuppressionList::open(Arc::clone(&disk) as _, entries_max, keys);
    let list = Arc::new(list.expect("a list").0);
    let (papers, node): (Arc<Papers>, Arc<Node>) = Default::default();
    let alarms: Arc<Mutex<Vec<Surge>>> = Arc::default();
    let seconds = Arc::new(AtomicU64::new(1_000_000));
    let (told, clock) = (Arc::clone(&alarms), Arc::clone(&seconds));
    let learner = Arc::new(Learner::new(
        Arc::clone(&list) as _,
        Arc::clone(&node) as _,
        Arc::new(move || {
            let passed = clock.load(Ordering::SeqCst);
            let wall = NOW.0 + (passed as i64 - 1_000_000) * 1_000 * MS;
            (Mono(passed * 1_000_000_000), Wall(wall))
        }),
        Arc::new(move |surge: &Surge| told.lock().expect("one at a time").push(surge.clone())),
        SurgeRule::default(),
    ));
    let desk = Desk {
        paths: Some(Arc::new(paths())),
        learner: Arc::clone(&learner),
        receipts: Arc::clone(&papers) as _,
        control: Arc::clone(&node) as _,
        rules: Rules::built_in(),
        once: Once::default(),
    };
    World {
        disk,
        list,
        papers,
        node,
        learner,
        desk,
        alarms,
        seconds,
    }
}

pub fn key(class: Class) -> FlowKey {
    FlowKey {
        tenant: Name::from("acme"),
        class,
        sender_domain: Some(Name::from("shop.example")),
        ..FlowKey::to(Destination::isp("google"))
    }
}

pub fn receipt(id: MessageId, to: &str) -> Receipt {
    let envelope = Envelope {
        to: to.to_owned(),
        ..Envelope::default()
    };
    let accepted_at = Wall(i64::try_from(id.accepted_ms()).expect("a time") * MS);
    Receipt {
        seq: id.seq(),
        key: key(Class::Normal),
        state: State::Delivered,
        accepted_at,
        settled_at: accepted_at,
        attempts: 1,
        account: Some("main".to_owned()),
        error: None,
        cause: None,
        envelope: envelope.to_bytes(),
        events: Vec::new(),
    }
}

impl World {
    pub fn keep(&self, receipt: Receipt) {
        let mut papers = self.papers.0.lock().expect("one at a time");
        papers.insert(receipt.seq, receipt);
    }

    pub fn stops(&self, class: Class, to: &str) -> Option<Reason> {
        let stopped = self.list.stops(&key(class), draft::recipient(to));
        stopped.map(|stopped| stopped.reason)
    }

    pub fn heard(&self) -> Vec<Counter> {
        self.node.heard.lock().expect("one at a time").clone()
    }

    /// Entries of a destination that are held, and that are in force.
    pub fn held(&self, destination: &str) -> (u64, u64) {
        let count = |is_held| {
            let filter = SuppressionFilter {
                destination: Some(destination.to_owned()),
                is_held: Some(is_held),
                ..SuppressionFilter::default()
            };
            self.disk.count(&filter).expect("a disk")
        };
        (count(true), count(false))
    }

    pub fn audits(&self) -> Vec<String> {
        self.disk.audits.lock().expect("one at a time").clone()
    }

    /// So many seconds later.
    pub fn pass(&self, seconds: u64) {
        self.seconds.fetch_add(seconds, Ordering::SeqCst);
    }

    pub fn learn(&self, entry: Suppression) {
        self.learner.learn(vec![entry]).expect("a disk");
    }
}

pub fn tale(told: Told, message: Option<MessageId>, recipient: Option<&str>) -> Tale {
    Tale {
        told,
        message,
        recipient: recipient.map(str::to_owned),
        tenant: "acme".to_owned(),
        at: NOW,
        reason: "a webhook said so".to_owned(),
    }
}

pub fn bounce(no: u64, destination: &str) -> Suppression {
    Suppression {
        tenant: "acme".to_owned(),
        recipient: format!("{no}@example.org"),
        reason: Reason::HardBounce,
        is_held: false,
        since: NOW,
        source: "reply".to_owned(),
        destination: destination.to_owned(),
        message: String::new(),
        detail: String::new(),
    }
}
