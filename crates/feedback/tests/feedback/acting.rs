//! What follows from what was told.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use outflow_core::class::Class;
use outflow_core::classify::Rules;
use outflow_core::destination::Destination;
use outflow_core::flow::FlowKey;
use outflow_core::message::{Seq, State};
use outflow_core::message_id::MessageId;
use outflow_core::name::Name;
use outflow_core::suppression::Reason;
use outflow_core::suppression::surge::SurgeRule;
use outflow_core::tally::Counter;
use outflow_core::time::{Mono, Wall};
use outflow_feedback::{Desk, Learner, SuppressionList};
use outflow_ports::draft;
use outflow_ports::hearing::{Hearing as _, Hearsay, Tale, Told};
use outflow_ports::letter::Envelope;
use outflow_ports::receipts::Receipt;
use outflow_ports::suppression::{
    Screen as _, Suppression, SuppressionChange, SuppressionError, SuppressionFilter,
    Suppressions as _,
};

use crate::memory::{Disk, Node, Papers};
use crate::{id, paths, sample};

const MS: i64 = 1_000_000;
const NOW: Wall = Wall(1_800_000_500_000_000_000);

struct World {
    disk: Arc<Disk>,
    list: Arc<SuppressionList>,
    papers: Arc<Papers>,
    node: Arc<Node>,
    learner: Arc<Learner>,
    desk: Desk,
    alarms: Arc<Mutex<Vec<String>>>,
    seconds: Arc<AtomicU64>,
}

