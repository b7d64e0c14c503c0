//! Every checker speaks when a node is broken in its way, and not otherwise.
//!
//! Each test runs a small scenario twice, sound and broken, on the real
//! pipeline and engine.

use outflow_simulator::scenario::Scenario;
use outflow_simulator::simulate::{run_broken, simulate};
use outflow_simulator::trace::Violation;
use outflow_simulator::world::sabotage::Sabotage;

const SEED: u64 = 1;

/// One account with many request slots and one network that takes everything.
const STAGE: &str = r#"
title = "A small stage"

[[account]]
name = "api-1"
sessions = "slots"
connections = 50

[[network]]
name = "google"
destinations = ["isp:google"]
protocol = "http"
latency = { kind = "constant", is = "20ms" }
"#;

fn scenario(head: &str, rest: &str) -> Scenario {
    let text = format!("{head}\n{STAGE}\n{rest}");
    Scenario::parse("sabotage", &text).unwrap_or_else(|error| panic!("{error}"))
}

fn violations(scenario: &Scenario, sabotage: Option<Sabotage>) -> Vec<Violation> {
    run_broken(scenario, SEED, sabotage).unwrap().1
}

/// The first few, a line each.
fn lines(violations: &[Violation]) -> String {
    let first = violations.iter().take(30);
    first
        .map(|it| format!("\n  {} at {}: {}", it.checker, it.at, it.what))
        .collect()
}

/// The sound run is silent; in the broken one `checker` says `wanted`.
fn speaks(scenario: &Scenario, sabotage: Sabotage, checker: &str, wanted: &str) {
    let sound = violations(scenario, None);
    assert!(sound.is_empty(), "without sabotage:{}", lines(&sound));
    is_noticed(scenario, sabotage, checker, wanted);
}

/// In the broken run `checker` says `wanted`.
fn is_noticed(scenario: &Scenario, sabotage: Sabotage, checker: &str, wanted: &str) {
    let broken = violations(scenario, Some(sabotage));
    let said = |it: &Violation| it.checker == checker && it.what.contains(wanted);
    assert!(
        broken.iter().any(said),
        "{sabotage:?}: {checker} does not say {wanted:?}:{}",
        lines(&broken)
    );
}

/// A thousand messages at once under a rate of 20 per second.
const QUEUE: &str = r#"
[[policy]]
match = { isp = "google" }
rate = "20/s"
burst = 10

[[traffic]]
name = "letters"
destination = "isp:google"
arrive = { kind = "at_once", count = 1000 }
"#;

/// The node dies every ten seconds and is back a second later.
const CRASHES: &str = r#"
[[faults.crash]]
when = { every = "10s" }
down = "1s"
"#;

