//! A feed by itself: what it asks for, and what goes back.

use super::*;
use crate::engine::action::{GiveBack, Receipt};
use crate::entropy::Entropy;
use crate::handle::AccountLimitId;
use crate::limit::{Headroom, LimitSpec};
use crate::policy::scope::Scope;
use crate::time::Wall;

struct Bench {
    feed: Feed,
    limit: Limit,
    asked: Vec<LeaseRequest>,
    back: Vec<GiveBack>,
}

fn at(millis: u64) -> Now {
    let nanos = Nanos::from_millis(millis);
    Now {
        mono: Mono(1_000_000_000) + nanos,
        wall: Wall(0) + nanos,
        entropy: Entropy(0),
    }
}

fn demand(flows: usize) -> Option<Demand> {
    (flows > 0).then_some(Demand {
        class: Class::Normal,
        out_of_turn: false,
        earned: false,
        cost: 1,
        flows,
        waiting: ClassMask::of(Class::Normal),
        has_session: false,
    })
}

impl Bench {
    fn new(spec: LimitSpec) -> Self {
        let key = Arc::new(LimitKey::of(Scope::Tenant, "acme"));
        Self {
            feed: Feed::new(key, WhenAway::Closed),
            limit: Limit::leased(spec, Headroom::default()),
            asked: Vec::new(),
            back: Vec::new(),
        }
    }

    fn sort(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Lease(request) => self.asked.push(request),
                Action::GiveBack(back) => self.back.push(back),
                Action::Alert { .. } => {}
                other => unreachable!("{other:?}"),
            }
        }
    }

    /// So many flows stand before it.
    fn look(&mut self, millis: u64, flows: usize) {
        let mut actions = Vec::new();
        let id = (LimitId::Account(AccountLimitId(1)), 1);
        let (feed, limit) = (&mut self.feed, &mut self.limit);
        feed.lease(&at(millis), id, limit, demand(flows), &mut actions);
        self.sort(actions);
    }

    /// The ledger answers the last request.
    fn hear(&mut self, millis: u64, tokens: u32, life: u64) {
        let mut actions = Vec::new();
        let no = self.asked.last().expect("something was asked").no;
        let answer = LeaseAnswer::Leased {
            tokens,
            life: Nanos::from_millis(life),
            wait: Nanos::ZERO,
            spacing: Nanos::ZERO,
            receipt: Receipt::default(),
            owed: Default::default(),
        };
        let (feed, limit) = (&mut self.feed, &mut self.limit);
        feed.answered(&at(millis), limit, no, answer, &mut actions);
        self.sort(actions);
    }

    fn slots(&self, millis: u64) -> u32 {
        let holds = self.limit.holds().expect("a concurrency limit");
        holds.slots(&at(millis))
    }
}

fn window() -> LimitSpec {
    LimitSpec::SlidingWindow {
        count: 100,
        window: Nanos::from_secs(10),
    }
}

/// What ends unused is lost to a window for all of its length: a flow that waits
/// for a slower limit would empty it.
#[test]
fn what_waits_for_another_limit_goes_back_to_its_window() {
    let rate = crate::limit::Rate::per_second(10);
    for (spec, given) in [
        (window(), 1),
        (LimitSpec::TokenBucket { rate, burst: 100 }, 0),
    ] {
        let mut bench = Bench::new(spec);
        bench.look(0, 1);
        bench.hear(2, 5, 160);
        bench.look(100, 1);
        assert_eq!((bench.asked.len(), bench.back.len()), (1, 0), "still good");
        bench.look(120, 1);
        assert_eq!(bench.back.len(), given, "three quarters of its life");
        assert!(bench.back.iter().all(|back| back.tokens == 5));
        assert_eq!(bench.asked.len(), 1 + given, "it is wanted all the same");
    }
}

#[test]
fn what_comes_too_late_goes_back() {
    let mut bench = Bench::new(window());
    bench.look(0, 1);
    bench.hear(100, 5, 160);
    assert_eq!(bench.back.len(), 1, "half of its life was over");
    bench.look(101, 1);
    bench.look(500, 1);
    bench.hear(501, 7, 160);
    assert_eq!(bench.back.len(), 2, "nobody waited for it any more");
    let tokens: Vec<u32> = bench.back.iter().map(|back| back.tokens).collect();
    assert_eq!(tokens, [5, 7]);
}

#[test]
fn slots_that_are_not_wanted_are_not_used_while_the_ledger_is_told() {
    let mut bench = Bench::new(LimitSpec::Concurrency { slots: 10 });
    bench.look(0, 10);
    bench.hear(2, 10, 3_000);
    bench.limit.take(&at(3), Class::Normal, 4);
    bench.look(10, 0);
    assert_eq!(bench.asked.len(), 1, "the next message may be near");
    bench.look(300, 0);
    let last = bench.asked.last().expect("it asked again");
    assert_eq!((last.tokens, last.held), (4, 4));
    assert_eq!(bench.slots(300), 4, "no more than it says");
}

#[test]
fn who_gives_way_says_when_slots_are_free() {
    let mut bench = Bench::new(LimitSpec::Concurrency { slots: 10 });
    bench.look(0, 10);
    bench.hear(2, 10, 3_000);
    bench.limit.take(&at(3), Class::Normal, 10);
    bench.look(30, 5);
    bench.hear(32, 5, 3_000);
    bench.limit.release(3);
    assert!(!bench.limit.fits(&at(40), Class::Normal, Need::whole(1)));
    // Nobody waits here any more: the others do.
    bench.look(60, 0);
    let last = bench.asked.last().expect("it asked again");
    assert_eq!((last.tokens, last.held), (7, 7), "three came back");
    bench.hear(62, 5, 3_000);
    bench.limit.release(7);
    bench.look(90, 0);
    let last = bench.asked.last().expect("it asked again");
    assert_eq!((last.tokens, last.held), (0, 0), "all came back");
    bench.hear(92, 0, 3_000);
    bench.look(200, 0);
    assert_eq!(bench.asked.len(), 4, "nothing is left to say");
}