fn world() -> World {
    let disk: Arc<Disk> = Arc::default();
    let (list, _) = SuppressionList::open(Arc::clone(&disk) as _, 1_000).expect("a list");
    let list = Arc::new(list);
    let (papers, node): (Arc<Papers>, Arc<Node>) = Default::default();
    let alarms: Arc<Mutex<Vec<String>>> = Arc::default();
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
        Arc::new(move |text: &str| told.lock().expect("one at a time").push(text.to_owned())),
        SurgeRule::default(),
    ));
    let desk = Desk {
        paths: Some(Arc::new(paths())),
        learner: Arc::clone(&learner),
        receipts: Arc::clone(&papers) as _,
        control: Arc::clone(&node) as _,
        rules: Rules::built_in(),
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

fn key(class: Class) -> FlowKey {
    FlowKey {
        tenant: Name::from("acme"),
        class,
        sender_domain: Some(Name::from("shop.example")),
        ..FlowKey::to(Destination::isp("google"))
    }
}

fn receipt(id: MessageId, to: &str) -> Receipt {
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
    fn keep(&self, receipt: Receipt) {
        let mut papers = self.papers.0.lock().expect("one at a time");
        papers.insert(receipt.seq, receipt);
    }

    fn stops(&self, class: Class, to: &str) -> Option<Reason> {
        let stopped = self.list.stops(&key(class), draft::recipient(to));
        stopped.map(|stopped| stopped.reason)
    }

    fn heard(&self) -> Vec<Counter> {
        self.node.heard.lock().expect("one at a time").clone()
    }
}

const POSTFIX: &str = include_str!("../samples/dsn-postfix.eml");
const ABUSE: &str = include_str!("../samples/arf-abuse.eml");

#[test]
fn a_bounce_suppresses_whom_we_wrote_to_and_nobody_else() {
    let world = world();
    world.keep(receipt(id(), "User@Example.org"));
    let mail = sample(POSTFIX);
    let heard = world.desk.mail(mail.as_bytes(), Some(id()), None);
    let wanted = Hearsay {
        read: 1,
        matched: 1,
        suppressed: 1,
    };
    assert_eq!(heard.expect("a disk"), wanted);
    assert_eq!(
        world.stops(Class::Critical, "user@example.org"),
        Some(Reason::HardBounce)
    );
    assert_eq!(world.stops(Class::Low, "someone@example.com"), None);
    assert_eq!(world.heard(), [Counter::Bounced]);
    let feedback = world.node.feedback.lock().expect("one at a time");
    assert_eq!(feedback.first().map(|(seq, _)| *seq), Some(id().seq()));
    let audits = world.disk.audits.lock().expect("one at a time");
    assert_eq!(
        *audits,
        ["suppressions.learn dsn {\"entries\":1,\"held\":0}"]
    );
}

#[test]
fn a_complaint_stops_what_is_not_urgent() {
    let world = world();
    world.keep(receipt(id(), "user@example.org"));
    let mail = sample(ABUSE);
    let heard = world.desk.mail(mail.as_bytes(), Some(id()), None);
    assert_eq!(heard.expect("a disk").suppressed, 1);
    assert_eq!(world.stops(Class::Critical, "user@example.org"), None);
    assert_eq!(world.stops(Class::High, "user@example.org"), None);
    assert_eq!(
        world.stops(Class::Normal, "USER@example.org"),
        Some(Reason::Complaint)
    );
    assert_eq!(world.heard(), [Counter::Complained]);
}

#[test]
fn a_report_is_matched_by_the_address_in_it_and_only_for_its_tenant() {
    let world = world();
    world.keep(receipt(id(), "user@example.org"));
    let mail = sample(POSTFIX);
    let others = world.desk.mail(mail.as_bytes(), None, Some("other"));
    assert_eq!(others.expect("a disk").matched, 0);
    assert_eq!(world.stops(Class::Low, "user@example.org"), None);
    let own = world.desk.mail(mail.as_bytes(), None, Some("acme"));
    assert_eq!(own.expect("a disk").suppressed, 1);
}

#[test]
fn what_is_no_refusal_of_the_mailbox_suppresses_nobody() {
    let world = world();
    world.keep(receipt(id(), "user@example.org"));
    for (status, said) in [
        ("5.2.2", "552 5.2.2 mailbox full"),
        ("5.7.1", "550 5.7.1 message refused as spam"),
        ("5.1.8", "550 5.1.8 bad sender address"),
    ] {
        let mail = format!(
            "From: mailer-daemon@example.org\r\nContent-Type: multipart/report; \
             report-type=delivery-status; boundary=b\r\n\r\n--b\r\n\
             Content-Type: message/delivery-status\r\n\r\n\
             Reporting-MTA: dns; mx.example.org\r\n\r\n\
             Final-Recipient: rfc822; user@example.org\r\nAction: failed\r\n\
             Status: {status}\r\nDiagnostic-Code: smtp; {said}\r\n\r\n--b--\r\n"
        );
        let heard = world.desk.mail(mail.as_bytes(), Some(id()), None);
        let heard = heard.expect("a disk");
        assert_eq!((heard.matched, heard.suppressed), (1, 0), "{said}");
    }
    assert_eq!(world.stops(Class::Low, "user@example.org"), None);
    // They count all the same.
    assert_eq!(world.heard(), [Counter::Bounced; 3]);
}

/// A provider gives the message back, and nothing in it carries our signature.
#[test]
fn a_message_is_found_by_the_message_id_that_we_gave_it() {
    let world = world();
    let given_ms = 1_800_000_000_000_i64;
    for seq in 0..3_000_u64 {
        let accepted = Wall((given_ms + (seq as i64 - 1_500) * 20) * MS);
        let id = MessageId::new(accepted, Seq(seq * 3 + 1));
        world.keep(receipt(id, &format!("user{seq}@example.org")));
    }
    let mail = |given_ms: i64, to: &str| {
        format!(
            "From: fbl@example.org\r\nContent-Type: multipart/report; \
             report-type=feedback-report; boundary=b\r\n\r\n--b\r\n\
             Content-Type: message/feedback-report\r\n\r\nFeedback-Type: abuse\r\n\
             Original-Rcpt-To: {to}\r\n\r\n--b\r\nContent-Type: message/rfc822\r\n\r\n\
             Message-ID: <{given_ms:x}.00000000000000ff.1a@shop.example>\r\n\
             From: orders@shop.example\r\nSubject: x\r\n\r\nHello\r\n--b--\r\n"
        )
    };
    let tell = |text: String| {
        let heard = world.desk.mail(text.as_bytes(), None, Some("acme"));
        heard.expect("a disk").matched
    };
    // Number 1,501 was accepted 20 ms after its id was given.
    assert_eq!(tell(mail(given_ms, "USER1501@example.org")), 1);
    assert_eq!(
        world.stops(Class::Low, "user1501@example.org"),
        Some(Reason::Complaint)
    );
    // Long before, somebody else, and a Message-ID of somebody else.
    assert_eq!(tell(mail(given_ms - 3_600_000, "user1501@example.org")), 0);
    assert_eq!(tell(mail(given_ms, "user9999@example.org")), 0);
    let foreign = mail(given_ms, "user1501@example.org").replace("00000000000000ff", "x");
    assert_eq!(tell(foreign), 0);
}

fn tale(told: Told, message: Option<MessageId>, recipient: Option<&str>) -> Tale {
    Tale {
        told,
        message,
        recipient: recipient.map(str::to_owned),
        tenant: "acme".to_owned(),
        at: NOW,
        reason: "a webhook said so".to_owned(),
    }
}

#[test]
fn events_count_and_suppress() {
    let world = world();
    world.keep(receipt(id(), "user@example.org"));
    let tales = [
        tale(Told::Open, Some(id()), None),
        tale(Told::Click, Some(id()), None),
        tale(Told::Complaint, Some(id()), None),
        tale(Told::OptOut, None, Some("Other@example.org")),
    ];
    let heard = world.desk.tales(&tales, None).expect("a disk");
    let wanted = Hearsay {
        read: 4,
        matched: 4,
        suppressed: 2,
    };
    assert_eq!(heard, wanted);
    assert_eq!(
        world.heard(),
        [Counter::Opened, Counter::Clicked, Counter::Complained]
    );
    assert_eq!(
        world.stops(Class::Critical, "other@example.org"),
        Some(Reason::OptOut)
    );
    // Somebody else's token does not reach this message.
    let heard = world.desk.tales(&tales[..1], Some("other"));
    assert_eq!(heard.expect("a disk").matched, 0);
}

fn bounce(no: u64, destination: &str) -> Suppression {
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

#[test]
fn a_surge_is_held_back_with_what_led_to_it() {
    let world = world();
    // 1 % of 10,000 bounced over the day; now 60 of 100 do.
    *world.node.counts.lock().expect("one at a time") = (100, 10_000, 160);
    for no in 0..60 {
        let learnt = world.learner.learn(vec![bounce(no, "isp:google")]);
        learnt.expect("a disk");
        let other = world.learner.learn(vec![bounce(1_000 + no, "isp:yahoo")]);
        other.expect("a disk");
    }
    // Yahoo said nothing about attempts: counted against nothing, 50 are a surge
    // too. Of Google all are held, also those before it was doubted.
    let held = |destination: &str, is_held| {
        let filter = SuppressionFilter {
            destination: Some(destination.to_owned()),
            is_held: Some(is_held),
            ..SuppressionFilter::default()
        };
        world.disk.count(&filter).expect("a disk")
    };
    assert_eq!(
        (held("isp:google", true), held("isp:google", false)),
        (60, 0)
    );
    for no in 0..60 {
        let to = format!("{no}@example.org");
        assert_eq!(world.stops(Class::Low, &to), None, "{to}");
    }
    let alarms = world.alarms.lock().expect("one at a time").clone();
    let google = alarms.iter().filter(|it| it.starts_with("isp:google"));
    assert_eq!(google.count(), 1, "one alarm: {alarms:?}");
    // A person looked: they are in force, also after a start.
    let filter = SuppressionFilter {
        destination: Some("isp:google".to_owned()),
        ..SuppressionFilter::default()
    };
    let approved = world.list.change(&filter, SuppressionChange::Approve);
    assert_eq!(approved.expect("a disk").len(), 60);
    assert_eq!(
        world.stops(Class::Low, "7@example.org"),
        Some(Reason::HardBounce)
    );
    // An hour later all is calm.
    world.seconds.fetch_add(3_600, Ordering::SeqCst);
    let calm = world.learner.learn(vec![bounce(99, "isp:google")]);
    calm.expect("a disk");
    assert_eq!(
        world.stops(Class::Low, "99@example.org"),
        Some(Reason::HardBounce)
    );
}

#[test]
fn bounces_as_usual_are_believed() {
    let world = world();
    // 60 of 10,000 in the last quarter of an hour.
    *world.node.counts.lock().expect("one at a time") = (10_000, 400_000, 2_400);
    for no in 0..60 {
        let learnt = world.learner.learn(vec![bounce(no, "isp:google")]);
        learnt.expect("a disk");
    }
    assert_eq!(
        world.stops(Class::Low, "59@example.org"),
        Some(Reason::HardBounce)
    );
    assert!(world.alarms.lock().expect("one at a time").is_empty());
}

#[test]
fn the_list_is_bounded_and_survives() {
    let world = world();
    let many: Vec<Suppression> = (0..1_001).map(|no| bounce(no, "")).collect();
    let full = world.list.put(&many, None);
    assert!(matches!(full, Err(SuppressionError::Full(0))), "{full:?}");
    world.list.put(&many[..1_000], None).expect("a disk");
    assert_eq!(world.list.in_force(), 1_000);
    let filter = SuppressionFilter {
        recipient: Some("5@example.org".to_owned()),
        ..SuppressionFilter::default()
    };
    let removed = world.list.change(&filter, SuppressionChange::Remove);
    assert_eq!(removed.expect("a disk").len(), 1);
    assert_eq!(world.stops(Class::Low, "5@example.org"), None);
    let (again, _) = SuppressionList::open(Arc::clone(&world.disk) as _, 1_000).expect("a list");
    assert_eq!(again.in_force(), 999);
}
