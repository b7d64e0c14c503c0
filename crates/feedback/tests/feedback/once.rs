//! What was told of a message counts once.

use std::sync::atomic::Ordering;

use outflow_core::class::Class;
use outflow_core::name::Name;
use outflow_core::outcome::ReplyClass;
use outflow_core::retry::dead_letter::LastError;
use outflow_core::suppression::Reason;
use outflow_core::tally::Counter;
use outflow_ports::hearing::{Hearing as _, Told};
use outflow_ports::receipts::Happening;

use crate::world::{NOW, World, receipt, tale, world};
use crate::{id, sample};

const POSTFIX: &str = include_str!("../samples/dsn-postfix.eml");
const ABUSE: &str = include_str!("../samples/arf-abuse.eml");

fn noted(world: &World) -> usize {
    world.node.feedback.lock().expect("one at a time").len()
}

/// Anybody who has the address can send it again.
#[test]
fn a_report_that_is_repeated_changes_nothing() {
    let world = world();
    world.keep(receipt(id(), "user@gmail.example"));
    for _ in 0..100 {
        for mail in [POSTFIX, ABUSE] {
            let heard = world.desk.mail(sample(mail).as_bytes(), Some(id()), None);
            assert_eq!(heard.expect("a disk").matched, 1);
        }
        world.pass(70);
        world.learner.write_notes(false).expect("a disk");
    }
    assert_eq!(world.heard(), [Counter::Bounced, Counter::Complained]);
    assert_eq!(noted(&world), 2);
    let entries: Vec<String> = world.audits();
    assert_eq!(entries.len(), 2, "{entries:?}");
}

/// After a start, or much later: the receipt says what was told.
#[test]
fn what_stands_in_the_receipt_is_not_counted_again() {
    let told = |code, text: &str| Happening {
        at: NOW,
        what: "feedback".to_owned(),
        account: None,
        until: None,
        error: Some(LastError {
            code: Some(code),
            enhanced: None,
            class: ReplyClass::Other,
            rule: Name::from("x"),
            text: text.to_owned(),
        }),
    };
    let world = world();
    let mut known = receipt(id(), "user@gmail.example");
    known.events = vec![told(550, "no such user"), told(250, "opt_out: a webhook")];
    world.keep(known);
    let heard = world
        .desk
        .mail(sample(POSTFIX).as_bytes(), Some(id()), None);
    assert_eq!(heard.expect("a disk").matched, 1);
    let again = [tale(Told::OptOut, Some(id()), None)];
    world.desk.tales(&again, None).expect("a disk");
    assert_eq!((world.heard(), noted(&world)), (Vec::new(), 0));
    // A complaint is something else.
    let heard = world.desk.mail(sample(ABUSE).as_bytes(), Some(id()), None);
    assert_eq!(heard.expect("a disk").suppressed, 1);
    assert_eq!(world.heard(), [Counter::Complained]);
}

#[test]
fn a_report_that_failed_counts_when_it_comes_again() {
    let world = world();
    world.keep(receipt(id(), "user@gmail.example"));
    world.disk.fails.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        let failed = world.desk.mail(sample(ABUSE).as_bytes(), Some(id()), None);
        assert!(failed.is_err());
    }
    assert_eq!((world.heard(), noted(&world)), (Vec::new(), 0));
    world.disk.fails.store(false, Ordering::SeqCst);
    let heard = world.desk.mail(sample(ABUSE).as_bytes(), Some(id()), None);
    assert_eq!(heard.expect("a disk").suppressed, 1);
    assert_eq!(world.heard(), [Counter::Complained]);
    assert_eq!(
        world.stops(Class::Low, "user@gmail.example"),
        Some(Reason::Complaint)
    );
}

#[test]
fn a_message_is_opened_and_clicked_once() {
    let world = world();
    world.keep(receipt(id(), "user@example.org"));
    for told in [Told::Open, Told::Click, Told::Open, Told::Click] {
        let tales = [tale(told, Some(id()), None), tale(told, Some(id()), None)];
        let heard = world.desk.tales(&tales, None).expect("a disk");
        assert_eq!(heard.matched, 2);
    }
    assert_eq!(world.heard(), [Counter::Opened, Counter::Clicked]);
}
