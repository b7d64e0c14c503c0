//! What follows from what was told.

use std::hash::RandomState;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use outflow_core::class::Class;
use outflow_core::flow::FlowKey;
use outflow_core::message::{Recipient, Seq};
use outflow_core::message_id::MessageId;
use outflow_core::name::Name;
use outflow_core::suppression::Reason;
use outflow_core::tally::{Counter, Teller};
use outflow_core::time::Wall;
use outflow_feedback::SuppressionList;
use outflow_ports::draft;
use outflow_ports::hearing::{Hearing as _, Hearsay, Told};
use outflow_ports::letter::RETURN_FIELD;
use outflow_ports::receipts::Receipt;
use outflow_ports::suppression::{
    Screen as _, Suppression, SuppressionChange, SuppressionError, SuppressionFilter,
    Suppressions as _,
};

use crate::world::{MS, NOW, bounce, key, receipt, tale, world, world_of};
use crate::{id, paths, sample};

const POSTFIX: &str = include_str!("../samples/dsn-postfix.eml");
const ABUSE: &str = include_str!("../samples/arf-abuse.eml");

#[test]
fn a_bounce_suppresses_whom_we_wrote_to_and_nobody_else() {
    let world = world();
    world.keep(receipt(id(), "User@Gmail.example"));
    let mail = sample(POSTFIX);
    let heard = world.desk.mail(mail.as_bytes(), Some(id()), None);
    let wanted = Hearsay {
        read: 1,
        matched: 1,
        suppressed: 1,
    };
    assert_eq!(heard.expect("a disk"), wanted);
    assert_eq!(
        world.stops(Class::Critical, "user@gmail.example"),
        Some(Reason::HardBounce)
    );
    assert_eq!(world.stops(Class::Low, "someone@example.com"), None);
    assert_eq!(world.heard(), [Counter::Bounced]);
    let feedback = world.node.feedback.lock().expect("one at a time");
    assert_eq!(feedback.first().map(|(seq, _)| *seq), Some(id().seq()));
    let line = "suppressions.learn isp:google {\"entries\":1,\"held\":0,\"sources\":\"dsn\"}";
    assert_eq!(world.audits(), [line]);
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
    world.keep(receipt(id(), "user@gmail.example"));
    let mail = sample(POSTFIX);
    let others = world.desk.mail(mail.as_bytes(), None, Some("other"));
    assert_eq!(others.expect("a disk").matched, 0);
    assert_eq!(world.stops(Class::Low, "user@gmail.example"), None);
    let own = world.desk.mail(mail.as_bytes(), None, Some("acme"));
    assert_eq!(own.expect("a disk").suppressed, 1);
}

