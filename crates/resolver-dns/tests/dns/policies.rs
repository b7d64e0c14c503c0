//! What domains demand of whoever sends to them (MTA-STS).

use std::sync::Arc;
use std::time::Duration;

use outflow_resolver_dns::{Network, NoServers, Reach, Server, StsSettings, Takes};
use tokio::runtime::Runtime;

use crate::server::TXT;
use crate::web::{Authority, WebServer};
use crate::{World, everywhere, wait_for, world};

struct Setting {
    world: World,
    web: WebServer,
    _runtime: Runtime,
}

/// `example.com` has two servers, and a web server whose certificate is for
/// `name`. What failed is tried again after `pause`.
fn setting(name: &str, pause: Duration) -> Setting {
    within(everywhere(), name, pause)
}

/// The same, where only some addresses may be connected to.
fn within(reach: Reach, name: &str, pause: Duration) -> Setting {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let authority = Authority::new();
    let web = runtime.block_on(WebServer::start(authority.acceptor(&[name])));
    let world = world(|settings| {
        settings.reach = reach;
        settings.sts = Some(StsSettings {
            port: web.address.port(),
            roots: vec![authority.root()],
            pause,
            ..StsSettings::default()
        });
    });
    let servers = [(10, "mx.example.com"), (20, "mx.example.net")];
    world.dns.mx("example.com", 60, &servers);
    for (_, host) in servers {
        world.dns.addresses(host, 60, &["192.0.2.1"]);
    }
    world
        .dns
        .addresses("mta-sts.example.com", 60, &["127.0.0.1"]);
    Setting {
        world,
        web,
        _runtime: runtime,
    }
}

/// As most tests want it.
fn usual() -> Setting {
    setting("mta-sts.example.com", Duration::from_millis(300))
}

impl Setting {
    /// The policy has this id from now on, which is believed for so long.
    fn record(&self, id: &str, ttl: u32) {
        let text = format!("v=STSv1; id={id};");
        self.world.dns.texts("_mta-sts.example.com", ttl, &[&text]);
    }

    fn servers(&self) -> Result<Vec<Server>, NoServers> {
        let servers = self.world.directory.servers_of("Example.com");
        self.world.runtime.block_on(servers)
    }

    /// The servers to which mail goes, and whether their certificates must be
    /// verified.
    fn hosts(&self) -> Vec<(String, bool)> {
        let servers = self.servers().unwrap().into_iter();
        let servers = servers.map(|server| (server.host, server.must_verify));
        servers.collect()
    }

    fn takes(&self, host: &str) -> Takes {
        let takes = self.world.directory.takes(host, "example.com");
        self.world.runtime.block_on(takes).unwrap()
    }

    fn questions(&self) -> usize {
        self.world.dns.asked("_mta-sts.example.com", TXT)
    }
}

fn only(host: &str) -> Vec<(String, bool)> {
    vec![(host.to_owned(), true)]
}

fn both() -> Vec<(String, bool)> {
    ["mx.example.com", "mx.example.net"]
        .map(|host| (host.to_owned(), false))
        .to_vec()
}

#[test]
fn a_domain_says_which_servers_it_wants() {
    let setting = usual();
    setting.record("1", 60);
    setting
        .web
        .publish("enforce", &["*.example.net", "other.example"], 86_400);
    assert_eq!(setting.hosts(), only("mx.example.net"));
    assert_eq!(setting.takes("mx.example.net"), Takes::IfVerified);
    assert_eq!(setting.takes("mx.example.com"), Takes::No);
    assert_eq!(setting.takes("other.example"), Takes::No);
    let asked = setting.web.asked();
    let [request] = asked.as_slice() else {
        panic!("it was remembered: {asked:?}");
    };
    assert!(
        request.starts_with("GET /.well-known/mta-sts.txt HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(
        request.contains("\r\nHost: mta-sts.example.com\r\n"),
        "{request}"
    );
    assert_eq!(setting.questions(), 1);
}

#[test]
fn a_policy_is_not_fetched_from_an_address_that_is_not_public() {
    // The mail servers may be reached, the web server may not.
    let documentation = Network::new([192, 0, 2, 0].into(), 24);
    let reach = Reach::new(vec![documentation]);
    let setting = within(reach, "mta-sts.example.com", Duration::from_millis(300));
    setting.record("1", 60);
    setting.web.publish("enforce", &["mx.example.net"], 86_400);
    assert_eq!(setting.hosts(), both());
    assert_eq!(setting.web.asked(), [] as [String; 0]);
}

#[test]
fn if_no_server_is_wanted_mail_waits() {
    let setting = usual();
    setting.record("1", 60);
    setting.web.publish("enforce", &["mx.example.org"], 86_400);
    let text = "MTA-STS: no server of example.com matches its policy".to_owned();
    assert_eq!(setting.servers(), Err(NoServers::Policy(text)));
}

#[test]
fn only_what_is_enforced_is_demanded() {
    for mode in ["testing", "none"] {
        let setting = usual();
        setting.record("1", 60);
        setting.web.publish(mode, &["mx.example.org"], 86_400);
        assert_eq!(setting.hosts(), both(), "{mode}");
        assert_eq!(setting.takes("mx.example.com"), Takes::Yes);
        assert_eq!(setting.web.asked().len(), 1);
    }
}

#[test]
fn who_has_no_record_is_not_asked_for_a_policy() {
    for texts in [
        &[][..],
        &["v=spf1 -all"],
        &["v=STSv1; id=1;", "v=STSv1; id=2;"],
        &["v=STSv1; id=?;"],
    ] {
        let setting = usual();
        if !texts.is_empty() {
            setting.world.dns.texts("_mta-sts.example.com", 60, texts);
        }
        setting.web.publish("enforce", &["mx.example.org"], 86_400);
        assert_eq!(setting.hosts(), both(), "{texts:?}");
        assert_eq!(setting.web.asked(), Vec::<String>::new(), "{texts:?}");
    }
    // Whoever is written to by address has no policy, and no record.
    let setting = usual();
    let servers = setting.world.directory.servers_of("[192.0.2.7]");
    let servers = setting.world.runtime.block_on(servers).unwrap();
    assert!(!servers[0].must_verify);
    // A record may come in pieces.
    let long = format!("v=STSv1; more={}; id=1;", "x".repeat(300));
    setting
        .world
        .dns
        .texts("_mta-sts.example.com", 60, &[&long]);
    setting.web.publish("enforce", &["mx.example.com"], 86_400);
    assert_eq!(setting.hosts(), only("mx.example.com"));
}

#[test]
fn a_policy_that_cannot_be_had_is_none_until_it_can() {
    let setting = usual();
    setting.record("1", 60);
    let body = "version: STSv1\nmode: enforce\nmx: mx.example.com\nmax_age: 9999\n";
    for answer in [
        "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\n\r\n".to_owned(),
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}"),
        format!("HTTP/1.1 301 Moved\r\nContent-Type: text/plain\r\nLocation: /\r\n\r\n{body}"),
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nmode: enforce\n".to_owned(),
        "nonsense".to_owned(),
    ] {
        setting.web.say(&answer);
        let before = setting.web.asked().len();
        wait_for("it is asked again after the pause", || {
            assert_eq!(setting.hosts(), both(), "{answer}");
            (setting.web.asked().len() > before).then_some(())
        });
    }
    setting.web.say(&format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n{body}"
    ));
    wait_for("the policy", || {
        (setting.hosts() == only("mx.example.com")).then_some(())
    });
}

