//! How fully and evenly a pool uses its accounts, at full size: the simulation
//! that the tests of the pool run at a fifth of it, the worst of three seeds.

#[path = "../../../crates/core/tests/core/pool/bucket.rs"]
mod bucket;
#[allow(dead_code)]
#[path = "../../../crates/core/tests/core/pool/case.rs"]
mod case;
#[path = "../../../crates/core/tests/core/pool/disturb.rs"]
mod disturb;
#[path = "../../../crates/core/tests/core/pool/sim.rs"]
mod sim;
#[path = "../../../crates/core/tests/core/pool/tally.rs"]
mod tally;

use serde_json::{Value, json};

use self::case::{Case, Findings, Load};
use self::sim::Sim;

const SEEDS: u64 = 3;
/// A share may fall short by a point.
const POINT: f64 = 0.01;

/// What a case must reach, to within a point.
struct Goal {
    /// Sent of what could have been sent.
    of_possible: f64,
    /// The least and the most used account, of the mean.
    accounts: (f64, f64),
    worst_lane: f64,
    /// At most, of 1,000 sends.
    openings: f64,
    /// At most.
    critical_p99_ms: u64,
}

impl Goal {
    fn is_met(&self, found: &Findings) -> bool {
        found.drained
            && found.of_possible >= self.of_possible - POINT
            && found.accounts.0 >= self.accounts.0 - POINT
            && found.accounts.1 <= self.accounts.1 + POINT
            && found.worst_lane >= self.worst_lane - POINT
            && found.openings_per_1000 <= self.openings + 1_000.0 * POINT
            && found.critical_p99_ms <= self.critical_p99_ms
    }
}

/// Runs all cases; their rows, and whether every goal was met.
pub fn run(only: Option<&str>) -> (Vec<Value>, bool) {
    println!(
        "\n{:<48} {:>7} {:>11} {:>7} {:>8} {:>8} {:>8}",
        "pool", "sent", "accounts", "lane", "searches", "openings", "p99 ms"
    );
    let mut all_met = true;
    let mut rows = Vec::new();
    for (name, case, goal) in cases() {
        if only.is_some_and(|only| !name.contains(only)) {
            continue;
        }
        let found = (1..=SEEDS)
            .map(|seed| Sim::new(case, seed, false).run())
            .reduce(worse)
            .expect("there are seeds");
        let met = goal.is_met(&found);
        all_met &= met;
        println!(
            "{name:<48} {:>7.3} {:>5.2}-{:<5.2} {:>7.2} {:>8.2} {:>8.1} {:>8} {} ({} sends)",
            found.of_possible,
            found.accounts.0,
            found.accounts.1,
            found.worst_lane,
            found.searches_per_send,
            found.openings_per_1000,
            found.critical_p99_ms,
            if met { "ok" } else { "BELOW GOAL" },
            found.sent,
        );
        rows.push(json!({
            "name": name, "sent_of_possible": found.of_possible,
            "accounts_min": found.accounts.0, "accounts_max": found.accounts.1,
            "worst_lane": found.worst_lane, "searches_per_send": found.searches_per_send,
            "openings_per_1000": found.openings_per_1000,
            "critical_p99_ms": found.critical_p99_ms, "goal_met": met,
        }));
    }
    (rows, all_met)
}

/// The worse of both in each figure.
fn worse(one: Findings, other: Findings) -> Findings {
    Findings {
        sent: one.sent.min(other.sent),
        of_possible: one.of_possible.min(other.of_possible),
        accounts: (
            one.accounts.0.min(other.accounts.0),
            one.accounts.1.max(other.accounts.1),
        ),
        worst_lane: one.worst_lane.min(other.worst_lane),
        searches_per_send: one.searches_per_send.max(other.searches_per_send),
        looks_per_send: one.looks_per_send.max(other.looks_per_send),
        openings_per_1000: one.openings_per_1000.max(other.openings_per_1000),
        taken_per_1000: one.taken_per_1000.max(other.taken_per_1000),
        critical_p99_ms: one.critical_p99_ms.max(other.critical_p99_ms),
        trace: one.trace,
        drained: one.drained && other.drained,
    }
}

fn cases() -> Vec<(&'static str, Case, Goal)> {
    let spread = |load| Case::new(500, 20, load);
    let mut products = spread(Load::Saturated).rate(20, 5);
    products.product = Some((500, 2));
    let mut blocked = spread(Load::Percent(70));
    blocked.blocked_percent = 10;
    let mut failing = spread(Load::Percent(70));
    failing.connects_fail_percent = 20;
    let mut slow = spread(Load::Saturated).rate(100, 20).sessions(60, 5);
    slow.connect_ms = (500, 500);
    slow.measured_s = 10;
    let wide = Case::new(8, 1_000, Load::Percent(70)).rate(100, 10);
    let wide_goal = || goal((0.98, 1.02), 0.95, 87.0, 483);
    let even = (1.0, 1.0);
    vec![
        (
            "500 x 20, accounts saturated",
            spread(Load::Saturated),
            goal(even, 1.0, 10.0, 11),
        ),
        (
            "500 x 20, products saturated",
            products,
            goal(even, 1.0, 0.0, 24),
        ),
        (
            "500 x 20, one hot lane",
            spread(Load::Hot),
            goal(even, 1.0, 16.0, 3),
        ),
        (
            "500 x 20, 70 %",
            spread(Load::Percent(70)),
            goal((0.62, 1.33), 1.0, 8.0, 4),
        ),
        (
            "500 x 20, 70 %, 10 % blocked",
            blocked,
            goal((0.63, 1.26), 1.0, 8.0, 4),
        ),
        (
            "500 x 20, 70 %, 20 % of connects fail",
            failing,
            goal((0.63, 1.31), 1.0, 11.0, 4),
        ),
        (
            "500 x 20, connects of 500 ms, 5 messages each",
            slow,
            goal(even, 0.99, 200.0, 8),
        ),
        (
            "8 x 1,000, 70 %, 100 sessions each",
            wide.sessions(100, 100),
            wide_goal(),
        ),
        (
            "8 x 1,000, 70 %, 125 sessions each",
            wide.sessions(125, 100),
            wide_goal(),
        ),
        (
            "8 x 1,000, 70 %, 150 sessions each",
            wide.sessions(150, 100),
            wide_goal(),
        ),
    ]
}

fn goal(accounts: (f64, f64), worst_lane: f64, openings: f64, critical_p99_ms: u64) -> Goal {
    Goal {
        of_possible: 1.0,
        accounts,
        worst_lane,
        openings,
        critical_p99_ms,
    }
}
