//! Askers that share one limit.
//!
//! An asker sizes its requests as a node does: twice what it used of the last
//! lease, and a part of the burst to begin with. It measures the life of a lease
//! from before it asked, and does not trust an answer that took half a life.

use std::sync::Arc;

use outflow_core::class::Class;
use outflow_core::engine::action::{GiveBack, LeaseRequest};
use outflow_core::engine::event::{Event, LeaseAnswer};
use outflow_core::entropy::Entropy;
use outflow_core::handle::{AccountLimitId, LimitId};
use outflow_core::limit::{Grant, Headroom, Limit, LimitSpec, Need, Until};
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::scope::Scope;
use outflow_core::pool::ClassMask;
use outflow_core::time::{Mono, Nanos, Now};

use super::Harness;
use crate::conformance::guarantee::Use;
use crate::ledger::{Ledger, LedgerWork};

/// The longest that is waited between two looks.
const LOOK: Nanos = Nanos::from_millis(5);
/// An answer that takes longer will not come.
const ANSWER_MAX: Nanos = Nanos::from_millis(500);
/// Work in one look, so that one asker cannot go on for ever.
const USES_MAX: u32 = 10_000;

/// How an asker uses what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Habit {
    /// At once, all of it.
    Greedy,
    /// Early, late or at the last moment, and dies now and then.
    Careless,
    /// At once, and gives the rest back at random moments.
    Fickle,
    /// Does not ask.
    Idle,
}

/// One asker.
pub(super) struct Asker<L> {
    link: L,
    limit: Limit,
    pub habit: Habit,
    pub class: Class,
    /// Classes that wait where it stands besides its own.
    pub also: ClassMask,
    pub cost: u32,
    asked: Option<(u32, Mono)>,
    requests: u32,
    retry_at: Mono,
    /// A careless one does nothing before this.
    use_from: Mono,
    used: u32,
    use_per_request: u32,
    /// Tokens used so far.
    pub spent: u64,
    /// Under which version it asks.
    version: u64,
    /// The last answer, for cases that look at it.
    pub answer: Option<LeaseAnswer>,
    /// What else the ledger said.
    heard: Vec<Event>,
}

impl<L: Ledger> Asker<L> {
    fn new(link: L, spec: &LimitSpec, headroom: Headroom, habit: Habit) -> Self {
        Self {
            link,
            limit: Limit::leased(spec.clone(), headroom),
            habit,
            class: Class::Normal,
            also: ClassMask::NONE,
            cost: 1,
            asked: None,
            requests: 0,
            retry_at: Mono(0),
            use_from: Mono(0),
            used: 0,
            use_per_request: 0,
            spent: 0,
            version: 0,
            answer: None,
            heard: Vec::new(),
        }
    }

    /// What is limited: the asker's own number for it.
    const LIMIT: LimitId = LimitId::Account(AccountLimitId(5));

    fn listen(&mut self, now: &Now, entropy: &mut Entropy) {
        let mut done = Vec::new();
        self.link.complete(now, &mut done);
        for event in done {
            let Event::Granted { limit, no, answer } = event else {
                let Event::Paused { lasts, .. } = event else {
                    unreachable!("a ledger grants and pauses");
                };
                match lasts {
                    Nanos::ZERO => {
                        self.limit.unblock();
                        self.retry_at = now.mono;
                    }
                    _ => self.limit.block_until(now.mono + lasts),
                }
                self.heard.push(event);
                continue;
            };
            assert_eq!(limit, Self::LIMIT, "the answer names its limit");
            assert!(no <= self.requests, "the answer names its request");
            let Some((_, at)) = self.asked.take_if(|(asked, _)| *asked == no) else {
                continue;
            };
            self.answer = Some(answer);
            match answer {
                // Cases about slots look at the answer themselves.
                LeaseAnswer::Leased { .. } if self.limit.holds().is_some() => {}
                LeaseAnswer::Leased { .. } => self.grant(now, at, answer, entropy),
                LeaseAnswer::Refused { retry_after } => self.retry_at = now.mono + retry_after,
                LeaseAnswer::Away => self.retry_at = now.mono + ANSWER_MAX,
            }
        }
    }

