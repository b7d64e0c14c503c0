//! CPU time of single threads and of processes that come and go.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// One thread of this process.
#[derive(Clone, Debug)]
pub struct ThreadCpu(PathBuf);

impl ThreadCpu {
    pub fn of_this() -> io::Result<Self> {
        let thread = fs::read_link("/proc/thread-self")?;
        let path = PathBuf::from("/proc").join(thread).join("schedstat");
        Ok(Self(path))
    }

    /// What it has taken so far.
    pub fn now(&self) -> Duration {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        let nanos = text.split_whitespace().next();
        Duration::from_nanos(nanos.and_then(|it| it.parse().ok()).unwrap_or(0))
    }
}

/// What a process has taken so far, with its children, those that live and
/// those that have ended.
pub fn of_family(parent: u32) -> Duration {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let children = processes.filter_map(Stat::of);
    let children = children.filter(|stat| stat.parent == parent);
    let own = Stat::of(parent).map_or(0, |stat| stat.own + stat.ended);
    let ticks = own + children.map(|stat| stat.own + stat.ended).sum::<u64>();
    Duration::from_millis(ticks * 10)
}

/// What this process's children that have ended had taken.
pub fn of_ended_children() -> Duration {
    let ticks = Stat::of(std::process::id()).map_or(0, |stat| stat.ended);
    Duration::from_millis(ticks * 10)
}

/// CPU time in ticks.
struct Stat {
    parent: u32,
    own: u64,
    ended: u64,
}

impl Stat {
    fn of(process: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name, in brackets, may have spaces in it.
        let fields = stat.rsplit(')').next()?.split_whitespace();
        let fields: Vec<u64> = fields.map(|field| field.parse().unwrap_or(0)).collect();
        Some(Self {
            parent: u32::try_from(*fields.get(1)?).ok()?,
            own: fields.get(11)? + fields.get(12)?,
            ended: fields.get(13)? + fields.get(14)?,
        })
    }
}
