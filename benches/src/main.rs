//! Every performance claim of Outflow, side by side with its peer in one run.
//! The last line of each benchmark is one JSON object.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod driver;
mod engine;
mod fairness;
mod waiting;

use clap::{Parser, Subcommand};

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// Messages a second through the engine, beside the governor crate.
    Engine,
    /// The engine's side of `engine` alone, for profilers.
    #[command(hide = true)]
    EngineLoad,
    /// The cost of a send against what waits.
    Waiting,
    /// One load of `waiting`, run under callgrind.
    #[command(hide = true)]
    WaitingLoad { flows: u32, queued: u32, sends: u64 },
    /// How evenly and fully several full limits are used.
    Fairness {
        /// Leave out the cases with 100,000 flows and the pools.
        #[arg(long)]
        small: bool,
        /// Only cases whose name contains this.
        #[arg(long)]
        only: Option<String>,
    },
}

fn main() {
    let last = match Arguments::parse().bench {
        Bench::Engine => engine::run(),
        Bench::EngineLoad => engine::load(),
        Bench::Waiting => waiting::run(),
        Bench::WaitingLoad {
            flows,
            queued,
            sends,
        } => {
            return waiting::load(&waiting::Load {
                flows,
                queued,
                sends,
            });
        }
        Bench::Fairness { small, only } => fairness::run(!small, only.as_deref()),
    };
    println!("{last}");
}
