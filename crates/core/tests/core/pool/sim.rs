//! A pool with buckets, queues and a network around it: what an engine would
//! do, in its simplest form, over virtual nanoseconds.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use outflow_core::class::Class;
use outflow_core::entropy::Entropy;
use outflow_core::handle::{AccountId, LaneId, SessionId};
use outflow_core::pool::{ClassMask, Pool, PoolSettings};
use outflow_core::time::Mono;

use super::bucket::Bucket;
use super::case::{Case, Findings, Load};
use super::tally::Tally;

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000 * MS;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    Arrival(LaneId),
    CriticalArrival,
    Token(AccountId),
    ProductToken(AccountId, LaneId),
    Ready(SessionId),
    Failed(SessionId),
    Closed(SessionId),
    Reply(SessionId),
    Block(AccountId, bool),
    Chaos,
    Measure,
    Stop,
}

pub struct Sim {
    pub(super) case: Case,
    pub(super) pool: Pool,
    pub(super) entropy: Entropy,
    pub(super) now: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    buckets: Vec<Bucket>,
    /// When a token event is due, by account.
    pub(super) token_at: Vec<u64>,
    products: Vec<Bucket>,
    product_at: Vec<u64>,
    /// Times of arrival, by lane and class.
    pub(super) queues: Vec<[VecDeque<u64>; 4]>,
    pub(super) endless: Vec<bool>,
    pub(super) removed: Vec<bool>,
    in_flight: u64,
    pub(super) stopped: bool,
    check: bool,
    pub(super) tally: Tally,
    pub(super) trace: u64,
}

impl Sim {
    pub fn new(case: Case, seed: u64, check: bool) -> Self {
        let (accounts, lanes) = (case.accounts as usize, case.lanes as usize);
        let mut entropy = Entropy(seed);
        let mut fill = |rate_milli, burst, count: usize| -> Vec<Bucket> {
            (0..count)
                .map(|_| Bucket::new(rate_milli, burst, entropy.between(0, 999)))
                .collect()
        };
        let buckets = fill(case.rate_milli, case.burst, accounts);
        let products = case.product.map_or(Vec::new(), |(rate_milli, burst)| {
            fill(rate_milli, burst, accounts * lanes)
        });
        let mut sim = Self {
            case,
            pool: Pool::new(PoolSettings::default()),
            entropy,
            now: 0,
            events: BinaryHeap::new(),
            sequence: 0,
            buckets,
            token_at: vec![u64::MAX; accounts],
            product_at: vec![u64::MAX; products.len()],
            products,
            queues: vec![Default::default(); lanes],
            endless: vec![false; lanes],
            removed: vec![false; accounts],
            in_flight: 0,
            stopped: false,
            check,
            tally: Tally::default(),
            trace: 0xcbf2_9ce4_8422_2325,
        };
        sim.start();
        sim
    }

    fn start(&mut self) {
        for lane in 0..self.case.lanes {
            self.pool.add_lane(LaneId(lane));
        }
        for account in (0..self.case.accounts).map(AccountId) {
            self.pool.add_account(account, self.case.caps);
            self.tell_account(account);
            for lane in (0..self.case.lanes).map(LaneId) {
                self.tell_product(account, lane);
            }
            if self.case.blocked_percent > 0 {
                let first = self.entropy.between(0, 100 * SECOND);
                self.at(first, Event::Block(account, true));
            }
        }
        for lane in (0..self.case.lanes).map(LaneId) {
            match self.case.load {
                Load::Saturated => self.endless[lane.index()] = true,
                Load::Hot if lane.0 == 0 => self.endless[0] = true,
                Load::Hot | Load::Percent(_) => {
                    let first = self.gap(self.mean_gap());
                    self.at(first, Event::Arrival(lane));
                }
            }
            self.tell_lane(lane);
        }
        self.at(0, Event::CriticalArrival);
        self.at(self.case.warm_up_s * SECOND, Event::Measure);
        let stop = (self.case.warm_up_s + self.case.measured_s) * SECOND;
        self.at(stop, Event::Stop);
        if self.case.chaos {
            self.at(SECOND, Event::Chaos);
        }
    }

    /// The mean time between two arrivals of one lane.
    fn mean_gap(&self) -> u64 {
        let percent = match self.case.load {
            Load::Percent(percent) => percent,
            Load::Saturated | Load::Hot => 1,
        };
        let milli = (self.case.capacity_milli() * percent / 100).max(1);
        SECOND * 1_000 / milli * u64::from(self.case.lanes)
    }

