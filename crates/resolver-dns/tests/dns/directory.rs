//! What domains roll up to, and who takes their mail.

use std::time::Duration;

use outflow_core::destination::Destination;
use outflow_core::reply::{Enhanced, Reply, Stage};
use outflow_resolver_dns::{AddressOrder, Directory, NoServers, Table, Takes};

use crate::server::{A, MX, Mood};
use crate::{World, wait_for, world};

fn hosts(world: &World, domain: &str) -> Vec<String> {
    let servers = world.runtime.block_on(world.directory.servers_of(domain));
    let servers = servers.unwrap().into_iter();
    servers
        .map(|server| format!("{} {:?}", server.host, server.addresses))
        .collect()
}

fn refusal(world: &World, domain: &str) -> (u16, Enhanced) {
    let servers = world.runtime.block_on(world.directory.servers_of(domain));
    match servers.unwrap_err() {
        NoServers::Never(Reply::Said {
            stage: Stage::Recipient,
            code,
            enhanced: Some(enhanced),
            ..
        }) => (code, enhanced),
        other => panic!("{other:?}"),
    }
}

#[test]
fn domains_are_found_by_their_servers() {
    let world = world(|_| ());
    let dns = &world.dns;
    dns.mx(
        "hosted.example",
        60,
        &[(5, "alt1.aspmx.l.google.com"), (1, "aspmx.l.google.com")],
    );
    dns.mx("xn--bcher-kva.example", 60, &[(10, "mx.example.net")]);
    dns.mx(
        "shop.example",
        60,
        &[(20, "backup.example.net"), (10, "mx.example.net")],
    );
    dns.addresses("plain.example", 60, &["192.0.2.9"]);
    dns.addresses(
        "mx.example.net",
        60,
        &["192.0.2.1", "192.0.2.2", "2001:db8::1"],
    );
    dns.addresses("backup.example.net", 60, &["192.0.2.3"]);
    assert_eq!(world.resolve("hosted.example"), "isp:google");
    assert_eq!(world.resolve("Bücher.example"), "host:mx.example.net");
    assert_eq!(world.resolve("shop.example."), "host:mx.example.net");
    assert_eq!(world.resolve("plain.example"), "host:plain.example");
    assert_eq!(
        hosts(&world, "shop.example"),
        [
            "mx.example.net [192.0.2.1, 192.0.2.2, 2001:db8::1]",
            "backup.example.net [192.0.2.3]"
        ]
    );
    assert_eq!(
        hosts(&world, "plain.example"),
        ["plain.example [192.0.2.9]"]
    );
    assert_eq!(hosts(&world, "[192.0.2.7]"), ["[192.0.2.7] [192.0.2.7]"]);
    let takes = |host, domain| {
        let takes = world.directory.takes(host, domain);
        world.runtime.block_on(takes).unwrap()
    };
    assert_eq!(takes("backup.example.net", "shop.example"), Takes::Yes);
    assert_eq!(takes("backup.example.net", "plain.example"), Takes::No);
    assert_eq!(dns.asked("shop.example", MX), 1, "it was remembered");
    // Well-known domains need no question.
    assert_eq!(world.resolve("gmail.com"), "isp:google");
    assert_eq!(dns.asked("gmail.com", MX), 0);
    let google = Destination::isp("google");
    let first = world.directory.domain_of(&google);
    assert_ne!(first, world.directory.domain_of(&google), "they take turns");
}

#[test]
fn who_takes_no_mail_is_told_apart_from_who_does_not_answer() {
    let world = world(|_| ());
    let dns = &world.dns;
    dns.mx("null.example", 60, &[(0, "")]);
    dns.addresses("null.example", 60, &["192.0.2.1"]);
    dns.mx("dangling.example", 60, &[(10, "nowhere.example")]);
    dns.set_broken("broken.example");
    assert_eq!(refusal(&world, "null.example"), (556, Enhanced(5, 1, 10)));
    assert_eq!(refusal(&world, "nothing.example"), (550, Enhanced(5, 1, 2)));
    assert_eq!(world.resolve("null.example"), "host:null.example");
    for (domain, why) in [
        ("broken.example", "DNS failed"),
        ("dangling.example", "addresses"),
    ] {
        let servers = world.runtime.block_on(world.directory.servers_of(domain));
        match servers.unwrap_err() {
            NoServers::NotNow(text) => assert!(text.contains(why), "{text}"),
            never => panic!("{domain}: {never:?}"),
        }
    }
    // A domain that exists, for something else than mail.
    dns.mx("other.example", 60, &[]);
    dns.addresses("other.example", 60, &[]);
    assert_eq!(refusal(&world, "other.example"), (550, Enhanced(5, 4, 4)));
}

