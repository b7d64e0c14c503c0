//! The count of one shared limit, and what it answers.
//!
//! A limit is leased on *terms* that follow from its numbers and its largest
//! cost: leases with a life, counted by one of core's algorithms under numbers
//! that pay for that life in advance; or spaced runs. Terms may change with the
//! numbers at any time: what is leased under the old ones is still paid for.

use outflow_core::engine::action::{LeaseRequest, Receipt};
use outflow_core::engine::event::LeaseAnswer;
use outflow_core::ledger::debits::{DebitPlace, DebitReport, QUIET, is_long};
use outflow_core::ledger::owed::{self, OWED_PAUSE, Owed};
use outflow_core::ledger::{Leasing, NEVER_PAUSE, Settings, Terms, bucket, calendar, paid};
use outflow_core::limit::algorithm::Algorithm;
use outflow_core::limit::saved::Memory;
use outflow_core::limit::{Fill, Headroom, LimitSpec, Need, Until};
use outflow_core::time::{Mono, Nanos, Now};

use super::held::Held;
use super::promises::Promises;
use super::spaced::Runs;

/// Who asks under old numbers hears of the new ones soon.
const STALE_PAUSE: Nanos = Nanos::from_millis(50);

/// What was counted so far.
#[derive(Clone, Debug)]
enum Count {
    Leases {
        algorithm: Algorithm,
        leasing: Leasing,
    },
    Runs(Runs),
}

/// One shared limit.
#[derive(Clone, Debug)]
pub(super) struct Counter {
    count: Option<Count>,
    /// The largest cost that was asked for.
    cost: u32,
    promises: Promises,
    /// When the state before this was lost.
    lost_at: Option<Now>,
    paused_until: Mono,
    /// The latest version that anybody asked under.
    version: u64,
    held: Held,
    owed: Owed,
}

impl Counter {
    /// A limit of which nothing is known: nothing was used, or the state was
    /// lost at a time, and all of it may have been.
    pub fn new(lost_at: Option<Now>) -> Self {
        Self {
            count: None,
            cost: 1,
            promises: Promises::default(),
            lost_at,
            paused_until: Mono(0),
            version: 0,
            held: Held::after(lost_at.map(|now| now.mono)),
            owed: Owed::default(),
        }
    }

    /// Answers a request for tokens.
    pub fn ask(
        &mut self,
        settings: &Settings,
        now: &Now,
        node: u64,
        request: &LeaseRequest,
    ) -> LeaseAnswer {
        let bar = self.bar(now, request);
        self.version = self.version.max(request.version);
        if let LimitSpec::Concurrency { slots } = request.spec {
            return self.held.ask(now.mono, node, slots, request, bar);
        }
        if let Some(retry_after) = bar {
            return LeaseAnswer::Refused { retry_after };
        }

        if let Some(lost_at) = self.lost_at
            && is_long(&request.spec)
            && now.mono < lost_at.mono + QUIET
        {
            let retry_after = (lost_at.mono + QUIET).since(now.mono);
            return LeaseAnswer::Refused { retry_after };
        }

        // A cost that can never fit is no reason to lease on worse terms.
        let fits = request.at_least <= request.spec.capacity();
        // Nor is one that fitted once and does not any more.
        let cost = self.cost.max(request.at_least).max(request.at_most);
        let cost = cost.min(request.spec.capacity());
        let terms = Terms::of(settings, &request.spec, request.headroom, cost);
        if !fits || terms == Terms::Never {
            let retry_after = NEVER_PAUSE;
            return LeaseAnswer::Refused { retry_after };
        }
        self.cost = cost;
        self.agree(settings, now, terms);
        let due = Due {
            mine: self.owed.of(now.mono, request.class),
            others: self.owed.below(now.mono, request.class),
        };
        let mut answer = self.answer(settings, now, request, due);
        self.note(settings, now.mono, request, &mut answer);
        answer
    }

