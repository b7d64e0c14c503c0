//! What is reserved on disk, when, and how much: sends do not wait for the disk,
//! and little is lost in a crash.

use outflow_core::class::Class;
use outflow_core::limit::{Fill, Headroom, Limit, Need, Until};
use outflow_core::time::{Mono, Nanos};

use super::{DAY, MINUTE, SECOND, at, fresh, later, spec};

fn waits(limit: &Limit) -> Until {
    limit.until(&at(0), Class::Normal, Need::whole(1))
}

fn reserve(limit: &mut Limit) -> Option<u32> {
    let block = limit.reservation_due()?;
    limit.reserve_asked(block);
    Some(block)
}

#[test]
fn windows_slow_buckets_and_spaced_limits_reserve() {
    let reserves = |text: &str| fresh(spec(text), &at(0)).needs_reserve();
    assert!(!reserves("10/s burst 50"), "fills in five seconds");
    assert!(reserves("10/s burst 51"));
    assert!(reserves("1/s spaced"));
    assert!(reserves("10/min spaced"));
    assert!(reserves("10/min"));
    assert!(reserves("10/min@UTC"));
    assert!(!reserves("10 concurrent"));
}

#[test]
fn two_blocks_of_a_hundredth_are_kept_ahead() {
    let mut limit = fresh(spec("1000/day"), &at(0));
    assert_eq!(waits(&limit), Until::Granted);
    assert_eq!(reserve(&mut limit), Some(20));
    assert_eq!(reserve(&mut limit), None);
    assert_eq!(waits(&limit), Until::Granted);
    limit.reserve_committed(20);
    assert_eq!(waits(&limit), Until::Now);
    limit.take(&at(0), Class::Normal, 9);
    assert_eq!(reserve(&mut limit), None);
    limit.take(&at(0), Class::Normal, 1);
    assert_eq!(reserve(&mut limit), Some(10), "one block is left");
    limit.take(&at(0), Class::Normal, 10);
    assert_eq!(reserve(&mut limit), Some(10), "while the last is under way");
    assert_eq!(waits(&limit), Until::Granted);
    assert_eq!(limit.save(&at(0)).unspent, 20);
}

#[test]
fn no_more_is_promised_than_fits() {
    let mut limit = fresh(spec("1/day"), &at(0));
    assert_eq!(reserve(&mut limit), Some(1));
    assert_eq!(reserve(&mut limit), None);
}

/// Sends as fast as the limit and a disk let, for so long; how many went out.
/// Also the most that was promised at a time.
fn with_slow_disk(text: &str, commit: u64, span: u64) -> (u32, u64) {
    let mut limit = fresh(spec(text), &at(0));
    let (mut now, mut sent, mut most) = (at(0), 0, 0);
    let mut pending: Vec<(u64, u32)> = Vec::new();
    while now.mono.0 < span {
        if let Some(block) = reserve(&mut limit) {
            let free_at = pending.last().map_or(now.mono.0, |(at, _)| *at);
            pending.push((free_at.max(now.mono.0) + commit, block));
        }
        most = most.max(limit.save(&now).unspent);
        let committed = pending.first().map_or(u64::MAX, |(at, _)| *at);
        let next = match limit.until(&now, Class::Normal, Need::whole(1)) {
            Until::Now => {
                limit.take(&now, Class::Normal, 1);
                sent += 1;
                continue;
            }
            Until::At(time) => time.0.min(committed),
            _ => committed,
        };
        now = later(&now, Mono(next));
        if committed <= next {
            let (_, block) = pending.remove(0);
            limit.reserve_committed(block);
        }
    }
    (sent, most)
}

#[test]
fn a_slow_disk_does_not_set_the_pace() {
    // One token for each commit of 50 ms would be 200 in ten seconds.
    let (sent, most) = with_slow_disk("600/min", 50_000_000, 10 * SECOND);
    assert_eq!(sent, 600, "all of the window, in lumps as large as a tenth");
    assert!(most <= 120, "no more than two tenths are at stake");
    let (sent, _) = with_slow_disk("100/min", 200_000_000, 10 * SECOND);
    assert_eq!(sent, 100);
    // At its own pace a bucket hardly notices.
    let (sent, most) = with_slow_disk("20/s burst 200", 100_000_000, MINUTE);
    assert!(sent >= 200 + 20 * 60 - 20, "{sent}");
    assert!(most <= 40);
}

#[test]
fn a_spaced_limit_writes_its_largest_cost_and_no_more() {
    let mut limit = fresh(spec("1/s spaced"), &at(0));
    assert!(reserve(&mut limit).is_some());
    limit.reserve_committed(u32::MAX);
    for second in 0..1_000 {
        limit.take(&at(second * SECOND), Class::Normal, 1);
        assert_eq!(limit.reservation_due(), None);
    }
    let now = at(1_000 * SECOND);
    limit.expect_cost(10);
    let ten = |limit: &Limit| limit.until(&now, Class::Normal, Need::whole(10));
    assert_eq!(ten(&limit), Until::Granted);
    assert!(limit.fits(&now, Class::Normal, Need::whole(1)));
    let saved = limit.save(&now);
    let block = reserve(&mut limit).expect("a larger cost is written down first");
    limit.reserve_committed(block);
    limit.take(&now, Class::Normal, 10);

    // It died at once: the gap of ten goes on.
    let (spec, none) = (limit.spec().clone(), Headroom::default());
    let again = at(DAY);
    let mut restored = Limit::restore(spec, none, &saved, u64::from(block), &again, Nanos::ZERO);
    let block = reserve(&mut restored).expect("a new life");
    restored.reserve_committed(block);
    let until = restored.until(&again, Class::Normal, Need::whole(1));
    assert_eq!(until, Until::At(again.mono + Nanos(10 * SECOND)));
}

#[test]
fn what_is_left_to_others_needs_no_reservation() {
    let headroom = Headroom([500, 0, 0, 0]);
    let mut limit = Limit::owned(spec("100/day@UTC"), headroom, &at(0), Fill::Full);
    limit.expect_cost(10);
    limit.reserve_committed(3);
    let one = Need::whole(1);
    let floor = limit.floor(&at(0), Class::Low, 10);
    assert!(floor > Need::whole(40));
    let until = limit.until_above_floor(&at(0), Class::Low, one, 10);
    assert_eq!(until, Until::Now);
    assert!(limit.fits_above(&at(0), Class::Low, one, floor));
    assert!(!limit.fits_above(&at(0), Class::Low, Need::whole(4), floor));
}
