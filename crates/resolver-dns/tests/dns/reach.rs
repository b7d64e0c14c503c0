//! Nobody's records have this machine talk to itself or to its neighbours.

use outflow_core::reply::{Reply, Stage};
use outflow_resolver_dns::{Network, NoServers, Reach};

use crate::{World, world};

/// What a message is told, and where else it would go.
fn servers(world: &World, domain: &str) -> Result<Vec<String>, String> {
    let servers = world.runtime.block_on(world.directory.servers_of(domain));
    match servers {
        Ok(servers) => Ok(servers
            .iter()
            .map(|server| format!("{} {:?}", server.host, server.addresses))
            .collect()),
        Err(NoServers::Never(Reply::Said {
            stage: Stage::Recipient,
            code: 550,
            text,
            ..
        })) => Err(text.to_string()),
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn mail_goes_to_public_addresses_only() {
    let world = world(|settings| settings.reach = Reach::default());
    let dns = &world.dns;
    for (no, address) in [
        "127.0.0.1",
        "169.254.169.254",
        "10.0.0.1",
        "192.168.0.1",
        "100.64.0.1",
        "0.0.0.0",
        "192.0.2.1",
        "224.0.0.1",
        "::1",
        "::ffff:127.0.0.1",
        "fe80::1",
        "fd00::1",
    ]
    .into_iter()
    .enumerate()
    {
        let (domain, host) = (format!("d{no}.example"), format!("mx{no}.example.net"));
        dns.mx(&domain, 60, &[(10, &host)]);
        dns.addresses(&host, 60, &[address]);
        let told = servers(&world, &domain).unwrap_err();
        assert!(told.contains("not public"), "{address}: {told}");
        // Without an MX record the domain is its own server.
        dns.addresses(&format!("own{no}.example"), 60, &[address]);
        let told = servers(&world, &format!("own{no}.example")).unwrap_err();
        assert!(told.contains("not public"), "{address}: {told}");
    }
    for literal in ["[127.0.0.1]", "[IPv6:::1]", "[IPv6:::ffff:10.0.0.1]"] {
        let told = servers(&world, literal).unwrap_err();
        assert!(told.contains("not public"), "{literal}: {told}");
    }
    // What is public is used, whatever stands beside it.
    let mixed = [(10, "inside.example.net"), (20, "outside.example.net")];
    dns.mx("mixed.example", 60, &mixed);
    dns.addresses("inside.example.net", 60, &["10.0.0.1"]);
    dns.addresses("outside.example.net", 60, &["127.0.0.1", "8.8.4.4"]);
    let expected = vec!["outside.example.net [8.8.4.4]".to_owned()];
    assert_eq!(servers(&world, "mixed.example"), Ok(expected));
}

#[test]
fn a_network_that_is_named_is_reached() {
    let network = Network::new([10, 7, 0, 0].into(), 16);
    let world = world(|settings| settings.reach = Reach::new(vec![network]));
    world
        .dns
        .addresses("inside.example", 60, &["10.7.1.1", "10.8.1.1"]);
    let expected = vec!["inside.example [10.7.1.1]".to_owned()];
    assert_eq!(servers(&world, "inside.example"), Ok(expected));
    assert!(servers(&world, "[10.8.1.1]").is_err());
    let expected = vec!["[10.7.1.1] [10.7.1.1]".to_owned()];
    assert_eq!(servers(&world, "[10.7.1.1]"), Ok(expected));
}
