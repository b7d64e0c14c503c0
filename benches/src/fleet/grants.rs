//! What was granted, by all nodes together: read from their logs, checked
//! against the limit.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;

use outflow_core::limit::LimitSpec;
use outflow_core::time::{Mono, Wall};
use outflow_ports::conformance::guarantee::{self, Use};
use serde_json::Value;

/// All grants of a run, in order of time.
pub struct Grants(pub Vec<Use>);

impl Grants {
    /// Those of all nodes. A line that a killed node did not finish is left
    /// out: nobody was told of its grant.
    pub fn read(logs: &[impl AsRef<Path>]) -> io::Result<Self> {
        let mut uses = Vec::new();
        for log in logs {
            for line in BufReader::new(File::open(log)?).lines() {
                let Ok(line) = serde_json::from_str::<Value>(&line?) else {
                    continue;
                };
                let at = line.get("at_ns").and_then(Value::as_u64);
                let cost = line.get("cost").and_then(Value::as_u64);
                if let (Some(at), Some(cost)) = (at, cost) {
                    uses.push(Use {
                        mono: Mono(at),
                        wall: Wall(0),
                        tokens: u32::try_from(cost).unwrap_or(u32::MAX),
                    });
                }
            }
        }
        uses.sort_by_key(|it| it.mono);
        Ok(Self(uses))
    }

    /// Where the limit was exceeded, if it was.
    pub fn check(&self, spec: &LimitSpec) -> Result<(), String> {
        // A full bucket at the beginning of the machine's clock, as the
        // guarantee has it for every interval.
        guarantee::check(spec, &self.0)
    }

    /// Tokens granted from a time on, until another.
    pub fn between(&self, from: u64, until: u64) -> u64 {
        let uses = self.0.iter();
        let uses = uses.filter(|it| (from..until).contains(&it.mono.0));
        uses.map(|it| u64::from(it.tokens)).sum()
    }
}
