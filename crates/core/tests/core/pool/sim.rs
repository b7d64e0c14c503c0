//! A pool with buckets, queues and a network around it: what an engine would
//! do, in its simplest form, over virtual nanoseconds.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use outflow_core::class::Class;
use outflow_core::entropy::Entropy;
use outflow_core::handle::{AccountId, LaneId, SessionId};
use outflow_core::pool::{ClassMask, Pool, PoolSettings, SessionKind, Work};
use outflow_core::time::Mono;

use super::bucket::Bucket;
use super::case::{Case, Findings, Load};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
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

#[derive(Default)]
struct Tally {
    accounts: Vec<u64>,
    lanes: Vec<u64>,
    arrived: Vec<u64>,
    critical_waits: Vec<u64>,
    work: Work,
    measuring: bool,
}

pub struct Sim {
    case: Case,
    pool: Pool,
    entropy: Entropy,
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    buckets: Vec<Bucket>,
    /// When a token event is due, by account.
    token_at: Vec<u64>,
    products: Vec<Bucket>,
    product_at: Vec<u64>,
    /// Times of arrival, by lane and class.
    queues: Vec<[VecDeque<u64>; 4]>,
    endless: Vec<bool>,
    removed: Vec<bool>,
    in_flight: u64,
    stopped: bool,
    check: bool,
    tally: Tally,
    trace: u64,
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