#[test]
fn what_is_no_refusal_of_the_mailbox_suppresses_nobody() {
    let world = world();
    for (no, status, said) in [
        (1, "5.2.2", "552 5.2.2 mailbox full"),
        (2, "5.7.1", "550 5.7.1 message refused as spam"),
        (3, "5.1.8", "550 5.1.8 bad sender address"),
    ] {
        let id = MessageId::new(NOW, Seq(no));
        world.keep(receipt(id, "user@example.org"));
        let mail = format!(
            "From: mailer-daemon@example.org\r\nContent-Type: multipart/report; \
             report-type=delivery-status; boundary=b\r\n\r\n--b\r\n\
             Content-Type: message/delivery-status\r\n\r\n\
             Reporting-MTA: dns; mx.example.org\r\n\r\n\
             Final-Recipient: rfc822; user@example.org\r\nAction: failed\r\n\
             Status: {status}\r\nDiagnostic-Code: smtp; {said}\r\n\r\n--b--\r\n"
        );
        let heard = world.desk.mail(mail.as_bytes(), Some(id), None);
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
    let mail = complaint;
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

#[test]
fn the_list_is_bounded_and_survives() {
    let world = world_of(Arc::default(), 1_000);
    let many: Vec<Suppression> = (0..1_001).map(|no| bounce(no, "")).collect();
    let full = world.list.put(&many, None);
    assert!(matches!(full, Err(SuppressionError::Full(0))), "{full:?}");
    let of = |tenant: &str, nos: Range<u64>| -> Vec<Suppression> {
        let tenant = tenant.to_owned();
        nos.map(|no| Suppression {
            tenant: tenant.clone(),
            ..bounce(no, "")
        })
        .collect()
    };
    world.list.put(&many[..888], None).expect("a disk");
    let filter = SuppressionFilter {
        recipient: Some("5@example.org".to_owned()),
        ..SuppressionFilter::default()
    };
    let removed = world.list.change(&filter, SuppressionChange::Remove);
    assert_eq!(removed.expect("a disk").len(), 1);
    assert_eq!(world.stops(Class::Low, "5@example.org"), None);
    let again = SuppressionList::open(Arc::clone(&world.disk) as _, 1_000, RandomState::new());
    assert_eq!(again.expect("a list").0.in_force(), 887);
    // What is known takes no more room: an import can be repeated.
    let known = [bounce(6, ""), bounce(7, ""), bounce(7, ""), bounce(5, "")];
    let put = world.list.put(&known, None).expect("room for one");
    assert_eq!((put.added, put.known), (1, 3));
    world.list.put(&many[888..889], None).expect("room for one");

    // One tenant has no more than leaves others room.
    let quota = world.list.put(&[bounce(6, ""), bounce(5_000, "")], None);
    assert!(
        matches!(quota, Err(SuppressionError::Quota(_))),
        "{quota:?}"
    );
    world
        .list
        .put(&of("b", 0..98), None)
        .expect("room for others");
    world
        .list
        .put(&of("c", 0..11), None)
        .expect("room for others");
    world
        .list
        .put(&of("d", 0..2), None)
        .expect("room for others");
    let full = world.list.put(&[bounce(6, ""), bounce(5_001, "")], None);
    assert!(
        matches!(full, Err(SuppressionError::Full(1_000))),
        "{full:?}"
    );
    // Nobody is sent to for want of room.
    for no in [5_000, 5_001] {
        let recipient = format!("{no}@example.org");
        assert_eq!(
            world.stops(Class::Low, &recipient),
            Some(Reason::HardBounce)
        );
    }
}

/// The receipt of the message is gone, or belongs to somebody else: what people
/// said of themselves still holds for whoever tells it.
#[test]
fn an_opt_out_of_a_message_that_nobody_knows_is_heard() {
    let world = world();
    let tales = [
        tale(Told::OptOut, Some(id()), Some("one@example.org")),
        tale(Told::Open, Some(id()), Some("two@example.org")),
    ];
    let heard = world.desk.tales(&tales, Some("acme")).expect("a disk");
    assert_eq!((heard.read, heard.matched, heard.suppressed), (2, 1, 1));
    assert_eq!(
        world.stops(Class::Critical, "one@example.org"),
        Some(Reason::OptOut)
    );
    assert_eq!(world.stops(Class::Low, "two@example.org"), None);
}

fn dsn(final_recipient: &str) -> String {
    format!(
        "From: mailer-daemon@example.org\r\nContent-Type: multipart/report; \
         report-type=delivery-status; boundary=b\r\n\r\n--b\r\n\
         Content-Type: message/delivery-status\r\n\r\n\
         Reporting-MTA: dns; mx.example.org\r\n\r\n\
         Original-Recipient: rfc822; list@example.org\r\n\
         Final-Recipient: rfc822; {final_recipient}\r\nAction: failed\r\n\
         Status: 5.1.1\r\nDiagnostic-Code: smtp; 550 5.1.1 no such user\r\n\r\n--b--\r\n"
    )
}

#[test]
fn a_bounce_of_somebody_behind_our_recipient_suppresses_nobody() {
    let world = world();
    let tell = |no, recipient: &str| {
        let id = MessageId::new(NOW, Seq(no));
        world.keep(receipt(id, "list@example.org"));
        let mail = dsn(recipient);
        let heard = world.desk.mail(mail.as_bytes(), Some(id), None);
        heard.expect("a disk").suppressed
    };
    assert_eq!(tell(1, "member@example.net"), 0);
    assert_eq!(world.stops(Class::Critical, "list@example.org"), None);
    assert_eq!(world.heard(), [Counter::Bounced], "it counts all the same");
    assert_eq!(tell(2, "LIST@example.org"), 1);
}

#[test]
fn a_return_address_is_heard_for_a_month() {
    let day = 86_400_i64 * 1_000 * MS;
    for (no, days, matched) in [(1, 31, 0), (2, 29, 1)] {
        let world = world();
        let id = MessageId::new(Wall(NOW.0 - 40 * day), Seq(no));
        let settled_at = Wall(NOW.0 - days * day);
        world.keep(Receipt {
            settled_at,
            ..receipt(id, "list@example.org")
        });
        let mail = dsn("list@example.org");
        let heard = world.desk.mail(mail.as_bytes(), Some(id), None);
        assert_eq!(heard.expect("a disk").matched, matched, "{days} days");
        // Whoever may speak for the message may do so later.
        let told = format!("To: {}\r\n{mail}", paths().address(id));
        let heard = world.desk.mail(told.as_bytes(), None, Some("acme"));
        assert_eq!(heard.expect("a disk").matched, 1, "{days} days");
    }
}

/// The message had a Message-ID and a return path of its own: only the field
/// that we put into it says which it was.
#[test]
fn a_report_is_matched_by_our_own_field_of_the_original() {
    let world = world();
    world.keep(receipt(id(), "user@gmail.example"));
    let own = "bounces@somebody.example";
    let without = POSTFIX.replace("bounce+TAG@mail.example.com", own);
    let heard = world.desk.mail(without.as_bytes(), None, Some("acme"));
    assert_eq!(heard.expect("a disk").matched, 0);
    let marked = |mark: &str| {
        without.replace(
            "From: Shop",
            &format!("{RETURN_FIELD}: {mark}\r\nFrom: Shop"),
        )
    };
    let forged = paths().field(id()).replace("@mail", "@mai1");
    let heard = world
        .desk
        .mail(marked(&forged).as_bytes(), None, Some("acme"));
    assert_eq!(heard.expect("a disk").matched, 0);
    let mail = marked(&paths().field(id()));
    let heard = world.desk.mail(mail.as_bytes(), None, Some("acme"));
    assert_eq!(heard.expect("a disk").suppressed, 1);
}

fn complaint(given_ms: i64, to: &str) -> String {
    format!(
        "From: fbl@example.org\r\nContent-Type: multipart/report; \
         report-type=feedback-report; boundary=b\r\n\r\n--b\r\n\
         Content-Type: message/feedback-report\r\n\r\nFeedback-Type: abuse\r\n\
         Original-Rcpt-To: {to}\r\n\r\n--b\r\nContent-Type: message/rfc822\r\n\r\n\
         Message-ID: <{given_ms:x}.00000000000000ff.1a@shop.example>\r\n\
         From: orders@shop.example\r\nSubject: x\r\n\r\nHello\r\n--b--\r\n"
    )
}

/// 10,000 messages a second: more than are looked at in five seconds.
#[test]
fn a_message_is_found_among_many() {
    let world = world();
    let given_ms = 1_800_000_000_000_i64;
    let sample = receipt(id(), "other@example.org");
    let wanted = receipt(id(), "user@example.org");
    {
        let mut papers = world.papers.0.lock().expect("one at a time");
        for no in 0..50_000_i64 {
            let mut one = if no == 10 {
                wanted.clone()
            } else {
                sample.clone()
            };
            one.seq = Seq(no.unsigned_abs());
            one.accepted_at = Wall((given_ms + no / 10) * MS);
            papers.insert(one.seq, one);
        }
        // Another tenant wrote to the same address in the same moment.
        let mut other = wanted.clone();
        other.seq = Seq(11);
        other.accepted_at = Wall((given_ms + 1) * MS);
        other.key.tenant = "other".into();
        papers.insert(other.seq, other);
    }
    let tell = |given_ms| {
        let mail = complaint(given_ms, "user@example.org");
        let heard = world.desk.mail(mail.as_bytes(), None, Some("acme"));
        heard.expect("a disk").matched
    };
    assert_eq!(tell(given_ms), 1);
    // A time that nobody can have given does no harm.
    assert_eq!(tell(i64::MAX), 0);
}

/// The numbers of recipients are a hash that anybody can work out. With a hash
/// of that and the tenant which anybody can work out as well, one tenant could
/// choose an address that stands where a recipient of another does.
#[test]
fn no_address_can_be_made_to_stand_in_for_one_of_another_tenant() {
    let world = world();
    let entry = Suppression {
        tenant: "a".to_owned(),
        ..bounce(1, "")
    };
    let made = draft::recipient(&entry.recipient);
    world.list.put(&[entry], None).expect("a disk");
    // XXH3 of one byte is a mix of (byte, repeated) ^ (0x8727_5a9b + seed).
    let (a, b, flip) = (0x6161_0161, 0x6262_0162, 0x8727_5a9b_u64);
    let twin = (flip.wrapping_add(made.0) ^ a ^ b).wrapping_sub(flip);
    let of = |tenant: &str| FlowKey {
        tenant: Name::from(tenant),
        ..key(Class::Low)
    };
    assert!(world.list.stops(&of("a"), made).is_some());
    assert_eq!(world.list.stops(&of("b"), Recipient(twin)), None);
}

/// Nobody can check what a tenant says of its own mail.
#[test]
fn what_a_tenant_tells_counts_for_that_tenant() {
    let world = world();
    for no in 1..=3 {
        world.keep(receipt(MessageId::new(NOW, Seq(no)), "user@example.org"));
    }
    let bounce = |no| tale(Told::Bounce, Some(MessageId::new(NOW, Seq(no))), None);
    let own = world.desk.tales(&[bounce(1)], Some("acme"));
    assert_eq!(own.expect("a disk").matched, 1);
    let by_operator = world.desk.tales(&[bounce(2)], None);
    assert_eq!(by_operator.expect("a disk").matched, 1);
    assert_eq!(world.heard(), [Counter::Bounced; 2]);
    let tellers = world.node.tellers.lock().expect("one at a time").clone();
    assert_eq!(tellers, [Teller::Tenant, Teller::FarEnd]);
}

/// A report may speak of many messages, and each would be looked for.
#[test]
fn one_report_costs_no_more_than_so_many_looks() {
    let world = world();
    let given_ms = 1_800_000_000_000_i64;
    let sample = receipt(id(), "other@example.org");
    {
        let mut papers = world.papers.0.lock().expect("one at a time");
        for no in 0..50_000_i64 {
            let mut one = sample.clone();
            one.seq = Seq(no.unsigned_abs());
            one.accepted_at = Wall((given_ms + no / 10) * MS);
            papers.insert(one.seq, one);
        }
    }
    let recipients: String = (0..100)
        .map(|no| {
            format!(
                "Final-Recipient: rfc822; nobody{no}@example.org\r\nAction: failed\r\n\
                 Status: 5.1.1\r\n\r\n"
            )
        })
        .collect();
    let mail = format!(
        "From: mailer-daemon@example.org\r\nContent-Type: multipart/report; \
         report-type=delivery-status; boundary=b\r\n\r\n--b\r\n\
         Content-Type: message/delivery-status\r\n\r\n\
         Reporting-MTA: dns; mx.example.org\r\n\r\n{recipients}\r\n--b\r\n\
         Content-Type: message/rfc822\r\n\r\n\
         Message-ID: <{given_ms:x}.00000000000000ff.1a@shop.example>\r\n\
         From: orders@shop.example\r\nSubject: x\r\n\r\nHello\r\n--b--\r\n"
    );
    let heard = world.desk.mail(mail.as_bytes(), None, Some("acme"));
    let heard = heard.expect("a disk");
    assert_eq!((heard.read, heard.matched), (100, 0));
    let looked = world.papers.1.load(Ordering::SeqCst);
    assert!((20_000..45_000).contains(&looked), "{looked} receipts");
}
