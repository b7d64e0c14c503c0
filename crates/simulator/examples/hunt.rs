//! Runs a range of random worlds, on all cores, and prints the seeds in which a
//! checker speaks, and in the end a hash over the traces of all of them. It needs
//! neither the server nor its dependencies, so it builds quickly after a change of
//! the engine.
//!
//! ```sh
//! cargo run --profile ci -p outflow-simulator --example hunt -- FIRST_SEED COUNT
//! ```
//!
//! `--narrow` runs the random scenarios that the worlds begin as: without relays,
//! pools and operators. Three of four worlds have the store of production on a
//! simulated disk, by their seed; with `--real` all have it, with `--model` none.
//! `--twice` runs each world twice and compares the traces.

#![allow(clippy::print_stdout)]

use std::panic::catch_unwind;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use outflow_simulator::scenario::Scenario;
use outflow_simulator::scenario::random::random_faults_on;
use outflow_simulator::scenario::random_store::kind_of;
use outflow_simulator::scenario::random_world::random_world_on;
use outflow_simulator::scenario::store::StoreKind;
use outflow_simulator::simulate::run;

/// Progress is printed after so many worlds.
const PROGRESS: u64 = 500;

/// What the command line says.
#[derive(Default)]
struct Arguments {
    narrow: bool,
    twice: bool,
    store: Option<StoreKind>,
    numbers: Vec<u64>,
}

impl Arguments {
    fn read() -> Option<Self> {
        let mut arguments = Self::default();
        for it in std::env::args().skip(1) {
            match it.as_str() {
                "--narrow" => arguments.narrow = true,
                "--twice" => arguments.twice = true,
                "--real" => arguments.store = Some(StoreKind::Real),
                "--model" => arguments.store = Some(StoreKind::Model),
                number => arguments.numbers.push(number.parse().ok()?),
            }
        }
        Some(arguments)
    }

    fn with_range(self) -> Option<(Self, [u64; 2])> {
        let range = <[u64; 2]>::try_from(&*self.numbers).ok()?;
        Some((self, range))
    }

    fn world(&self, seed: u64) -> Scenario {
        let kind = self.store.unwrap_or_else(|| kind_of(seed));
        match self.narrow {
            true => random_faults_on(seed, kind),
            false => random_world_on(seed, kind),
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::read();
    let Some((arguments, [first, count])) = arguments.and_then(Arguments::with_range) else {
        println!("usage: hunt [--narrow] [--real | --model] [--twice] FIRST_SEED COUNT");
        return ExitCode::from(2);
    };
    let (next, done, spoken) = (AtomicU64::new(first), AtomicU64::new(0), AtomicU64::new(0));
    let (real, traces) = (AtomicU64::new(0), AtomicU64::new(0));
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        break;
                    }
                    let world = arguments.world(seed);
                    if world.store.kind == StoreKind::Real {
                        real.fetch_add(1, Ordering::Relaxed);
                    }
                    match judge(&world, seed, arguments.twice) {
                        Ok(trace) => {
                            // The same whichever world is done first.
                            traces.fetch_add(hash(seed, &trace), Ordering::Relaxed);
                        }
                        Err(problem) => {
                            spoken.fetch_add(1, Ordering::Relaxed);
                            println!("seed {seed}: {problem}");
                        }
                    }
                    let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                    if done.is_multiple_of(PROGRESS) {
                        println!("{done} of {count} worlds");
                    }
                }
            });
        }
    });
    let (spoken, real) = (spoken.into_inner(), real.into_inner());
    println!(
        "checkers spoke in {spoken} of {count} random worlds from seed {first} on, \
         {real} of them on the real store; traces {:016x}{}",
        traces.into_inner(),
        if arguments.twice {
            ", of two equal runs"
        } else {
            ""
        }
    );
    if spoken == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// FNV-1a over a seed and its trace.
fn hash(seed: u64, trace: &str) -> u64 {
    let bytes = seed.to_le_bytes().into_iter().chain(trace.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The trace of a world, or what the checkers first say of it, if they say
/// anything.
fn judge(world: &Scenario, seed: u64, twice: bool) -> Result<String, String> {
    let trace = trace(world, seed)?;
    if twice {
        let again = self::trace(world, seed)?;
        if again != trace {
            return Err(format!("two runs differ: {trace} and {again}"));
        }
    }
    Ok(trace)
}

fn trace(world: &Scenario, seed: u64) -> Result<String, String> {
    let ran = catch_unwind(|| run(world, seed));
    let (summary, violations) = ran.map_err(|_| "it panicked; see above".to_owned())??;
    match violations.first() {
        None => Ok(summary.trace),
        Some(it) => Err(format!("{} at {}: {}", it.checker, it.at, it.what)),
    }
}
