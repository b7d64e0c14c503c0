//! `outflow simulate`: a scenario by name or file, or many random ones.
//!
//! Exit codes: 0 everything held, 1 something did not, 2 wrong use.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use outflow_simulator::scenario::random::random_faults;
use outflow_simulator::scenario::random_world::random_world;
use outflow_simulator::scenario::{Scenario, library};
use outflow_simulator::{chart, simulate};

/// What to simulate.
#[derive(clap::Args)]
pub struct Arguments {
    /// A shipped scenario, or a file. Without it, the shipped ones are listed.
    scenario: Option<String>,
    /// The same seed gives the same run, to the last byte.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print JSON instead of tables.
    #[arg(long)]
    json: bool,
    /// Draw offered load, sends, limit and queue depth into this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Run random worlds with random faults and operators, each seed twice, and
    /// compare.
    #[arg(long, conflicts_with_all = ["scenario", "json", "svg"])]
    check_determinism: bool,
    /// How many random worlds, from --seed on.
    #[arg(long, default_value_t = 200, requires = "check_determinism")]
    seeds: u64,
    /// Random worlds without relays, further pools and operators.
    #[arg(long, requires = "check_determinism")]
    narrow: bool,
    /// Fail only if two runs differ; what checkers find is printed.
    #[arg(long, requires = "check_determinism")]
    traces_only: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> ExitCode {
    if arguments.check_determinism {
        return check_determinism(arguments);
    }
    let Some(name) = &arguments.scenario else {
        say!("{}", library::listing().trim_end());
        return ExitCode::SUCCESS;
    };
    let scenario = match find(name) {
        Ok(scenario) => scenario,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(2);
        }
    };
    let outcome = match simulate::simulate(&scenario, arguments.seed) {
        Ok(outcome) => outcome,
        Err(problem) => {
            eprintln!("{name}: {problem}");
            return ExitCode::from(2);
        }
    };
    if arguments.json {
        say!("{}", outcome.json());
    } else {
        say!("{}", outcome.table().trim_end());
    }
    if let Some(path) = &arguments.svg {
        let drawn = chart::svg(&outcome.summary, &outcome.title, &scenario.chart)
            .map_err(|error| error.to_string())
            .and_then(|svg| std::fs::write(path, svg).map_err(|error| error.to_string()));
        if let Err(problem) = drawn {
            eprintln!("{}: {problem}", path.display());
            return ExitCode::FAILURE;
        }
    }
    if outcome.held() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// A shipped scenario, one in a file, or a random one by its seed.
fn find(name: &str) -> Result<Scenario, String> {
    if let Some(shipped) = library::shipped(name) {
        return shipped.map_err(|error| error.to_string());
    }
    let generators = [
        ("random-world-", random_world as fn(u64) -> Scenario),
        ("random-faults-", random_faults),
    ];
    for (prefix, generate) in generators {
        if let Some(seed) = name.strip_prefix(prefix) {
            let seed = seed
                .parse()
                .map_err(|_| format!("{name}: a seed is a number"))?;
            return Ok(generate(seed));
        }
    }
    let path = Path::new(name);
    let text = std::fs::read_to_string(path).map_err(|error| {
        format!(
            "{name}: neither a shipped scenario nor a file ({error}).\n\
             `outflow simulate` alone lists those that ship."
        )
    })?;
    let stem = path
        .file_stem()
        .map_or_else(|| name.into(), |stem| stem.to_string_lossy());
    Scenario::parse(&stem, &text).map_err(|error| error.to_string())
}

/// Runs each random world twice: both must be the same, and no checker speak.
fn check_determinism(arguments: &Arguments) -> ExitCode {
    let (mut passed, mut failed, mut found) = (0_u64, 0_u64, 0_u64);
    let (first, count) = (arguments.seed, arguments.seeds);
    let (kind, generate): (&str, fn(u64) -> Scenario) = match arguments.narrow {
        true => ("random-faults", random_faults),
        false => ("random-world", random_world),
    };
    for seed in first..first + count {
        let scenario = generate(seed);
        let runs = (
            simulate::run(&scenario, seed),
            simulate::run(&scenario, seed),
        );
        let (differ, spoken) = match runs {
            (Ok((one, violations)), Ok((other, _))) => {
                let differ = (one.trace != other.trace)
                    .then(|| format!("two runs differ: {} and {}", one.trace, other.trace));
                let spoken = violations
                    .first()
                    .map(|it| format!("{} at {}: {}", it.checker, it.at, it.what));
                (differ, spoken)
            }
            (Err(problem), _) | (_, Err(problem)) => (Some(problem), None),
        };
        found += u64::from(spoken.is_some());
        let fails = differ.is_some() || (spoken.is_some() && !arguments.traces_only);
        if let Some(problem) = differ.or(spoken) {
            say!("seed {seed}: {problem}");
            say!("    outflow simulate {kind}-{seed} --seed {seed}");
        }
        if fails {
            failed += 1;
        } else {
            passed += 1;
        }
        if (seed - first + 1).is_multiple_of(1_000) {
            say!("{} seeds done, {failed} failed", seed - first + 1);
        }
    }
    say!("checkers spoke in {found} of {count} random worlds");
    say!("{passed} passed, {failed} failed");
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