    fn at(&mut self, time: u64, event: Event) {
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

    fn stop(&mut self) {
        self.stopped = true;
        self.tally.measuring = false;
        for lane in (0..self.case.lanes).map(LaneId) {
            if std::mem::take(&mut self.endless[lane.index()]) {
                // A rest that must drain too.
                self.queues[lane.index()][Class::Normal.index()].extend([self.now; 20]);
            }
            self.pool.hold_lane(lane, false);
            self.tell_lane(lane);
        }
        for account in (0..self.case.accounts).map(AccountId) {
            self.pool.unblock_account(account);
            self.pool.set_room(account, true);
            self.restore(account);
        }
    }

    fn block(&mut self, account: AccountId, blocked: bool) {
        if self.stopped {
            return;
        }
        let percent = self.case.blocked_percent;
        if blocked {
            self.pool.block_account(account);
            self.at(
                self.now + percent * SECOND / 10,
                Event::Block(account, false),
            );
        } else {
            self.pool.unblock_account(account);
            let open = self.entropy.between(0, 2 * (100 - percent) * SECOND / 10);
            self.at(self.now + open, Event::Block(account, true));
        }
    }

    /// One thing that should not hurt.
    fn chaos(&mut self) {
        if self.stopped {
            return;
        }
        let now = Mono(self.now);
        let account = AccountId(self.entropy.between(0, u64::from(self.case.accounts) - 1) as u32);
        let lane = LaneId(self.entropy.between(0, u64::from(self.case.lanes) - 1) as u32);
        let session = SessionId(self.entropy.between(0, 40) as u32);
        match self.entropy.between(0, 9) {
            0 => self.pool.hold_lane(lane, true),
            1 => self.pool.hold_lane(lane, false),
            2 => self.pool.set_room(account, false),
            3 => self.pool.set_room(account, true),
            4 => self.pool.session_closed(now, session),
            5 => self.pool.block_account(account),
            6 => self.pool.unblock_account(account),
            7 => self.pool.session_ready(now, session),
            8 => {
                self.pool.remove_account(now, account);
                self.removed[account.index()] = true;
            }
            _ => self.restore(account),
        }
        self.at(self.now + 100 * MS, Event::Chaos);
    }

    fn restore(&mut self, account: AccountId) {
        if std::mem::take(&mut self.removed[account.index()]) {
            self.pool.add_account(account, self.case.caps);
            self.token_at[account.index()] = u64::MAX;
            self.tell_account(account);
            for lane in (0..self.case.lanes).map(LaneId) {
                self.tell_product(account, lane);
            }
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
    fn tell_account(&mut self, account: AccountId) {
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

    fn tell_product(&mut self, account: AccountId, lane: LaneId) {
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

    fn tell_lane(&mut self, lane: LaneId) {
        let mut mask = ClassMask::NONE;
        let mut waiting = 0;
        for (queue, class) in self.queues[lane.index()].iter().zip(Class::ALL) {
            waiting += queue.len() as u32;
            if !queue.is_empty() {
                mask = mask.with(class);
            }
        }
        if self.endless[lane.index()] {
            waiting += 1_000;
            mask = mask.with(Class::Normal);
        }
        self.pool.set_backlog(lane, mask, waiting);
    }

    fn findings(&self) -> Findings {
        let tally = &self.tally;
        let sent: u64 = tally.accounts.iter().sum();
        let capacity = (self.case.capacity_milli() * self.case.measured_s / 1_000) as f64;
        let possible = match self.case.load {
            Load::Saturated | Load::Hot => capacity,
            Load::Percent(_) => tally.arrived.iter().sum::<u64>() as f64,
        };
        let mean = sent as f64 / tally.accounts.len() as f64;
        let of_mean = |count: Option<&u64>| *count.expect("there are accounts") as f64 / mean;
        let lanes = tally.lanes.iter().zip(&tally.arrived);
        let lane_mean = sent as f64 / tally.lanes.len() as f64;
        let worst_lane = match self.case.load {
            Load::Saturated => lanes
                .map(|(sent, _)| *sent as f64 / lane_mean)
                .fold(1.0, f64::min),
            Load::Hot => lanes.skip(1).map(given).fold(1.0, f64::min),
            Load::Percent(_) => lanes.map(given).fold(1.0, f64::min),
        };
        let mut waits = tally.critical_waits.clone();
        waits.sort_unstable();
        let work = self.pool.work();
        let per_send = |count: u64| count as f64 / sent.max(1) as f64;
        Findings {
            sent,
            of_possible: sent as f64 / possible,
            accounts: (
                of_mean(tally.accounts.iter().min()),
                of_mean(tally.accounts.iter().max()),
            ),
            worst_lane,
            searches_per_send: per_send(work.searches - tally.work.searches),
            looks_per_send: per_send(work.looks - tally.work.looks),
            openings_per_1000: per_send(work.openings - tally.work.openings) * 1e3,
            taken_per_1000: per_send(work.taken - tally.work.taken) * 1e3,
            critical_p99_ms: waits
                .get(waits.len() * 99 / 100)
                .copied()
                .unwrap_or_default()
                / MS,
            trace: self.trace,
            drained: false,
        }
    }
}

/// What a lane has sent of what it was given.
fn given((sent, arrived): (&u64, &u64)) -> f64 {
    if *arrived == 0 {
        1.0
    } else {
        *sent as f64 / *arrived as f64
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

/// A small pool drawn from a seed.
pub fn random_case(seed: u64) -> Case {
    let mut entropy = Entropy(seed);
    let mut draw = |low, high| entropy.between(low, high);
    let load = match draw(0, 3) {
        0 => Load::Saturated,
        1 => Load::Hot,
        _ => Load::Percent(draw(20, 95)),
    };
    let accounts = draw(1, 6) as u32;
    let lanes = draw(1, if seed.is_multiple_of(10) { 80 } else { 8 }) as u32;
    let mut case = Case::new(accounts, lanes, load)
        .rate(draw(1, 40), draw(1, 8))
        .sessions(draw(1, 6) as u32, draw(1, 30) as u32);
    case.caps.per_destination = draw(1, u64::from(case.caps.max_connections)) as u32;
    if draw(0, 4) == 0 {
        case.caps.kind = SessionKind::Slots;
    }
    if draw(0, 2) == 0 {
        case.product = Some((draw(200, 5_000), draw(1, 4)));
    }
    case.connects_fail_percent = if draw(0, 2) == 0 { draw(1, 60) } else { 0 };
    case.blocked_percent = if draw(0, 2) == 0 { draw(1, 50) } else { 0 };
    case.chaos = draw(0, 1) == 0;
    case.warm_up_s = 1;
    case.measured_s = draw(2, 12);
    case
}
