//! Reservations: a restart never sends faster.
//!
//! Each reservation carries the limit's state *before* its block, in which all
//! earlier blocks are counted. So a store brings back the state of the last
//! durable reservation of a limit, and its block alone as reserved since.

use std::collections::VecDeque;
use std::sync::Arc;

use outflow_core::class::Class;
use outflow_core::engine::action::{Hold, Record};
use outflow_core::entropy::Entropy;
use outflow_core::handle::AppendNo;
use outflow_core::limit::{Fill, Headroom, Limit, LimitSpec, Need, Rate};
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::scope::Scope;
use outflow_core::time::{Mono, Nanos};

use super::bench::Bench;
use super::{Case, Harness, begin};
use crate::conformance::guarantee::{self, Use};
use crate::store::Recovered;

pub(super) fn cases<H: Harness>() -> Vec<Case<H>> {
    vec![
        (
            "the last reservation comes back",
            the_last_reservation_comes_back,
        ),
        ("a restart never sends faster", a_restart_never_sends_faster),
        ("what is forgotten stays so", what_is_forgotten_stays_so),
        ("blocks come back", blocks_come_back),
        ("downtime is never too long", downtime_is_never_too_long),
    ]
}

fn key() -> Arc<LimitKey> {
    Arc::new(LimitKey::of(Scope::Tenant, "acme"))
}

fn window() -> LimitSpec {
    LimitSpec::SlidingWindow {
        count: 40,
        window: Nanos::from_secs(10),
    }
}

fn the_last_reservation_comes_back<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    let now = bench.now();
    let mut limit = Limit::owned(window(), Headroom::default(), &now, Fill::Full);
    let mut last = None;
    for block in [4, 9] {
        let saved = limit.save(&bench.now());
        limit.reserve_asked(block);
        let record = Record::Reservation {
            key: key(),
            saved: saved.clone(),
            block,
        };
        bench.commit(record);
        limit.reserve_committed(block);
        last = Some(saved);
    }
    let other = Arc::new(LimitKey::of(Scope::Tenant, "other"));
    let saved = limit.save(&bench.now());
    // Not durable, so not used either.
    bench.append(Record::Reservation {
        key: Arc::clone(&other),
        saved,
        block: 1,
    });
    let recovered = bench.restart();
    let known = recovered.limits.get(&*key()).expect("it was reserved");
    assert_eq!(
        Some(&known.saved),
        last.as_ref(),
        "the last state comes back"
    );
    assert_eq!(known.reserved_since, 9, "and the block since");
    let again = bench.restart();
    let known = again.limits.get(&*key()).expect("it was reserved");
    assert_eq!(known.reserved_since, 9, "again, if nothing came since");
}

fn what_is_forgotten_stays_so<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    let now = bench.now();
    let limit = Limit::owned(window(), Headroom::default(), &now, Fill::Full);
    let other = Arc::new(LimitKey::of(Scope::Tenant, "other"));
    for key in [key(), Arc::clone(&other)] {
        let saved = limit.save(&now);
        let block = 3;
        bench.commit(Record::Reservation { key, saved, block });
    }
    bench.commit(Record::Forgotten { key: key() });
    let recovered = bench.restart();
    assert!(
        !recovered.limits.contains_key(&*key()),
        "a limit that was forgotten came back"
    );
    assert!(
        recovered.limits.contains_key(&*other),
        "the other one stays"
    );
}

fn blocks_come_back<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    let account = Arc::new(LimitKey::of(Scope::Account, "main"));
    let hour = bench.now().wall + Nanos::from_secs(3_600);
    for blocked_until in [hour, hour + Nanos::from_secs(60)] {
        let key = Arc::clone(&account);
        let hold = Hold {
            until: blocked_until,
            per_minute: 7,
        };
        bench.commit(Record::Held { key, hold });
    }
    for _ in 0..2 {
        let recovered = bench.restart();
        let blocked = recovered.holds.get(&*account);
        assert_eq!(
            blocked,
            Some(&Hold {
                until: hour + Nanos::from_secs(60),
                per_minute: 7,
            }),
            "the last word on a block comes back"
        );
    }
}

fn downtime_is_never_too_long<H: Harness>(make: &dyn Fn() -> H) {
    let mut bench = begin(make);
    bench.open(outflow_core::handle::FlowId(0));
    bench.accept_plain(outflow_core::handle::FlowId(0), 1);
    let recorded_at = bench.now().mono;
    let later = recorded_at + Nanos::from_secs(3);
    bench.harness.advance(later);
    let recovered = bench.restart();
    let away = bench.now().mono.since(recorded_at);
    assert!(
        recovered.downtime <= away + Nanos::from_millis(10),
        "downtime is at most the time since the last record"
    );
}

/// One limit of a node that dies now and then.
struct Reserving {
    spec: LimitSpec,
    limit: Limit,
    asked: VecDeque<(AppendNo, u32)>,
    uses: Vec<Use>,
}

impl Reserving {
    fn restored<H: Harness>(self, bench: &Bench<H>, recovered: &Recovered) -> Self {
        let now = bench.now();
        let (spec, headroom) = (self.spec.clone(), Headroom::default());
        let limit = match recovered.limits.get(&*key()) {
            Some(known) => Limit::restore(
                spec,
                headroom,
                &known.saved,
                known.reserved_since,
                &now,
                recovered.downtime,
            ),
            None => Limit::owned(spec, headroom, &now, Fill::Full),
        };
        Self {
            limit,
            asked: VecDeque::new(),
            ..self
        }
    }

    fn step<H: Harness>(&mut self, bench: &mut Bench<H>, entropy: &mut Entropy) {
        bench.turn();
        let now = bench.now();
        let committed = bench.committed;
        while let Some((_, block)) = self.asked.pop_front_if(|(no, _)| *no <= committed) {
            self.limit.reserve_committed(block);
        }
        if let Some(block) = self.limit.reservation_due() {
            let saved = self.limit.save(&now);
            self.limit.reserve_asked(block);
            let key = key();
            let record = Record::Reservation { key, saved, block };
            self.asked.push_back((bench.append(record), block));
        }
        for _ in 0..entropy.between(0, 8) {
            if self.limit.fits(&now, Class::Normal, Need::whole(1)) {
                self.limit.take(&now, Class::Normal, 1);
                self.uses.push(Use {
                    mono: now.mono,
                    wall: now.wall,
                    tokens: 1,
                });
            }
        }
    }
}

fn a_restart_never_sends_faster<H: Harness>(make: &dyn Fn() -> H) {
    let slow = LimitSpec::TokenBucket {
        rate: Rate::per_second(4),
        burst: 40,
    };
    for spec in [window(), slow] {
        let mut entropy = Entropy(11);
        let mut bench = begin(make);
        let now = bench.now();
        let mut node = Reserving {
            limit: Limit::owned(spec.clone(), Headroom::default(), &now, Fill::Full),
            spec: spec.clone(),
            asked: VecDeque::new(),
            uses: Vec::new(),
        };
        for _ in 0..2_000 {
            node.step(&mut bench, &mut entropy);
            let pause = Nanos(entropy.between(0, 40_000_000));
            let next: Mono = bench.now().mono + pause;
            bench.harness.advance(next);
            if entropy.between(0, 99) == 0 {
                let recovered = bench.restart();
                node = node.restored(&bench, &recovered);
            }
        }
        let kept = guarantee::check(&spec, &node.uses);
        assert_eq!(kept, Ok(()), "a restart sends faster than {spec:?}");
        assert!(node.uses.len() > 40, "the limit was used");
    }
}
