//! What the server does to accounts by itself is in the audit.

use outflow_api::{Clock, chores};
use outflow_core::destination::Destination;
use outflow_core::engine::action::{Alert, Standstill};
use outflow_core::name::Name;
use outflow_core::time::Wall;
use outflow_telemetry::{Event, Sink};

use crate::world::World;

#[tokio::test]
async fn broken_and_restored_accounts_are_in_the_audit() {
    let world = World::new();
    let account = Name::from("ses-1");
    let destination = Some(Destination::isp("google"));
    let broken = Alert::Broken {
        account: account.clone(),
        destination: destination.clone(),
        until: Wall(1_800_000_000_000_000_000),
        why: Standstill::Failures,
    };
    let restored = Alert::Restored {
        account,
        destination,
    };
    for alert in [&broken, &Alert::StoreFailing, &restored] {
        world.state.events.emit(&Event::Alert(alert));
    }
    chores::turn(&world.state, world.clock.now()).await.unwrap();
    // A second turn writes nothing twice.
    chores::turn(&world.state, world.clock.now()).await.unwrap();
    let audit = world.get("/api/v1/audit").await.json();
    let entries = audit["entries"].as_array().unwrap();
    let by_rule = entries.iter().filter(|it| it["actor"] == "rule:breaker");
    let seen: Vec<_> = by_rule
        .map(|it| {
            (
                it["action"].as_str().unwrap(),
                it["target"].as_str().unwrap(),
            )
        })
        .collect();
    let wanted = [("account.restored", "ses-1"), ("account.broken", "ses-1")];
    assert_eq!(seen, wanted, "{audit}");
    let first = entries.iter().find(|it| it["action"] == "account.broken");
    let first = first.unwrap();
    assert_eq!(first["detail"]["why"], "failures");
    assert_eq!(first["detail"]["destination"], "isp:google");
}
