//! The page that Prometheus reads: what was counted, and what is so now.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use outflow_core::class::Class;
use outflow_core::message::Channel;
use outflow_core::outcome::ReplyClass;
use outflow_core::policy::scope_set::ScopeSet;
use outflow_core::schedule::waits::WAIT_BOUNDS;
use outflow_core::time::Nanos;

use crate::catalogue::IntakeRefusal;
use crate::declarations::{self as declared, Metric};
use crate::destinations::OTHER;
use crate::exposition::Exposition;
use crate::histogram::Reading;
use crate::metrics::{ALERTS, CAUSES, Counts, FINAL, Metrics};
use crate::snapshot::{Snapshot, ThrottleNow};

impl Metrics {
    /// All metrics as text; [`CONTENT_TYPE`](crate::metrics::CONTENT_TYPE) is
    /// its media type.
    pub fn render(&self, now: &Snapshot) -> String {
        let mut page = Exposition::default();
        self.render_messages(&mut page);
        render_queue(&mut page, now);
        self.render_limits(&mut page, now);
        self.render_store(&mut page);
        self.render_server(&mut page, now);
        page.finish()
    }

    fn render_messages(&self, page: &mut Exposition) {
        let metric = &declared::MESSAGES_ACCEPTED;
        page.begin(metric);
        each(&self.accepted, |channel, class, [count]| {
            page.count(metric, &[channel, class], *count);
        });
        let metric = &declared::INTAKE_REFUSED;
        page.begin(metric);
        for (reason, count) in IntakeRefusal::ALL.iter().zip(&self.refused) {
            page.count(metric, &[reason.as_str()], count.load(Relaxed));
        }
        let metric = &declared::ATTEMPTS;
        page.begin(metric);
        self.attempts.read(|channel, destination, outcome, count| {
            let labels = [channel.as_str(), destination, outcome.as_str()];
            page.count(metric, &labels, count);
        });
        let metric = &declared::ATTEMPT_SECONDS;
        page.begin(metric);
        for (channel, histogram) in Channel::ALL.iter().zip(&self.attempt_seconds) {
            let reading = histogram.read();
            if *channel == Channel::Email || reading.parts.iter().any(|&part| part > 0) {
                page.histogram(metric, &[channel.as_str()], &reading);
            }
        }
        let metric = &declared::MESSAGES_SETTLED;
        page.begin(metric);
        each(&self.settled, |channel, class, counts| {
            for (state, count) in FINAL.iter().zip(counts) {
                page.count(metric, &[channel, class, state.as_str()], *count);
            }
        });
        let metric = &declared::DEAD_LETTERS;
        page.begin(metric);
        each(&self.dead, |channel, class, counts| {
            for (cause, count) in CAUSES.iter().zip(counts) {
                page.count(metric, &[channel, class, cause.as_str()], *count);
            }
        });
        let metric = &declared::DEFERRALS;
        page.begin(metric);
        for (class, counts) in Class::ALL.iter().zip(&self.deferrals) {
            for (reason, count) in ["attempt", "limit"].iter().zip(counts) {
                page.count(metric, &[class.as_str(), reason], count.load(Relaxed));
            }
        }
        let metric = &declared::FEEDBACK;
        page.begin(metric);
        for (reason, count) in ReplyClass::ALL.iter().zip(&self.feedback) {
            page.count(metric, &[reason.as_str()], count.load(Relaxed));
        }
        let metric = &declared::TIME_TO_DELIVERY;
        page.begin(metric);
        for (class, histogram) in Class::ALL.iter().zip(&self.time_to_delivery) {
            page.histogram(metric, &[class.as_str()], &histogram.read());
        }
    }

    fn render_limits(&self, page: &mut Exposition, now: &Snapshot) {
        let metric = &declared::LIMIT_WAIT;
        page.begin(metric);
        for (scopes, waits) in &now.waits {
            let reading = Reading {
                bounds: &WAIT_BOUNDS,
                parts: waits.parts.to_vec(),
                sum: waits.waited,
            };
            page.histogram(metric, &[&label(*scopes)], &reading);
        }
        let metric = &declared::LIMIT_REFUSED;
        page.begin(metric);
        for (scopes, waits) in &now.waits {
            page.count(metric, &[&label(*scopes)], waits.came);
        }
        let tokens = now.limits.iter();
        let tokens = tokens.map(|limit| (limit.key.as_str(), limit.tokens as f64));
        bounded(page, &declared::LIMIT_TOKENS, tokens, self.bounds.limits);
        let rates = now.limits.iter();
        let rates = rates.filter_map(|limit| Some((limit.key.as_str(), limit.rate?)));
        bounded(page, &declared::LIMIT_RATE, rates, self.bounds.limits);
        let held = now.accounts.iter();
        let held = held.map(|meter| (meter.account.as_str(), meter.held as f64));
        bounded(page, &declared::RATE_LIMITED, held, self.bounds.accounts);
        let waiting = now.accounts.iter();
        let waiting = waiting.map(|meter| (meter.account.as_str(), meter.waiting as f64));
        bounded(page, &declared::DEFERRED, waiting, self.bounds.accounts);
        let breakers = now.breakers.iter();
        let breakers = breakers.map(|(lane, state)| (lane.as_str(), f64::from(*state)));
        bounded(page, &declared::BREAKER_STATE, breakers, self.bounds.limits);
    }

