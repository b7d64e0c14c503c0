//! The scripts that run inside Redis, one per algorithm.

use redis::{Cmd, Script as Hashed};

/// One of the scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Script {
    Bucket,
    Runs,
    Window,
    Calendar,
    Hold,
    GiveBack,
    Pause,
    Look,
    Report,
    Publish,
}

macro_rules! with_prelude {
    ($file:literal) => {
        concat!(include_str!("lua/prelude.lua"), "\n", include_str!($file))
    };
}

const ALL: [(Script, &str); 10] = [
    (Script::Bucket, with_prelude!("lua/bucket.lua")),
    (Script::Runs, with_prelude!("lua/runs.lua")),
    (Script::Window, with_prelude!("lua/window.lua")),
    (Script::Calendar, with_prelude!("lua/calendar.lua")),
    (Script::Hold, with_prelude!("lua/hold.lua")),
    (Script::GiveBack, with_prelude!("lua/give_back.lua")),
    (Script::Pause, with_prelude!("lua/pause.lua")),
    (Script::Look, with_prelude!("lua/look.lua")),
    (Script::Report, with_prelude!("lua/report.lua")),
    (Script::Publish, include_str!("lua/publish.lua")),
];

/// The scripts with their hashes.
#[derive(Debug)]
pub(crate) struct Scripts {
    known: Vec<(Script, &'static str, String)>,
}

impl Scripts {
    /// The source of one.
    #[cfg(test)]
    pub fn source(script: Script) -> &'static str {
        let source = ALL.iter().find(|(it, _)| *it == script);
        source.map_or("", |(_, source)| source)
    }

    pub fn new() -> Self {
        let known = ALL.iter().map(|(script, source)| {
            let hash = Hashed::new(source).get_hash().to_owned();
            (*script, *source, hash)
        });
        Self {
            known: known.collect(),
        }
    }

    /// Has a server learn them all.
    pub fn load(&self) -> Vec<Cmd> {
        let commands = self.known.iter().map(|(_, source, _)| {
            let mut command = redis::cmd("SCRIPT");
            command.arg("LOAD").arg(*source);
            command
        });
        commands.collect()
    }

    /// A call by hash, or with the whole source, from which a server that does
    /// not know it learns it.
    pub fn command(&self, call: &Call, by_source: bool) -> Cmd {
        let known = self.known.iter().find(|(it, _, _)| *it == call.script);
        let mut command = match (known, by_source) {
            (Some((_, source, _)), true) => {
                let mut command = redis::cmd("EVAL");
                command.arg(*source);
                command
            }
            (known, _) => {
                let mut command = redis::cmd("EVALSHA");
                command.arg(known.map_or("", |(_, _, hash)| hash.as_str()));
                command
            }
        };
        command.arg(call.keys.len());
        for text in call.keys.iter().chain(&call.args) {
            command.arg(text);
        }
        command
    }
}

/// A script with its keys and arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub script: Script,
    pub keys: Vec<String>,
    pub args: Vec<String>,
}
