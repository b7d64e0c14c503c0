//! What a far end says that it takes is what it gets.

use outflow_core::allowance::{Allowance, Left};
use outflow_core::handle::AccountId;

use super::learning::{SECOND, again, flooded};
use super::*;

const WHOLE: &str = "account:main#learnt";

/// Taken, and told what else would be.
fn taken(rate: Option<Rate>, left: Option<Left>) -> Reply {
    let mut reply = Reply::accepted();
    if let Reply::Said { allows, .. } = &mut reply {
        *allows = Some(Box::new(Allowance { rate, left }));
    }
    reply
}

fn per_second(count: u32) -> Reply {
    taken(Some(Rate::per_second(count)), None)
}

/// How many are sent in ten seconds, each told this.
fn sent_in_ten(desk: &mut Desk, reply: &Reply) -> u64 {
    let mut sent = 0;
    desk.run(Nanos(10 * SECOND), |_, _| {
        sent += 1;
        reply.clone()
    });
    sent
}

#[test]
fn a_rate_that_is_told_is_kept_to_wherever_the_account_sends() {
    let (mut desk, _) = flooded();
    let yahoo = desk.flow("yahoo");
    desk.queue(yahoo, 500_001..=700_000);
    sent_in_ten(&mut desk, &per_second(5));
    let sent = sent_in_ten(&mut desk, &per_second(5));
    assert!((45..=60).contains(&sent), "{sent} in 10 s at 5/s");
    assert_eq!(desk.learnt(WHOLE).expect("it was told").rate, 5.0);
    // It is written when it is told, and not for every message that says it.
    let written = |desk: &Desk| {
        let records = desk.written.iter();
        records
            .filter(|record| matches!(record, Record::Adapted { .. }))
            .count()
    };
    let before = written(&desk);
    sent_in_ten(&mut desk, &per_second(5));
    assert_eq!(written(&desk), before);

    let mut again = again(&desk, Nanos(3 * SECOND));
    let flow = again.flow("google");
    again.queue(flow, 1..=10_000);
    let sent = sent_in_ten(&mut again, &Reply::accepted());
    assert!(sent <= 60, "{sent} in 10 s after a restart");

    sent_in_ten(&mut desk, &per_second(20));
    assert_eq!(desk.learnt(WHOLE).unwrap().rate, 20.0, "more is more");
}

#[test]
fn a_rate_above_what_the_account_may_send_changes_nothing() {
    let (mut desk, _) = flooded();
    let sent = sent_in_ten(&mut desk, &per_second(50));
    assert!(sent > 400, "{sent}");
    assert!(desk.learnt(WHOLE).is_none());
}

#[test]
fn a_quota_stops_when_it_is_used_up_and_is_never_scaled() {
    let (mut desk, _) = flooded();
    desk.set_account(account("other", &["50/s"]));
    let left = |count| Left {
        count,
        resets_in: Nanos(60 * SECOND),
    };
    let main = AccountId(0);
    let mut told_at = None;
    let (mut count, mut within, mut after, mut others) = (0_u64, 0_u64, 0_u64, 0_u64);
    desk.run(Nanos(120 * SECOND), |now, delivery| {
        if delivery.account != main {
            others += 1;
            return Reply::accepted();
        }
        count += 1;
        match told_at.map(|at| now.since(at)) {
            None if count < 100 => return taken(None, Some(left(5))),
            None => {
                told_at = Some(now);
                return taken(None, Some(left(0)));
            }
            Some(since) if since < Nanos(SECOND) => {}
            Some(since) if since < Nanos(60 * SECOND) => within += 1,
            Some(_) => after += 1,
        }
        Reply::accepted()
    });
    assert_eq!(within, 0, "nothing is left");
    assert!(after > 500, "{after} afterwards: no slower than before");
    assert!(others > 500, "{others} through the other");
    assert!(desk.learnt(WHOLE).is_none());
}
