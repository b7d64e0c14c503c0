//! The port of the node.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use outflow_core::engine::event::Event;
use outflow_core::entropy::Entropy;
use outflow_core::name::Name;
use outflow_core::time::{Mono, Now, Wall};
use outflow_ports::resolver::Resolver;
use outflow_resolver_dns::DnsResolver;

use crate::server::Mood;
use crate::{World, wait_for, world};

const NOW: Now = Now {
    mono: Mono(0),
    wall: Wall(0),
    entropy: Entropy(0),
};

fn port(world: &World) -> DnsResolver {
    let runtime = world.runtime.handle().clone();
    DnsResolver::new(Arc::clone(&world.directory), runtime, Arc::new(|| ()))
}

/// Waits until so many are answered.
fn answers(port: &mut DnsResolver, count: usize) -> BTreeMap<String, String> {
    let mut answers = BTreeMap::new();
    wait_for("answers", || {
        let mut done = Vec::new();
        port.complete(&NOW, &mut done);
        for event in done {
            let Event::Resolved {
                domain,
                destination,
            } = event
            else {
                panic!("{event:?}");
            };
            let again = answers.insert(domain.to_string(), destination.to_string());
            assert_eq!(again, None, "one answer each");
        }
        (answers.len() == count).then_some(())
    });
    assert_eq!(port.next_completion(), Mono::NEVER);
    answers
}

#[test]
fn every_domain_is_answered_a_few_at_a_time() {
    let world = world(|settings| settings.lookups_max = 3);
    let mut port = port(&world);
    for no in 0..200 {
        let domain = format!("d{no}.example");
        world.dns.mx(&domain, 60, &[(10, "mx.example.net")]);
        port.submit(&NOW, Name::from(domain.as_str()));
    }
    port.submit(&NOW, Name::from("gmail.com"));
    let answers = answers(&mut port, 201);
    assert_eq!(answers["gmail.com"], "isp:google");
    let others = answers.values().filter(|to| *to == "host:mx.example.net");
    assert_eq!(others.count(), 200);
}

#[test]
fn nobody_waits_for_ever_for_a_dns_that_is_silent() {
    let world = world(|settings| {
        settings.lookups_max = 8;
        settings.patience = Duration::from_millis(300);
    });
    world.dns.set_mood(Mood::Silent);
    let mut port = port(&world);
    for no in 0..500 {
        port.submit(&NOW, Name::from(format!("d{no}.example").as_str()));
    }
    let answers = answers(&mut port, 500);
    assert_eq!(answers["d17.example"], "host:d17.example");
    assert!(world.directory.is_away());
    // It comes back.
    world.dns.mx("new.example", 60, &[(10, "mx.example.net")]);
    world.dns.set_mood(Mood::Well);
    port.submit(&NOW, Name::from("new.example"));
    let answers = self::answers(&mut port, 1);
    assert_eq!(answers["new.example"], "host:mx.example.net");
    assert!(!world.directory.is_away());
}