    pub(super) fn at(&mut self, time: u64, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((time, self.sequence, event)));
    }

    fn after(&mut self, range_ms: (u64, u64), event: Event) {
        let wait = self.entropy.between(range_ms.0 * MS, range_ms.1 * MS);
        self.at(self.now + wait, event);
    }

    /// The time to the next of independent arrivals.
    fn gap(&mut self, mean: u64) -> u64 {
        let drawn = self.entropy.between(1, 1_000_000) as f64 / 1e6;
        (-drawn.ln() * mean as f64) as u64
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.entropy.between(0, 99) < percent
    }

    /// Runs to the end and until all is drained, or clearly never will be.
    pub fn run(mut self) -> Findings {
        self.pump();
        let mut findings = None;
        let give_up = (self.case.warm_up_s + self.case.measured_s + 900) * SECOND;
        while self.now < give_up {
            if self.stopped && self.is_drained() {
                break;
            }
            let event_at = self.events.peek().map_or(u64::MAX, |next| next.0.0);
            let wake_at = self.pool.next_wake().map_or(u64::MAX, |wake| wake.0);
            if wake_at <= event_at {
                self.now = self.now.max(wake_at);
                self.pool.wake(Mono(self.now));
            } else if let Some(Reverse((time, _, event))) = self.events.pop() {
                self.now = time;
                if event == Event::Stop {
                    findings = Some(self.findings());
                }
                self.handle(event);
            }
            self.pump();
        }
        let mut findings = findings.expect("the end was reached");
        findings.drained = self.is_drained();

        findings.trace = self.trace;
        findings
    }

    fn is_drained(&self) -> bool {
        self.in_flight == 0
            && self
                .queues
                .iter()
                .all(|lane| lane.iter().all(VecDeque::is_empty))
    }

    fn handle(&mut self, event: Event) {
        let now = Mono(self.now);
        match event {
            Event::Arrival(lane) => {
                if !self.stopped {
                    let class = match self.entropy.between(0, 9) {
                        0..=1 => Class::High,
                        2..=7 => Class::Normal,
                        _ => Class::Low,
                    };
                    self.arrive(lane, class);
                    let gap = self.gap(self.mean_gap());
                    self.at(self.now + gap, Event::Arrival(lane));
                }
            }
            Event::CriticalArrival => {
                if !self.stopped {
                    let lane = self.entropy.between(0, u64::from(self.case.lanes) - 1);
                    self.arrive(LaneId(lane as u32), Class::Critical);
                    let mean = SECOND * 1_000 * 100 / self.case.capacity_milli().max(1);
                    let gap = self.gap(mean);
                    self.at(self.now + gap, Event::CriticalArrival);
                }
            }
            Event::Token(account) => {
                self.token_at[account.index()] = u64::MAX;
                self.tell_account(account);
            }
            Event::ProductToken(account, lane) => {
                let at = self.product_index(account, lane);
                self.product_at[at] = u64::MAX;
                self.tell_product(account, lane);
            }
            Event::Ready(session) => self.pool.session_ready(now, session),
            Event::Failed(session) => self.pool.session_failed(now, session),
            Event::Closed(session) => self.pool.session_closed(now, session),
            Event::Reply(session) => {
                self.in_flight -= 1;
                let keep = !self.case.chaos || !self.chance(5);
                self.pool.released(now, session, keep);
            }
            Event::Block(account, blocked) => self.block(account, blocked),
            Event::Chaos => self.chaos(),
            Event::Measure => {
                self.tally = Tally {
                    accounts: vec![0; self.case.accounts as usize],
                    lanes: vec![0; self.case.lanes as usize],
                    arrived: vec![0; self.case.lanes as usize],
                    critical_waits: Vec::new(),
                    work: self.pool.work(),
                    measuring: true,
                };
            }
            Event::Stop => self.stop(),
        }
    }

    fn arrive(&mut self, lane: LaneId, class: Class) {
        if self.tally.measuring {
            self.tally.arrived[lane.index()] += 1;
        }
        let nobody_before = self.queues[lane.index()][..=class.index()]
            .iter()
            .all(VecDeque::is_empty);
        self.queues[lane.index()][class.index()].push_back(self.now);
        if nobody_before && self.pool.can_send(lane, class) {
            let taken = self.pool.take(Mono(self.now), lane, class, 1);
            let (account, session) = taken.expect("can_send said so");
            self.deliver(account, lane, class, session);
        } else {
            self.tell_lane(lane);
        }
    }

    fn pump(&mut self) {
        loop {
            self.check();
            if let Some((account, lane, class)) = self.pool.next_match() {
                let now = Mono(self.now);
                let session = self.pool.take_from(now, account, lane, class, 1);
                self.deliver(account, lane, class, session.expect("it was matched"));
            } else if let Some((session, _, _)) = self.pool.next_open(Mono(self.now)) {
                if self.chance(self.case.connects_fail_percent) {
                    self.after(self.case.connect_ms, Event::Failed(session));
                } else {
                    self.after(self.case.connect_ms, Event::Ready(session));
                }
            } else if let Some(session) = self.pool.next_close() {
                self.at(self.now + MS, Event::Closed(session));
            } else {
                return;
            }
        }
    }

    fn check(&self) {
        if self.check {
            // A release build has no check.
            #[cfg(debug_assertions)]
            self.pool.check();
        }
    }

    fn deliver(&mut self, account: AccountId, lane: LaneId, class: Class, session: SessionId) {
        let endless = self.endless[lane.index()] && class == Class::Normal;
        let queued = self.queues[lane.index()][class.index()].pop_front();
        assert!(queued.is_some() || endless, "sent what does not wait");
        if self.tally.measuring {
            self.tally.accounts[account.index()] += 1;
            self.tally.lanes[lane.index()] += 1;
            if let (Class::Critical, Some(arrived)) = (class, queued) {
                self.tally.critical_waits.push(self.now - arrived);
            }
        }
        self.buckets[account.index()].take(self.now);
        if !self.products.is_empty() {
            let at = self.product_index(account, lane);
            self.products[at].take(self.now);
            self.tell_product(account, lane);
        }
        self.in_flight += 1;
        let counts = self.pool.account_counts(account);
        assert!(counts.busy <= counts.live());
        assert!(counts.live() <= self.case.caps.max_connections, "over cap");
        self.after(self.case.reply_ms, Event::Reply(session));
        for word in [self.now, account.0.into(), lane.0.into(), session.0.into()] {
            self.trace = (self.trace ^ word).wrapping_mul(0x0100_0000_01b3);
        }
        self.tell_account(account);
        self.tell_lane(lane);
    }

    fn product_index(&self, account: AccountId, lane: LaneId) -> usize {
        account.index() * self.case.lanes as usize + lane.index()
    }

    /// Tells the pool what an account's bucket holds, and sets its timer.
    pub(super) fn tell_account(&mut self, account: AccountId) {
        let bucket = &mut self.buckets[account.index()];
        let (mask, next) = readiness(bucket, self.now);
        self.pool.set_ready(account, mask);
        if let Some(next) = next
            && next < self.token_at[account.index()]
        {
            self.token_at[account.index()] = next;
            self.at(next, Event::Token(account));
        }
    }

    pub(super) fn tell_product(&mut self, account: AccountId, lane: LaneId) {
        if self.products.is_empty() {
            return;
        }
        let at = self.product_index(account, lane);
        let (mask, next) = readiness(&mut self.products[at], self.now);
        self.pool.set_product_open(account, lane, mask);
        if let Some(next) = next
            && next < self.product_at[at]
        {
            self.product_at[at] = next;
            self.at(next, Event::ProductToken(account, lane));
        }
    }

    pub(super) fn tell_lane(&mut self, lane: LaneId) {
        let mut mask = ClassMask::NONE;
        let mut waiting = 0;
        for (queue, class) in self.queues[lane.index()].iter().zip(Class::ALL) {
            waiting += queue.len() as u32;
            if !queue.is_empty() {
                mask = mask.with(class);
            }
        }
        if self.endless[lane.index()] {
            waiting += 100_000;
            mask = mask.with(Class::Normal);
        }
        self.pool.set_backlog(lane, mask, waiting);
    }
}

/// The classes a bucket has a token for, and when that may grow.
fn readiness(bucket: &mut Bucket, now: u64) -> (ClassMask, Option<u64>) {
    let floor = bucket.floor();
    if bucket.holds(now, 1 + floor) {
        (ClassMask::ALL, None)
    } else if bucket.holds(now, 1) {
        let next = bucket.time_of(1 + floor);
        (ClassMask::of(Class::Critical), Some(next))
    } else {
        (ClassMask::NONE, Some(bucket.time_of(1)))
    }
}
