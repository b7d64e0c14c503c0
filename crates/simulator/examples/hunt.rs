//! Runs a range of random worlds once each, on all cores, and prints the seeds in
//! which a checker speaks. It needs neither the server nor its dependencies, so it
//! builds quickly after a change of the engine.
//!
//! ```sh
//! cargo run --profile ci -p outflow-simulator --example hunt -- FIRST_SEED COUNT
//! ```
//!
//! `--narrow` runs the random scenarios that the worlds begin as: without relays,
//! pools and operators. `--real` gives all of them the store of production on a
//! simulated disk.

#![allow(clippy::print_stdout)]

use std::panic::catch_unwind;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use outflow_simulator::scenario::Scenario;
use outflow_simulator::scenario::random::random_faults;
use outflow_simulator::scenario::random_world::random_world;
use outflow_simulator::scenario::store::random_store;
use outflow_simulator::simulate::run;

/// Progress is printed after so many worlds.
const PROGRESS: u64 = 500;

fn main() -> ExitCode {
    let (flags, numbers): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .partition(|it| it.starts_with("--"));
    let narrow = flags.iter().any(|flag| flag == "--narrow");
    let real = flags.iter().any(|flag| flag == "--real");
    let known = flags.len() == usize::from(narrow) + usize::from(real);
    let mut numbers = numbers.iter().map(|it| it.parse::<u64>());
    let (Some(Ok(first)), Some(Ok(count)), true) = (numbers.next(), numbers.next(), known) else {
        println!("usage: hunt [--narrow] [--real] FIRST_SEED COUNT");
        return ExitCode::from(2);
    };
    let generate = |seed| {
        let mut scenario = match narrow {
            true => random_faults(seed),
            false => random_world(seed),
        };
        if real {
            random_store(&mut scenario, seed);
        }
        scenario
    };
    let (next, done, spoken) = (AtomicU64::new(first), AtomicU64::new(0), AtomicU64::new(0));
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        break;
                    }
                    if let Some(problem) = problem_of(&generate(seed), seed) {
                        spoken.fetch_add(1, Ordering::Relaxed);
                        println!("seed {seed}: {problem}");
                    }
                    let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                    if done.is_multiple_of(PROGRESS) {
                        println!("{done} of {count} worlds");
                    }
                }
            });
        }
    });
    let spoken = spoken.into_inner();
    println!("checkers spoke in {spoken} of {count} random worlds from seed {first} on");
    if spoken == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// What the checkers first say of a world, if they say anything.
fn problem_of(scenario: &Scenario, seed: u64) -> Option<String> {
    match catch_unwind(|| run(scenario, seed)) {
        Ok(Ok((_, violations))) => violations
            .first()
            .map(|it| format!("{} at {}: {}", it.checker, it.at, it.what)),
        Ok(Err(problem)) => Some(problem),
        Err(_) => Some("it panicked; see above".to_owned()),
    }
}