    fn render_store(&self, page: &mut Exposition) {
        page.begin(&declared::STORE_COMMIT);
        page.histogram(&declared::STORE_COMMIT, &[], &self.commit_seconds.read());
        let failing = u64::from(self.store_failing.load(Relaxed));
        let dns_away = u64::from(self.dns_away.load(Relaxed));
        let ledger = self.ledger.counts();
        for (metric, count) in [
            (&declared::STORE_RECORDS, self.records.load(Relaxed)),
            (&declared::STORE_BYTES, self.bytes.load(Relaxed)),
            (&declared::STORE_FAILING, failing),
            (&declared::DNS_AWAY, dns_away),
            (&declared::LEDGER_AWAY, u64::from(self.ledger.is_away())),
            (&declared::LEDGER_ROUND_TRIPS, ledger.round_trips),
            (&declared::LEDGER_LEASED, ledger.leased),
            (&declared::LEDGER_GIVEN_BACK, ledger.given_back),
        ] {
            page.begin(metric);
            page.count(metric, &[], count);
        }
        page.begin(&declared::ALERTS);
        for (alert, count) in ALERTS.iter().zip(&self.alerts) {
            page.count(&declared::ALERTS, &[alert], count.load(Relaxed));
        }
    }

    fn render_server(&self, page: &mut Exposition, now: &Snapshot) {
        let metric = &declared::HTTP_REQUESTS;
        page.begin(metric);
        self.requests.read_counts(|method, route, status, count| {
            page.count(metric, &[method, route, status], count);
        });
        let metric = &declared::HTTP_REQUEST_SECONDS;
        page.begin(metric);
        self.requests.read_seconds(|method, route, reading| {
            page.histogram(metric, &[method, route], reading);
        });
        self.submissions.render(page);
        let metric = &declared::REPORTS;
        page.begin(metric);
        for (result, count) in ["matched", "unmatched", "unread"].iter().zip(&self.reports) {
            page.count(metric, &[result], count.load(Relaxed));
        }
        for (metric, count) in [
            (&declared::SUPPRESSED_RECIPIENTS, now.suppressed),
            (&declared::SUPPRESSIONS_HELD, now.suppressions_held),
            (&declared::SUPPRESSIONS_LET_GO, now.suppressions_let_go),
        ] {
            page.begin(metric);
            page.count(metric, &[], count);
        }
        render_throttle(page, &now.throttle);
        page.begin(&declared::LOG_LINES_DROPPED);
        for (log, dropped) in ["server", "attempts", "grants"]
            .iter()
            .zip(now.lines_dropped)
        {
            page.count(&declared::LOG_LINES_DROPPED, &[log], dropped);
        }
        page.begin(&declared::BUILD_INFO);
        page.count(&declared::BUILD_INFO, &[self.version], 1);
    }
}

fn render_throttle(page: &mut Exposition, now: &ThrottleNow) {
    let metric = &declared::THROTTLE_ACQUIRES;
    page.begin(metric);
    for (result, count) in ["granted", "refused", "failed"].iter().zip(now.results) {
        page.count(metric, &[result], count);
    }
    for (metric, count) in [
        (&declared::THROTTLE_WAITED, now.waited),
        (&declared::THROTTLE_WAITING, now.waiting),
        (&declared::THROTTLE_KEYS, now.keys),
        (&declared::THROTTLE_PERMITS, now.permits),
    ] {
        page.begin(metric);
        page.count(metric, &[], count);
    }
}

fn render_queue(page: &mut Exposition, now: &Snapshot) {
    let metric = &declared::QUEUE_MESSAGES;
    page.begin(metric);
    for depth in &now.queue {
        let labels = [
            depth.channel.as_str(),
            depth.class.as_str(),
            depth.state.as_str(),
        ];
        page.count(metric, &labels, depth.messages);
    }
    let metric = &declared::QUEUE_OLDEST_AGE;
    page.begin(metric);
    for (class, age) in Class::ALL.iter().zip(now.oldest_age) {
        let age = age.unwrap_or(Nanos::ZERO);
        page.value(metric, &[class.as_str()], age.as_secs_f64());
    }
    for (metric, count) in [
        (&declared::IN_FLIGHT, now.in_flight),
        (&declared::SESSIONS, now.sessions),
    ] {
        page.begin(metric);
        page.count(metric, &[], count);
    }
}

/// One value per name; those beyond the bound are added up as `other`.
fn bounded<'a>(
    page: &mut Exposition,
    metric: &Metric,
    values: impl Iterator<Item = (&'a str, f64)>,
    max: usize,
) {
    page.begin(metric);
    let mut rest: Option<f64> = None;
    for (at, (name, value)) in values.enumerate() {
        if at < max {
            page.value(metric, &[name], value);
        } else {
            rest = Some(rest.unwrap_or(0.0) + value);
        }
    }
    if let Some(rest) = rest {
        page.value(metric, &[OTHER], rest);
    }
}

/// Counters by channel and class. Channels that nobody used are left out, but
/// not mail: a rate needs a beginning.
fn each<const N: usize>(counts: &Counts<N>, mut each: impl FnMut(&str, &str, &[u64; N])) {
    for (channel, counts) in Channel::ALL.iter().zip(counts) {
        let read = |count: &AtomicU64| count.load(Relaxed);
        let used = counts.iter().flatten().any(|count| read(count) > 0);
        if !used && *channel != Channel::Email {
            continue;
        }
        for (class, counts) in Class::ALL.iter().zip(counts) {
            let counts = counts.each_ref().map(read);
            each(channel.as_str(), class.as_str(), &counts);
        }
    }
}

/// What the scopes of a limit are called: `isp`, `ip/isp`.
fn label(scopes: ScopeSet) -> String {
    let words: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
    words.join("/")
}