    fn grant(&mut self, now: &Now, at: Mono, answer: LeaseAnswer, entropy: &mut Entropy) {
        let LeaseAnswer::Leased {
            tokens,
            life,
            wait,
            spacing,
            receipt,
            ..
        } = answer
        else {
            return;
        };
        assert!(tokens >= self.cost, "fewer tokens than a message takes");
        assert!(wait < life, "a lease that ends before it begins");
        if now.mono.since(at).0 > life.0 / 2 {
            return;
        }
        let (usable_from, ends_at) = (at + wait, at + life);
        let class = self.class;
        let grant = Grant {
            tokens,
            class,
            usable_from,
            ends_at,
            spacing,
            cost: self.cost,
            asked_at: at,
            asked: now.clocks(),
            parting_max: Nanos(life.0 / 4),
            receipt: Some(receipt),
        };
        self.limit.grant(now, grant);
        if self.habit == Habit::Careless {
            let run = spacing.times(u64::from(tokens.saturating_sub(self.cost)));
            let last = ends_at - Nanos(1);
            self.use_from = match entropy.between(0, 3) {
                0 => usable_from,
                1 => last,
                2 => last - run,
                _ => Mono(entropy.between(usable_from.0, last.0.max(usable_from.0))),
            };
        }
    }

    fn spend(&mut self, now: &Now, uses: &mut Vec<Use>) {
        if self.habit == Habit::Idle || now.mono < self.use_from {
            return;
        }
        for _ in 0..USES_MAX {
            if !self.limit.fits(now, self.class, Need::whole(self.cost)) {
                return;
            }
            self.limit.take(now, self.class, self.cost);
            self.used += self.cost;
            self.spent += u64::from(self.cost);
            uses.push(Use {
                mono: now.mono,
                wall: now.wall,
                tokens: self.cost,
            });
        }
    }

    /// Whether there is no need to ask for more yet.
    fn has_enough(&self, now: &Now) -> bool {
        let low = Need::whole(self.cost.max(self.use_per_request / 2));
        self.limit.fits(now, self.class, low)
    }

    fn ask(&mut self, now: &Now, key: &Arc<LimitKey>) {
        self.asked
            .take_if(|(_, at)| now.mono.since(*at) > ANSWER_MAX);
        let has_enough = self.has_enough(now);
        let must_wait = self.asked.is_some() || now.mono < self.retry_at;
        if self.habit == Habit::Idle || must_wait || has_enough {
            return;
        }
        self.use_per_request = (self.use_per_request + self.used).div_ceil(2);
        self.used = 0;
        let capacity = self.limit.spec().capacity();
        let first = (capacity / 8).clamp(1, 1_000);
        let tokens = self.use_per_request.saturating_mul(2).max(first);
        self.request(now, key, tokens.min(capacity).max(self.cost));
    }

    /// Asks for so many tokens.
    pub fn request(&mut self, now: &Now, key: &Arc<LimitKey>, tokens: u32) {
        self.requests += 1;
        self.asked = Some((self.requests, now.mono));
        self.answer = None;
        let request = LeaseRequest {
            limit: Self::LIMIT,
            no: self.requests,
            key: Arc::clone(key),
            spec: self.limit.spec().clone(),
            headroom: self.limit.headroom(),
            class: self.class,
            waiting: self.also.with(self.class),
            tokens,
            at_least: self.cost,
            at_most: self.cost,
            held: 0,
            version: self.version,
        };
        self.link.submit(now, LedgerWork::Lease(request));
    }