    /// What the count answers.
    fn answer(
        &mut self,
        settings: &Settings,
        now: &Now,
        request: &LeaseRequest,
        due: Due,
    ) -> LeaseAnswer {
        let cost = self.cost;
        match &mut self.count {
            Some(Count::Runs(runs)) => {
                let wanted = request.tokens.max(request.at_least);
                runs.ask(settings, now.mono, (wanted, cost), due)
            }
            Some(Count::Leases { algorithm, leasing }) => {
                let leasing = &*leasing;
                let mut desk = Desk {
                    now,
                    request,
                    cost,
                    due,
                    leasing,
                    algorithm,
                    promises: &mut self.promises,
                };
                desk.lease(settings)
            }
            None => LeaseAnswer::Refused {
                retry_after: NEVER_PAUSE,
            },
        }
    }

    /// Notes what lower classes have earned by an answer, and says so.
    fn note(
        &mut self,
        settings: &Settings,
        now: Mono,
        request: &LeaseRequest,
        answer: &mut LeaseAnswer,
    ) {
        let (class, waiting) = (request.class, request.waiting);
        match answer {
            LeaseAnswer::Leased { tokens, owed, .. } => {
                let most = match &self.count {
                    Some(Count::Runs(runs)) => runs.spacing.run_max(settings),
                    _ => request.spec.capacity(),
                };
                let most = owed::most(most, self.cost);
                self.owed.hear(now, waiting, Nanos::ZERO);
                self.owed.paid(class, *tokens);
                self.owed.granted(now, (class, waiting), *tokens, most);
                *owed = self.owed.handed_over(now, class, waiting);
            }
            LeaseAnswer::Refused { retry_after } => {
                self.owed.hear(now, waiting, *retry_after);
            }
            LeaseAnswer::Away => {}
        }
    }

    /// For how long nothing is granted to this request, whatever is there.
    fn bar(&self, now: &Now, request: &LeaseRequest) -> Option<Nanos> {
        if request.version < self.version {
            return Some(STALE_PAUSE);
        }
        let left = self.paused_until.since(now.mono);
        (left > Nanos::ZERO).then_some(left)
    }

    /// Counts what a node debited before the counts were lost.
    pub fn rebuild(&mut self, settings: &Settings, now: &Now, report: &DebitReport) {
        let terms = Terms::of(settings, &report.spec, Headroom::default(), 1);
        if self.count.is_none() {
            self.agree(settings, now, terms);
        }
        let Some(Count::Leases { algorithm, leasing }) = &mut self.count else {
            return;
        };
        let mut memory = algorithm.save(now);
        for (place, tokens) in &report.debits {
            let tokens = u32::try_from(*tokens).unwrap_or(u32::MAX);
            match (&mut memory, place) {
                (Memory::SlidingWindow { taken }, DebitPlace::Age(age)) => {
                    taken.push((age.0, tokens));
                }
                (Memory::CalendarWindow { spans }, DebitPlace::Span(start, end)) => {
                    let mut known = spans.iter_mut();
                    match known.find(|it| (it.0, it.1) == (start.0, end.0)) {
                        Some(span) => span.2 = span.2.saturating_add(tokens),
                        None => spans.push((start.0, end.0, tokens)),
                    }
                }
                _ => {}
            }
        }
        if let Memory::SlidingWindow { taken } = &mut memory {
            taken.sort_by_key(|(age, _)| std::cmp::Reverse(*age));
        }
        *algorithm = Algorithm::restore(&leasing.inner, &memory, Nanos::ZERO, (0, 1), now);
    }

    /// Grants nothing before this.
    pub fn pause(&mut self, until: Mono) {
        self.paused_until = self.paused_until.max(until);
    }

    /// Lifts a pause.
    pub fn resume(&mut self) {
        self.paused_until = Mono::default();
    }

    /// Takes tokens back that were debited at `since`.
    pub fn give_back(&mut self, now: &Now, tokens: u32, since: Mono) {
        if let Some(Count::Leases { algorithm, .. }) = &mut self.count {
            algorithm.give_back(now, tokens, since);
        }
    }