#[test]
fn limits_notices_an_engine_that_doubles_its_limits() {
    let rates = scenario(r#"duration = "20s""#, QUEUE);
    speaks(&rates, Sabotage::DoublesLimits, "limits", "exceeded");
    let slots = scenario(
        r#"duration = "10s""#,
        r#"
[[policy]]
match = { isp = "google" }
concurrency = 4

[[traffic]]
name = "letters"
destination = "isp:google"
arrive = { kind = "at_once", count = 1000 }
"#,
    );
    speaks(&slots, Sabotage::DoublesLimits, "limits", "exceeded");
}

#[test]
fn limits_notices_nodes_that_count_alone() {
    let head = "duration = \"20s\"\nnodes = 3\nledger = \"leased\"";
    let shared = scenario(head, QUEUE);
    let sound = violations(&shared, None);
    let exceeded = sound.iter().any(|it| it.checker == "limits");
    assert!(!exceeded, "without sabotage:{}", lines(&sound));
    is_noticed(&shared, Sabotage::CountsAlone, "limits", "exceeded");
}

#[test]
fn restart_notices_a_store_that_forgets_limits() {
    let crashes = scenario(r#"duration = "25s""#, &format!("{QUEUE}{CRASHES}"));
    let forgets = Sabotage::ForgetsLimits;
    speaks(&crashes, forgets, "restart", "faster after a restart");
}

#[test]
fn exactly_once_notices_messages_acknowledged_early() {
    let slow_disk = scenario(
        "duration = \"25s\"\ndrain = \"60s\"",
        &format!(
            r#"
[[traffic]]
name = "letters"
destination = "isp:google"
arrive = {{ kind = "poisson", rate = "50/s" }}

[faults.store]
commit = {{ kind = "constant", is = "200ms" }}
{CRASHES}"#
        ),
    );
    let early = Sabotage::AcknowledgesEarly;
    speaks(&slow_disk, early, "exactly_once", "never settled");
}

#[test]
fn exactly_once_notices_settlements_that_are_forgotten() {
    let calm = scenario("duration = \"10s\"\ndrain = \"60s\"", TRICKLE);
    let forgets = Sabotage::ForgetsSettlements;
    speaks(&calm, forgets, "exactly_once", "times without excuse");
}

#[test]
fn exactly_once_notices_messages_handed_out_twice() {
    let calm = scenario("duration = \"10s\"\ndrain = \"60s\"", TRICKLE);
    let twice = Sabotage::HandsOutTwice;
    speaks(&calm, twice, "exactly_once", "times without excuse");
}

/// A few messages now and then, far below any limit.
const TRICKLE: &str = r#"
[[policy]]
match = { isp = "google" }
rate = "20/s"
burst = 10

[[traffic]]
name = "letters"
destination = "isp:google"
arrive = { kind = "poisson", rate = "5/s" }
"#;

/// More than can be sent before it expires.
const URGENT: &str = r#"
[[policy]]
match = { isp = "google" }
rate = "20/s"
burst = 10

[[traffic]]
name = "codes"
destination = "isp:google"
expires = "5s"
arrive = { kind = "at_once", count = 1000 }
"#;

#[test]
fn expiry_notices_messages_sent_after_they_expired() {
    let urgent = scenario(r#"duration = "20s""#, URGENT);
    let forgets = Sabotage::ForgetsExpiry;
    speaks(&urgent, forgets, "expiry", "after it expired");
}

#[test]
fn expiry_notices_messages_that_stand_after_they_expired() {
    let urgent = scenario(r#"duration = "90s""#, URGENT);
    speaks(&urgent, Sabotage::HidesExpired, "expiry", "still stands");
}

#[test]
fn expiry_notices_messages_sent_before_they_are_due() {
    let later = scenario(
        r#"duration = "20s""#,
        r#"
[[traffic]]
name = "reminders"
destination = "isp:google"
not_before = "5s"
arrive = { kind = "poisson", rate = "5/s" }
"#,
    );
    let forgets = Sabotage::ForgetsDueTimes;
    speaks(&later, forgets, "expiry", "before it was due");
}

#[test]
fn starvation_notices_classes_that_are_merged() {
    let urgent_in_a_crowd = scenario(
        r#"duration = "30s""#,
        r#"
[[policy]]
match = { isp = "google" }
rate = "200/s"
burst = 20

[[traffic]]
name = "crowd"
class = "low"
tenants = 100
destination = "isp:google"
arrive = { kind = "at_once", count = 20000 }

[[traffic]]
name = "codes"
class = "critical"
destination = "isp:google"
arrive = { kind = "poisson", rate = "20/s" }
"#,
    );
    let merges = Sabotage::MergesClasses;
    speaks(&urgent_in_a_crowd, merges, "starvation", "critical got");
}

#[test]
fn starvation_notices_a_class_that_gets_nothing() {
    let low_below_a_flood = scenario(
        r#"duration = "30s""#,
        r#"
[[policy]]
match = { isp = "google" }
rate = "200/s"
burst = 20

[[traffic]]
name = "flood"
class = "high"
destination = "isp:google"
arrive = { kind = "at_once", count = 20000 }

[[traffic]]
name = "digests"
class = "low"
destination = "isp:google"
arrive = { kind = "at_once", count = 20000 }
"#,
    );
    let puts_off = Sabotage::PutsLowOff;
    speaks(&low_below_a_flood, puts_off, "starvation", "low got");
}

#[test]
fn starvation_notices_a_tenant_that_gets_too_little() {
    let heavy_and_light = scenario(
        r#"duration = "30s""#,
        r#"
[[policy]]
match = { isp = "google" }
rate = "200/s"
burst = 20

[[policy]]
match = { tenant = "heavy" }
weight = 10

[[policy]]
match = { tenant = "light" }
weight = 1

[[traffic]]
name = "heavy"
destination = "isp:google"
arrive = { kind = "at_once", count = 20000 }

[[traffic]]
name = "light"
destination = "isp:google"
arrive = { kind = "at_once", count = 20000 }
"#,
    );
    let inverts = Sabotage::InvertsWeights;
    speaks(&heavy_and_light, inverts, "starvation", "tenant");
}

#[test]
fn memory_notices_a_store_that_hands_out_everything() {
    let long_queue = scenario(
        r#"duration = "5s""#,
        r#"
[[policy]]
match = { isp = "google" }
rate = "20/s"
burst = 10

[[traffic]]
name = "letters"
destination = "isp:google"
arrive = { kind = "at_once", count = 10000 }
"#,
    );
    let everything = Sabotage::PagesEverything;
    speaks(&long_queue, everything, "memory", "heads");
}

#[test]
fn memory_notices_flows_that_never_end() {
    let tenants: String = (0..200)
        .map(|number| {
            format!(
                r#"
[[traffic]]
name = "tenant-{number}"
destination = "isp:google"
starts = "{number}s"
arrive = {{ kind = "at_once", count = 2 }}
"#
            )
        })
        .collect();
    let one_after_another = scenario(r#"duration = "200s""#, &tenants);
    speaks(&one_after_another, Sabotage::KeepsFlows, "memory", "flows");
}

#[test]
fn idle_bucket_notices_a_node_that_oversleeps() {
    let queue = scenario(r#"duration = "20s""#, QUEUE);
    speaks(&queue, Sabotage::Oversleeps, "idle_bucket", "stood full");
}

/// A few messages under a slow rate, every second of which is put off at first.
const GREYLISTED: &str = r#"
title = "A small stage"
duration = "5s"
drain = "1h"

[[account]]
name = "api-1"
connections = 5

[[policy]]
match = { isp = "google" }
rate = "2/s"
burst = 2

[[network]]
name = "google"
destinations = ["isp:google"]
greylist = { delay = "1s", share = 0.5 }

[[traffic]]
name = "letters"
destination = "isp:google"
arrive = { kind = "at_once", count = 20 }
"#;

#[test]
fn waits_notices_a_node_that_stays_asleep() {
    let queue = Scenario::parse("sabotage", GREYLISTED).unwrap();
    let asleep = Sabotage::StaysAsleep;
    speaks(&queue, asleep, "waits", "and nothing moves");
}

#[test]
fn waits_notices_retries_that_never_become_due() {
    let queue = Scenario::parse("sabotage", GREYLISTED).unwrap();
    speaks(&queue, Sabotage::HidesDue, "waits", "message");
}

/// An operator pauses, moves, cancels, and takes an account out.
const OPERATED: &str = r#"
title = "A small stage"
duration = "30s"
drain = "1h"

[[account]]
name = "a-1"
connections = 4

[[account]]
name = "a-2"
connections = 4

[[account]]
name = "b-1"
pool = "b"

[[policy]]
match = { isp = "google" }
rate = "10/s"
burst = 5

[[network]]
name = "google"
destinations = ["isp:google"]
latency = { kind = "constant", is = "20ms" }

[[traffic]]
name = "letters"
tenants = 2
destination = "isp:google"
arrive = { kind = "at_once", count = 200 }

[[action]]
at = "2s"
pause = { match = { tenant = "letters-1" }, lasts = "3s" }

[[action]]
at = "3s"
pause = { match = { account = "a-1", isp = "google" }, lasts = "3s", lifted = true }

[[action]]
at = "4s"
remove_account = "a-2"

[[action]]
at = "8s"
account = { name = "a-2", connections = 1, tenant = "letters-2" }

[[action]]
at = "9s"
move = { match = { tenant = "letters-1" }, pool = "b" }

[[action]]
at = "10s"
restart = { down = "500ms", graceful = true, headroom = { critical = 0.2 } }

[[action]]
at = "13s"
cancel = { match = { tenant = "letters-2" } }

[[action]]
at = "13s"
cancel = { singles = 50 }

[expect]
unfinished = { max = 0 }
duplicates = { max = 0 }
cancelled = { min = 20 }
delivered = { min = 50 }
"#;

#[test]
fn orders_notices_a_node_that_ignores_its_operator() {
    let operated = Scenario::parse("operated", OPERATED).unwrap();
    let outcome = simulate(&operated, SEED).unwrap();
    assert!(outcome.held(), "{}", outcome.table());
    let ignores = Sabotage::IgnoresOrders;
    is_noticed(&operated, ignores, "orders", "is paused");
    is_noticed(&operated, ignores, "orders", "after it was withdrawn");
    is_noticed(&operated, ignores, "orders", "of pool b was sent by");
    let keeps = Sabotage::KeepsAccounts;
    is_noticed(&operated, keeps, "orders", "an account that is gone");
}

/// More destinations than connections: five messages to each of thirty.
const MANY: &str = r#"
[[network]]
name = "far"
latency = { kind = "constant", is = "20ms" }
connect = { kind = "constant", is = "50ms" }

[[traffic]]
name = "letters"
pool = "few"
destination = "host:domain"
destinations = 30
arrive = { kind = "at_once", count = 150 }
"#;

#[test]
fn work_conserving_notices_lanes_that_keep_idle_connections() {
    let account = "\n[[account]]\nname = \"ip-1\"\npool = \"few\"\nconnections = 4\n";
    let hosts = scenario(r#"duration = "20s""#, &format!("{account}{MANY}"));
    let keeps = Sabotage::KeepsIdleSessions;
    speaks(&hosts, keeps, "work_conserving", "could make way for it");
}

#[test]
fn work_conserving_notices_connections_to_a_relay_that_serve_one_destination() {
    let account =
        "\n[[account]]\nname = \"relay-1\"\npool = \"few\"\nrelay = \"far\"\nconnections = 4\n";
    let relay = scenario(r#"duration = "20s""#, &format!("{account}{MANY}"));
    let binds = Sabotage::BindsRelaySessions;
    speaks(&relay, binds, "work_conserving", "could serve it");
}

/// A token comes in the moment in which nearly everything is withdrawn, one by
/// one: the answer to each of these says whether it was in time.
#[test]
fn what_is_withdrawn_one_by_one_is_not_sent() {
    let withdrawn = scenario(
        "duration = \"10s\"\ndrain = \"1min\"",
        r#"
[[policy]]
match = { isp = "google" }
rate = "10/s"
burst = 1

[[traffic]]
name = "letters"
destination = "isp:google"
arrive = { kind = "at_once", count = 100 }

[[action]]
at = "5001ms"
cancel = { singles = 500 }
"#,
    );
    let found = violations(&withdrawn, None);
    assert!(found.is_empty(), "{}", lines(&found));
}