    /// Asks to hold so many slots, of which some are in use.
    fn request_hold(&mut self, now: &Now, key: &Arc<LimitKey>, in_use: u32, slots: u32) {
        self.requests += 1;
        self.asked = Some((self.requests, now.mono));
        self.answer = None;
        let request = LeaseRequest {
            limit: Self::LIMIT,
            no: self.requests,
            key: Arc::clone(key),
            spec: self.limit.spec().clone(),
            headroom: self.limit.headroom(),
            class: self.class,
            waiting: self.also.with(self.class),
            tokens: slots,
            at_least: self.cost,
            at_most: self.cost,
            held: in_use,
            version: self.version,
        };
        self.link.submit(now, LedgerWork::Lease(request));
    }

    /// Gives back all that it has and did not use.
    fn give_back(&mut self, now: &Now, key: &Arc<LimitKey>) {
        let spec = self.limit.spec().clone();
        for grant in self.limit.drain(now) {
            if let Some(receipt) = grant.receipt {
                let back = GiveBack {
                    key: Arc::clone(key),
                    spec: spec.clone(),
                    tokens: grant.tokens,
                    receipt,
                };
                self.link.submit(now, LedgerWork::GiveBack(back));
            }
        }
    }

    /// When it has something to do.
    fn next(&self, now: &Now) -> Mono {
        if self.habit == Habit::Idle {
            return self.link.next_completion();
        }
        let spends_at = match self.limit.until(now, self.class, Need::whole(self.cost)) {
            Until::At(at) => at.max(self.use_from),
            Until::Now => self.use_from,
            _ => Mono::NEVER,
        };
        let asks_at = match self.asked {
            Some((_, at)) => at + ANSWER_MAX,
            None if self.has_enough(now) => Mono::NEVER,
            None => self.retry_at,
        };
        self.link.next_completion().min(spends_at).min(asks_at)
    }
}

/// Askers that share one limit, and what they used.
pub(super) struct Fleet<H: Harness> {
    pub harness: H,
    pub key: Arc<LimitKey>,
    pub askers: Vec<Asker<H::Link>>,
    pub uses: Vec<Use>,
    pub entropy: Entropy,
    spec: LimitSpec,
    headroom: Headroom,
}

impl<H: Harness> Fleet<H> {
    pub fn new(harness: H, spec: &LimitSpec, seed: u64) -> Self {
        Self {
            harness,
            key: Arc::new(LimitKey::of(Scope::Tenant, "acme")),
            askers: Vec::new(),
            uses: Vec::new(),
            entropy: Entropy(seed),
            spec: spec.clone(),
            headroom: Headroom::default(),
        }
    }

    pub fn keep(&mut self, headroom: Headroom) {
        self.headroom = headroom;
    }

    /// Adds askers.
    pub fn add(&mut self, count: usize, habit: Habit) -> &mut Asker<H::Link> {
        for _ in 0..count {
            let link = self.harness.link();
            let asker = Asker::new(link, &self.spec, self.headroom, habit);
            self.askers.push(asker);
        }
        self.askers.last_mut().expect("at least one was added")
    }

    /// All go on with other numbers; what was leased or asked for under the old
    /// ones is void.
    pub fn reconfigure(&mut self, spec: &LimitSpec) {
        self.spec = spec.clone();
        let now = self.harness.now();
        for asker in &mut self.askers {
            asker.limit.reconfigure(&now, spec.clone());
            asker.asked = None;
        }
    }

    fn turn(&mut self) {
        let now = self.harness.now();
        for place in 0..self.askers.len() {
            self.maybe_replace(place);
            let Some(asker) = self.askers.get_mut(place) else {
                continue;
            };
            asker.listen(&now, &mut self.entropy);
            let fickle = asker.habit == Habit::Fickle;
            if fickle && self.entropy.between(0, 2) == 0 {
                asker.give_back(&now, &self.key);
            }
            if !fickle || self.entropy.between(0, 1) == 0 {
                asker.spend(&now, &mut self.uses);
            }
            asker.ask(&now, &self.key);
        }
    }