    /// Goes on under these terms.
    fn agree(&mut self, settings: &Settings, now: &Now, terms: Terms) {
        let count = match (self.count.take(), terms) {
            (Some(Count::Leases { algorithm, leasing }), Terms::Leases(new)) if leasing == new => {
                Count::Leases { algorithm, leasing }
            }
            (Some(Count::Leases { mut algorithm, .. }), Terms::Leases(leasing)) => {
                algorithm.reconfigure(now, &leasing.inner);
                Count::Leases { algorithm, leasing }
            }
            (Some(Count::Runs(mut runs)), Terms::Runs(spacing)) => {
                runs.change(now.mono, spacing, self.cost);
                Count::Runs(runs)
            }
            (Some(Count::Leases { leasing, .. }), Terms::Runs(spacing)) => {
                Count::Runs(Runs::after(spacing, now.mono + paid(leasing.life)))
            }
            (Some(Count::Runs(runs)), Terms::Leases(leasing)) => {
                let algorithm = after_runs(now, &runs, self.cost, &leasing.inner);
                Count::Leases { algorithm, leasing }
            }
            (None, Terms::Leases(leasing)) => {
                let algorithm = begin(settings, now, self.lost_at, &leasing.inner);
                Count::Leases { algorithm, leasing }
            }
            (None, Terms::Runs(spacing)) => {
                let lost_at = self.lost_at.map(|lost_at| lost_at.mono);
                let ends_at = lost_at.map(|at| at + settings.longest());
                Count::Runs(Runs::after(spacing, ends_at.unwrap_or_default()))
            }
            (_, Terms::Never) => return,
        };
        self.count = Some(count);
    }
}

/// A count of which nothing is known.
fn begin(settings: &Settings, now: &Now, lost_at: Option<Now>, spec: &LimitSpec) -> Algorithm {
    // Long windows are rebuilt from what nodes report.
    let Some(lost_at) = lost_at.filter(|_| !is_long(spec)) else {
        return Algorithm::new(spec, now, Fill::Full);
    };
    // Before it was lost, a bucket may have been leased in runs.
    let mono = match spec {
        LimitSpec::TokenBucket { .. } => lost_at.mono + settings.longest(),
        _ => lost_at.mono,
    };
    Algorithm::new(spec, &Now { mono, ..lost_at }, Fill::Empty)
}

/// A count that goes on after runs.
fn after_runs(now: &Now, runs: &Runs, cost: u32, spec: &LimitSpec) -> Algorithm {
    if let LimitSpec::TokenBucket { .. } = spec {
        let overlap = runs.spacing.overlap;
        let mono = now.mono.max(runs.free_at(cost) + overlap);
        return Algorithm::new(spec, &Now { mono, ..*now }, Fill::Empty);
    }
    let mut algorithm = Algorithm::new(spec, now, Fill::Full);
    algorithm.take(now, runs.tokens.min(spec.capacity()));
    algorithm
}

/// What is owed to the class that asks, and to those below it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    pub mine: u32,
    pub others: u32,
}

/// A request before a count that leases.
struct Desk<'a> {
    now: &'a Now,
    request: &'a LeaseRequest,
    cost: u32,
    due: Due,
    leasing: &'a Leasing,
    algorithm: &'a mut Algorithm,
    promises: &'a mut Promises,
}

