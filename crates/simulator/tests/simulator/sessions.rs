//! Far more destinations than connections: connections are busy to the end.

use outflow_simulator::scenario::library::shipped;
use outflow_simulator::simulate::simulate;

fn keeps_its_promises(name: &str) {
    let scenario = shipped(name).unwrap().unwrap();
    let outcome = simulate(&scenario, 1).unwrap();
    assert_eq!(outcome.violations, [], "{name}");
    for verdict in &outcome.verdicts {
        assert!(verdict.held, "{name}: {verdict:?}");
    }
}

#[test]
fn a_relay_carries_mail_for_two_thousand_domains() {
    keeps_its_promises("relay-two-thousand-domains");
}

#[test]
fn a_hundred_connections_deliver_to_two_thousand_hosts() {
    keeps_its_promises("mx-two-thousand-hosts");
}
