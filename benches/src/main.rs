//! Every performance claim of Outflow, side by side with its peer in one run.
//! The last line of each benchmark is one JSON object.
#![allow(clippy::indexing_slicing, clippy::print_stdout, clippy::unwrap_used)]

mod fairness;

use clap::{Parser, Subcommand};

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// How evenly and fully several full limits are used.
    Fairness {
        /// Leave out the cases with 100,000 flows.
        #[arg(long)]
        small: bool,
        /// Only cases whose name contains this.
        #[arg(long)]
        only: Option<String>,
    },
}

fn main() {
    let last = match Arguments::parse().bench {
        Bench::Fairness { small, only } => fairness::run(!small, only.as_deref()),
    };
    println!("{last}");
}