impl Desk<'_> {
    fn lease(&mut self, settings: &Settings) -> LeaseAnswer {
        let life = match self.life(settings) {
            Ok(life) => life,
            Err(retry_after) => return LeaseAnswer::Refused { retry_after },
        };
        let now = self.now;
        let at_least = self.request.at_least.max(1);
        let wanted = self.leasing.wanted(self.request.tokens).max(at_least);
        let lot = self.leasing.lot().min(wanted).max(at_least);
        let contended = self.promises.are_open(now.mono, self.request.class);
        let is_due = self.due.mine >= at_least;
        let (least, wanted, floor) = match (is_due, contended) {
            (true, _) => (at_least, wanted.min(self.due.mine), Need::ZERO),
            (false, true) => (lot, wanted, self.floor()),
            (false, false) => (at_least, wanted, self.floor()),
        };
        let kept = if is_due {
            Need::ZERO
        } else {
            self.kept_for_others(floor)
        };
        let above = floor + kept;
        let fits = |tokens: u32| self.algorithm.fits(now, Need::whole(tokens) + above);
        if !fits(least) {
            let is_there = self.algorithm.fits(now, Need::whole(least) + floor);
            let retry_after = self.refuse(lot, at_least, (floor, above));
            let retry_after = match is_there {
                true => retry_after.min(OWED_PAUSE),
                false => retry_after,
            };
            return LeaseAnswer::Refused { retry_after };
        }
        let tokens = largest(least, wanted, fits);
        self.algorithm.take(now, tokens);
        LeaseAnswer::Leased {
            tokens,
            life,
            wait: Nanos::ZERO,
            spacing: Nanos::ZERO,
            receipt: Receipt::default(),
            owed: Default::default(),
        }
    }

    /// What is owed to lower classes; the largest cost must still find its way.
    fn kept_for_others(&self, floor: Need) -> Need {
        let holds = self.leasing.inner.capacity();
        let most = holds.saturating_sub(self.cost.saturating_mul(2));
        Need::whole(self.due.others.min(most)).min(Need::whole(most).minus(floor))
    }

    fn life(&self, settings: &Settings) -> Result<Nanos, Nanos> {
        match &self.request.spec {
            LimitSpec::CalendarWindow { period, zone, .. } => {
                calendar::life(settings, self.now.wall, (*period, zone))
            }
            _ => Ok(self.leasing.life),
        }
    }

    fn floor(&self) -> Need {
        let (headroom, class) = (self.request.headroom, self.request.class);
        match &self.request.spec {
            LimitSpec::TokenBucket { burst, .. } => {
                let holds = self.leasing.inner.capacity();
                bucket::floor(headroom, class, *burst, holds, self.cost)
            }
            LimitSpec::CalendarWindow {
                count,
                period,
                zone,
            } => {
                let quota = (*count, *period, zone);
                calendar::floor(headroom, class, self.now.wall, quota, self.cost)
            }
            _ => Need::ZERO,
        }
    }

    /// Sends somebody away until a lot will be there, or else the least.
    fn refuse(&mut self, lot: u32, at_least: u32, (floor, above): (Need, Need)) -> Nanos {
        if let Some(retry_after) = self.melts_in(at_least, floor) {
            return retry_after;
        }
        let until = |tokens: u32| self.algorithm.until(self.now, Need::whole(tokens) + above);
        let until = match until(lot) {
            Until::Never => until(at_least),
            until => until,
        };
        let first = match until {
            Until::Now => self.now.mono,
            Until::At(at) if at < Mono::NEVER => at,
            _ => return NEVER_PAUSE,
        };
        let rate = self.leasing.inner.shape().rate;
        let takes = rate.map_or(Nanos::ZERO, |rate| rate.time_for(u64::from(lot)));
        let at = self.promises.add(self.request.class, first, takes);
        at.since(self.now.mono)
    }

    /// When the floor of a quota lets the least through.
    fn melts_in(&self, at_least: u32, floor: Need) -> Option<Nanos> {
        let LimitSpec::CalendarWindow {
            count,
            period,
            zone,
        } = &self.request.spec
        else {
            return None;
        };
        if floor == Need::ZERO {
            return None;
        }
        let free = count.saturating_sub(self.algorithm.used(self.now));
        let room = Need::whole(free).minus(Need::whole(at_least));
        let quota = (*count, *period, zone);
        let (headroom, class) = (self.request.headroom, self.request.class);
        Some(calendar::melts_in(
            headroom,
            class,
            self.now.wall,
            quota,
            room,
        ))
    }
}

/// The largest number from `low` to `high` that fits; `low` does.
fn largest(low: u32, high: u32, fits: impl Fn(u32) -> bool) -> u32 {
    let (mut fitting, mut above) = (low, high.saturating_add(1).max(low + 1));
    while above - fitting > 1 {
        let middle = fitting + (above - fitting) / 2;
        if fits(middle) {
            fitting = middle;
        } else {
            above = middle;
        }
    }
    fitting
}