#[test]
fn a_thousand_domains_behind_one_server_are_one_destination() {
    let world = world(|settings| settings.cache_max = 100);
    for no in 0..1_000 {
        world
            .dns
            .mx(&format!("d{no}.example"), 60, &[(10, "mx.example.net")]);
    }
    for no in 0..1_000 {
        assert_eq!(
            world.resolve(&format!("d{no}.example")),
            "host:mx.example.net"
        );
    }
    assert_eq!(
        world.directory.known("d0.example"),
        None,
        "only so many are remembered"
    );
    assert!(world.directory.known("d999.example").is_some());
}

#[test]
fn an_old_answer_counts_until_the_new_one_is_there() {
    let world = world(|_| ());
    world.dns.mx("moves.example", 1, &[(10, "old.example.net")]);
    world.dns.addresses("new.example.net", 60, &["192.0.2.1"]);
    assert_eq!(world.resolve("moves.example"), "host:old.example.net");
    world
        .dns
        .mx("moves.example", 60, &[(10, "new.example.net")]);
    wait_for("the new server", || {
        let known = world.directory.known("moves.example");
        (known.expect("it is known").to_string() == "host:new.example.net").then_some(())
    });
    assert_eq!(
        hosts(&world, "moves.example"),
        ["new.example.net [192.0.2.1]"]
    );
    // So does that a domain does not exist.
    assert_eq!(refusal(&world, "later.example").0, 550);
    world
        .dns
        .mx("later.example", 60, &[(10, "new.example.net")]);
    wait_for("the new domain", || {
        let servers = world
            .runtime
            .block_on(world.directory.servers_of("later.example"));
        servers.is_ok().then_some(())
    });
}

#[test]
fn servers_that_are_as_good_take_turns_and_addresses_have_an_order() {
    let world = world(|settings| settings.order = AddressOrder::Ipv6First);
    world.dns.mx(
        "twins.example",
        60,
        &[
            (5, "a.example.net"),
            (5, "b.example.net"),
            (9, "c.example.net"),
        ],
    );
    for host in ["a", "b", "c"] {
        let host = format!("{host}.example.net");
        world
            .dns
            .addresses(&host, 60, &["192.0.2.1", "2001:db8::1"]);
    }
    let (one, other) = (
        hosts(&world, "twins.example"),
        hosts(&world, "twins.example"),
    );
    assert_ne!(one, other);
    assert_eq!(one[2], "c.example.net [2001:db8::1, 192.0.2.1]");
    assert_eq!(one[2], other[2]);
    assert_eq!(world.dns.asked("a.example.net", A), 1);
}

#[test]
fn a_dns_that_fails_delays_and_heals() {
    let world = world(|settings| settings.patience = Duration::from_millis(600));
    world.dns.mx("shop.example", 60, &[(10, "mx.example.net")]);
    world.dns.addresses("mx.example.net", 60, &["192.0.2.1"]);
    world.dns.set_mood(Mood::Failing);
    assert_eq!(
        world.resolve("shop.example"),
        "host:shop.example",
        "on its own, for now"
    );
    assert!(
        world.dns.asked("shop.example", MX) > 1,
        "it was asked again"
    );
    let servers = world
        .runtime
        .block_on(world.directory.servers_of("shop.example"));
    assert!(matches!(servers, Err(NoServers::NotNow(_))));
    assert!(
        !world.directory.is_away(),
        "it answers, if only that it failed"
    );
    world.dns.set_mood(Mood::Well);
    // What is sent asks at once, and what is counted learns by that.
    assert_eq!(hosts(&world, "shop.example").len(), 1);
    assert_eq!(world.resolve("shop.example"), "host:mx.example.net");
}

#[test]
fn without_lookups_only_the_table_speaks() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let directory = Directory::new(Table::built_in(), None, runtime.handle().clone()).unwrap();
    directory.begin_to_ask();
    let known = |domain| directory.known(domain).unwrap().to_string();
    assert_eq!(known("hotmail.co.uk"), "isp:outlook");
    assert_eq!(known("Shop.Example"), "host:shop.example");
}
