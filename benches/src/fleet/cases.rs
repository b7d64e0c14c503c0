//! What a fleet is put through.

use super::clients::Wish;

/// What goes wrong while all is saturated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// One node after another is killed and started again, every 3 s.
    KillNodes,
    /// One node's wall clock is an hour ahead.
    ClockOff,
    /// One node is stopped for 2 s, every 5 s.
    StopNode,
    /// Redis is killed and started again, every 6 s; it keeps nothing.
    RestartRedis,
    /// The master dies, its replica takes over.
    FailOver,
    /// Everything in Redis is deleted, every 6 s.
    FlushAll,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: &'static str,
    pub wish: Wish,
    pub fault: Fault,
    /// Thousandths of what is allowed that must be used, on a quiet machine.
    pub goal: Option<u64>,
}

const NORMAL: &[&str] = &["normal"];
const MIXED: &[&str] = &["critical", "high", "normal", "low"];
const FAST: &str = "1000/s burst 100";

const fn wish(limit: &'static str, cost: u32, classes: &'static [&'static str]) -> Wish {
    Wish {
        key: "fleet",
        limit,
        cost,
        classes,
        fickle: false,
        when_away: None,
    }
}

/// All runs.
pub fn cases() -> Vec<Case> {
    let case = |name, limit, fault| Case {
        name,
        wish: wish(limit, 1, NORMAL),
        fault,
        goal: None,
    };
    let mut cases = vec![
        Case {
            goal: Some(980),
            ..case("all of class normal", FAST, Fault::None)
        },
        Case {
            wish: wish(FAST, 1, MIXED),
            goal: Some(980),
            ..case("all classes", FAST, Fault::None)
        },
        case("kill -9 every 3 s", FAST, Fault::KillNodes),
        case("a clock an hour off", FAST, Fault::ClockOff),
        case("SIGSTOP for 2 s", FAST, Fault::StopNode),
        case("Redis restarted", FAST, Fault::RestartRedis),
        case("failover to a replica", FAST, Fault::FailOver),
        case("FLUSHALL", FAST, Fault::FlushAll),
        case("burst 2", "1000/s burst 2", Fault::None),
        case("spaced", "14/s spaced", Fault::None),
        case("a day's quota", "50k/day", Fault::None),
        Case {
            wish: wish(FAST, 10, NORMAL),
            ..case("cost 10", FAST, Fault::None)
        },
    ];
    let mut fickle = case("give-backs race", FAST, Fault::None);
    fickle.wish.fickle = true;
    cases.push(fickle);
    cases
}
