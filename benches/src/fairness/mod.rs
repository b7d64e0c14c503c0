//! `fairness`: how evenly and how fully the schedule uses several full limits,
//! against the max-min fair optimum, and a pool its accounts.

mod cases;
mod optimum;
mod pool;
mod run;

use serde_json::{Value, json};

use self::run::Outcome;

/// Runs all cases, the large ones if asked; the last line of the output.
pub fn run(large: bool, only: Option<&str>) -> Value {
    println!(
        "{:<48} {:>7} {:>7} {:>7} {:>7} {:>7}",
        "case", "use", "share", "visits", "total", ">=99%"
    );
    let mut outcomes: Vec<(Outcome, bool)> = Vec::new();
    for (case, goal) in cases::all(large) {
        if only.is_some_and(|only| !case.name.contains(only)) {
            continue;
        }
        let outcome = run::run(&case);
        let met = outcome.use_min >= goal.use_min
            && outcome.share_min >= goal.share_min
            && outcome.visits <= goal.visits;
        println!(
            "{:<48} {:>7.3} {:>7.3} {:>7.2} {:>7.3} {:>7.2} {} ({} sends)",
            outcome.name,
            outcome.use_min,
            outcome.share_min,
            outcome.visits,
            outcome.total,
            outcome.use_99,
            if met { "ok" } else { "BELOW GOAL" },
            outcome.sends,
        );
        outcomes.push((outcome, met));
    }
    let (pool_cases, pools_met) = if large {
        pool::run(only)
    } else {
        (Vec::new(), true)
    };
    let cases: Vec<Value> = outcomes
        .iter()
        .map(|(outcome, met)| {
            json!({
                "name": outcome.name, "use_min": outcome.use_min, "share_min": outcome.share_min,
                "visits": outcome.visits, "total": outcome.total, "goal_met": met,
            })
        })
        .collect();
    let worst = |pick: fn(&Outcome) -> f64, fold: fn(f64, f64) -> f64| {
        outcomes
            .iter()
            .map(|(outcome, _)| pick(outcome))
            .reduce(fold)
            .unwrap_or(0.0)
    };
    json!({
        "bench": "fairness",
        "cases": cases,
        "pool_cases": pool_cases,
        "worst_use": worst(|o| o.use_min, f64::min),
        "worst_share": worst(|o| o.share_min, f64::min),
        "worst_visits": worst(|o| o.visits, f64::max),
        "goals_met": pools_met && outcomes.iter().all(|(_, met)| *met),
    })
}