    /// A careless asker dies now and then, with all it has.
    fn maybe_replace(&mut self, place: usize) {
        let Some(asker) = self.askers.get(place) else {
            return;
        };
        let (habit, class, cost) = (asker.habit, asker.class, asker.cost);
        if habit == Habit::Careless && self.entropy.between(0, 499) == 0 {
            let link = self.harness.link();
            let mut fresh = Asker::new(link, &self.spec, self.headroom, habit);
            (fresh.class, fresh.cost) = (class, cost);
            if let Some(asker) = self.askers.get_mut(place) {
                *asker = fresh;
            }
        }
    }

    /// Time passes, and all do what they do.
    pub fn run(&mut self, span: Nanos) {
        let end = self.harness.now().mono + span;
        loop {
            self.turn();
            let now = self.harness.now();
            if now.mono >= end {
                return;
            }
            let next = self.askers.iter().map(|asker| asker.next(&now)).min();
            let next = next.unwrap_or(Mono::NEVER).max(now.mono + Nanos(1));
            let latest = (now.mono + LOOK).min(end);
            self.harness.advance(next.min(latest));
        }
    }

    /// Tokens used from a time on.
    pub fn used_since(&self, from: Mono) -> u64 {
        let since = self.uses.iter().filter(|it| it.mono >= from);
        since.map(|it| u64::from(it.tokens)).sum()
    }

    /// Time passes until a fresh ledger lends without reserve.
    pub fn settle(&mut self) {
        self.run(Nanos::from_secs(3));
    }

    /// The last asker gives back all it has.
    pub fn give_back_all(&mut self) {
        let now = self.harness.now();
        if let Some(asker) = self.askers.last_mut() {
            asker.give_back(&now, &self.key);
        }
        self.run(Nanos::from_millis(20));
    }

    /// What an asker hears when it wants to hold so many slots.
    pub fn hold(&mut self, place: usize, in_use: u32, slots: u32) -> LeaseAnswer {
        let now = self.harness.now();
        if let Some(asker) = self.askers.get_mut(place) {
            asker.request_hold(&now, &self.key, in_use, slots);
        }
        self.answer_of(place)
    }

    /// What an asker hears when it asks for so many as a class.
    pub fn hear_as(&mut self, place: usize, class: Class, tokens: u32) -> LeaseAnswer {
        let now = self.harness.now();
        if let Some(asker) = self.askers.get_mut(place) {
            asker.class = class;
            asker.habit = Habit::Idle;
            asker.request(&now, &self.key, tokens);
        }
        self.answer_of(place)
    }

    /// What the last asker hears when it asks although it was told not to.
    pub fn ask_again(&mut self) -> LeaseAnswer {
        self.hear(1)
    }

    /// One asker has the limit paused.
    pub fn pause(&mut self, lasts: Nanos) {
        let now = self.harness.now();
        let key = Arc::clone(&self.key);
        if let Some(asker) = self.askers.first_mut() {
            let pause = LedgerWork::Pause { key, lasts };
            asker.link.submit(&now, pause);
        }
    }

    /// What the askers heard besides answers.
    pub fn heard(&self) -> impl Iterator<Item = &[Event]> {
        self.askers.iter().map(|asker| asker.heard.as_slice())
    }

    /// One asker goes on with other numbers, of a later version.
    pub fn change(&mut self, place: usize, spec: &LimitSpec, version: u64) {
        let now = self.harness.now();
        if let Some(asker) = self.askers.get_mut(place) {
            asker.limit.reconfigure(&now, spec.clone());
            asker.asked = None;
            asker.version = version;
        }
    }

    /// What the last asker hears when it asks for so many.
    pub fn hear(&mut self, tokens: u32) -> LeaseAnswer {
        let now = self.harness.now();
        if let Some(asker) = self.askers.last_mut() {
            asker.request(&now, &self.key, tokens);
        }
        self.answer_of(self.askers.len().saturating_sub(1))
    }

    fn answer_of(&mut self, place: usize) -> LeaseAnswer {
        for _ in 0..20_000 {
            self.run(Nanos::from_millis(1));
            let answer = self.askers.get(place).and_then(|asker| asker.answer);
            if let Some(answer) = answer {
                return answer;
            }
        }
        unreachable!("a ledger that is there answers");
    }
}