#[test]
fn a_web_server_that_cannot_prove_its_name_is_not_asked() {
    let setting = setting("mta-sts.example.org", Duration::from_secs(3_600));
    setting.record("1", 60);
    setting.web.publish("enforce", &["mx.example.com"], 86_400);
    assert_eq!(setting.hosts(), both());
    assert_eq!(setting.web.asked(), Vec::<String>::new());
}

#[test]
fn a_new_id_is_a_new_policy() {
    let setting = usual();
    setting.record("1", 1);
    setting.web.publish("enforce", &["mx.example.com"], 86_400);
    assert_eq!(setting.hosts(), only("mx.example.com"));
    // The same id, the same policy, however often it is asked for.
    setting.web.publish("enforce", &["mx.example.net"], 86_400);
    let before = setting.questions();
    wait_for("the record is asked for again", || {
        assert_eq!(setting.hosts(), only("mx.example.com"));
        (setting.questions() > before + 1).then_some(())
    });
    assert_eq!(setting.web.asked().len(), 1);
    setting.record("2", 60);
    wait_for("the new policy", || {
        (setting.hosts() == only("mx.example.net")).then_some(())
    });
    assert_eq!(setting.web.asked().len(), 2);
}

#[test]
fn what_was_fetched_holds_whatever_fails() {
    let setting = usual();
    setting.record("1", 1);
    setting.web.publish("enforce", &["mx.example.com"], 86_400);
    assert_eq!(setting.hosts(), only("mx.example.com"));
    let holds = |what: &str, is_over: &mut dyn FnMut() -> bool| {
        wait_for(what, || {
            assert_eq!(setting.hosts(), only("mx.example.com"), "{what}");
            is_over().then_some(())
        });
    };
    setting.world.dns.set_broken("_mta-sts.example.com");
    let before = setting.questions();
    holds("DNS fails", &mut || setting.questions() > before + 2);
    setting.world.dns.mend("_mta-sts.example.com");
    setting.web.say("HTTP/1.1 500 Sorry\r\n\r\n");
    setting.record("2", 1);
    holds("the web server fails", &mut || {
        setting.web.asked().len() > 2
    });
    setting.world.dns.texts("_mta-sts.example.com", 1, &[]);
    let before = setting.questions();
    holds("the record is gone", &mut || {
        setting.questions() > before + 2
    });
}

#[test]
fn all_wait_for_one_answer_and_not_for_long() {
    let setting = usual();
    setting.record("1", 60);
    setting.web.fall_silent();
    let directory = &setting.world.directory;
    let hosts = setting.world.runtime.block_on(async {
        let ask = || {
            let directory = Arc::clone(directory);
            tokio::spawn(async move { directory.servers_of("example.com").await })
        };
        let mut hosts = Vec::new();
        for asked in (0..20).map(|_| ask()).collect::<Vec<_>>() {
            hosts.extend(asked.await.unwrap().unwrap());
        }
        hosts
    });
    assert_eq!(hosts.len(), 40, "it went on without an answer");
    assert!(hosts.iter().all(|server| !server.must_verify));
    assert_eq!(setting.web.asked().len(), 1, "one asked for all");
}
