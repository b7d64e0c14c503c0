//! `control`: how well the controller finds hidden limits, beside simpler rules
//! for the rate and an all-knowing sender, in virtual time.

use std::io;

use outflow_core::time::Nanos;
use outflow_simulator::hidden::library;
use outflow_simulator::hidden::sender::Rule;
use outflow_simulator::hidden::table::{self, Plan, Row};
use serde_json::Value;

/// What to run.
pub struct Wanted {
    pub alone: bool,
    pub engine: bool,
    pub others: bool,
    pub only: Option<String>,
    pub rates: Vec<f64>,
    pub starts: Vec<f64>,
    pub hours: u64,
}

/// Runs it; the last line of the output.
pub fn run(wanted: Wanted) -> io::Result<Value> {
    let sound = |figures: &[f64]| figures.iter().all(|it| (0.001..=1_000.0).contains(it));
    if !sound(&wanted.rates) || !sound(&wanted.starts) || !(5..=240).contains(&wanted.hours) {
        return Err(io::Error::other(
            "rates and starts go from 0.001 to 1000, hours from 5 to 240",
        ));
    }
    let mut providers = library::kinds().map_err(io::Error::other)?;
    if wanted.others {
        providers.extend(library::others().map_err(io::Error::other)?);
    }
    if let Some(only) = &wanted.only {
        providers.retain(|named| named.name.contains(only.as_str()));
    }
    let rules = if wanted.engine {
        vec![Rule::Seek, Rule::Engine]
    } else if wanted.alone {
        vec![Rule::Seek]
    } else {
        Rule::ALL.to_vec()
    };
    let plan = Plan {
        providers,
        fulls: wanted.rates,
        starts: wanted.starts,
        rules: rules.clone(),
        length: Nanos::from_secs(wanted.hours * 3_600),
        seed: 1,
    };
    println!(
        "delivered, in % of the all-knowing sender / deferred for the rate, in %; from hour 4"
    );
    let rows = table::rows(&plan, |row| {
        // The whole engine takes minutes for a day at 100 a second.
        eprintln!("{}", told(row));
        if row.misses() {
            println!("misses the target: {}", told(row));
        }
    });
    println!("{}", table::markdown(&rows, &rules));
    Ok(table::json(&rows))
}

fn told(row: &Row) -> String {
    let rule = row.rule.title();
    format!(
        "{rule}: {} at {}/s from x{}",
        row.title, row.full, row.start
    )
}
