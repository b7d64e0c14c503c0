use outflow_config::account::{Latency, Tls};
use outflow_config::{Invalid, RawAccount, SecretSource, TransportSettings, merge};
use outflow_core::account::SessionKind;
use outflow_core::limit::spec::{LimitSpec, Rate};
use outflow_core::reply::{Reply, Stage};
use outflow_core::time::Nanos;
use serde_json::{Value, json};

fn valid(value: Value) -> outflow_config::Account {
    let raw = RawAccount::read(&value).unwrap_or_else(|wrong| panic!("{value}: {wrong}"));
    raw.validate()
        .unwrap_or_else(|wrong| panic!("{value}: {wrong}"))
}

/// All complaints, whether they are about a field or about the whole.
fn complaints(value: Value) -> Invalid {
    match RawAccount::read(&value) {
        Err(wrong) => wrong,
        Ok(raw) => raw.validate().expect_err("it should be refused"),
    }
}

fn pointers(wrong: &Invalid) -> Vec<&str> {
    wrong.errors.iter().map(|it| it.pointer.as_str()).collect()
}

#[test]
fn a_relay_has_sound_defaults() {
    let account = valid(json!({"id": "a", "host": "smtp.example.com"}));
    assert_eq!(account.spec.pool.as_str(), "default");
    assert_eq!(account.spec.sessions.max_connections, 8);
    assert_eq!(account.spec.sessions.per_destination, 8);
    let TransportSettings::Smtp(smtp) = account.transport else {
        panic!("not a relay")
    };
    assert_eq!((smtp.port, smtp.tls), (587, Tls::Starttls));
    assert_eq!(smtp.login, None);
}

#[test]
fn limits_per_minute_hour_and_day_are_sliding_windows_and_zero_is_none() {
    let account = valid(json!({
        "id": "a", "host": "h", "limits": ["14/s burst 28", 5],
        "limit_per_minute": 600, "limit_per_hour": 0, "limit_per_day": null,
    }));
    let second = Nanos::from_secs(1);
    assert_eq!(
        account.spec.limits,
        [
            LimitSpec::TokenBucket {
                rate: Rate {
                    count: 14,
                    per: second
                },
                burst: 28
            },
            LimitSpec::TokenBucket {
                rate: Rate {
                    count: 5,
                    per: second
                },
                burst: 1
            },
            LimitSpec::SlidingWindow {
                count: 600,
                window: Nanos::from_secs(60)
            },
        ]
    );
    let twice = complaints(json!({
        "id": "a", "host": "h", "limits": ["500/min"], "limit_per_minute": 600,
    }));
    assert_eq!(pointers(&twice), ["/limit_per_minute"]);
}

#[test]
fn use_tls_is_never_an_open_line() {
    let tls = |value: Value| match valid(value).transport {
        TransportSettings::Smtp(smtp) => (smtp.port, smtp.tls),
        other => panic!("{other:?}"),
    };
    let with = |more: Value| merge(&json!({"id": "a", "host": "h"}), &more);
    assert_eq!(tls(with(json!({"use_tls": true}))), (465, Tls::Implicit));
    assert_eq!(
        tls(with(json!({"use_tls": true, "port": 465}))),
        (465, Tls::Implicit)
    );
    assert_eq!(
        tls(with(json!({"use_tls": true, "port": 587}))),
        (587, Tls::Starttls)
    );
    assert_eq!(tls(with(json!({"use_tls": false}))), (587, Tls::Starttls));
    assert_eq!(tls(with(json!({"port": 465}))), (465, Tls::Implicit));
    let both = complaints(with(json!({"use_tls": true, "tls": "none"})));
    assert_eq!(pointers(&both), ["/use_tls"]);
}

#[test]
fn all_problems_are_told_at_once_each_with_its_place() {
    let wrong = complaints(json!({
        "id": "a/b", "transport": "stmp", "prot": 25, "port": 70_000, "max_connections": 0,
        "limits": ["14/s", "x/s", "5/fortnight"],
        "sandbox": {"failures": [{"share": "5%", "kind": "rate"}, {"share": "150%"}]},
    }));
    let mut found = pointers(&wrong);
    found.sort_unstable();
    assert_eq!(
        found,
        [
            "/id",
            "/limits/1",
            "/limits/2",
            "/max_connections",
            "/port",
            "/prot",
            "/sandbox/failures/1/share",
            "/transport",
        ]
    );
    let told = wrong.to_string();
    assert!(told.contains("did you mean port?"), "{told}");
    assert!(told.contains("did you mean smtp?"), "{told}");
    assert!(told.contains("a unit: s, min, h or day"), "{told}");
}

#[test]
fn what_code_wrote_is_checked_as_well() {
    let raw = RawAccount {
        id: Some("*".to_owned()),
        max_connections: Some(0),
        ..RawAccount::default_sandbox()
    };
    let wrong = raw.validate().expect_err("two fields are wrong");
    assert_eq!(pointers(&wrong), ["/id", "/max_connections"]);
}

#[test]
fn what_means_nothing_to_a_transport_is_refused() {
    let wrong = complaints(json!({
        "id": "a", "transport": "sandbox", "host": "smtp.example.com", "tls": "starttls",
    }));
    assert_eq!(pointers(&wrong), ["/host", "/tls"]);
    let wrong = complaints(json!({"id": "a", "transport": "mx", "user": "me"}));
    assert_eq!(pointers(&wrong), ["/user"]);
    let wrong = complaints(json!({"id": "a", "host": "h", "sandbox": {}}));
    assert_eq!(pointers(&wrong), ["/sandbox"]);
}

#[test]
fn mail_exchangers_take_their_own_settings() {
    let account = valid(json!({
        "id": "a", "transport": "mx", "source_ip": "2001:DB8::1", "helo": "mail.example.com",
        "max_connections": 20,
        "dkim": {"domain": "example.com", "selector": "s1", "key_file": "/k.pem"},
    }));
    assert_eq!(
        account.spec.ip.as_ref().map(|ip| ip.as_str()),
        Some("2001:db8::1")
    );
    assert_eq!(account.spec.sessions.per_destination, 5);
    let TransportSettings::Mx(mx) = account.transport else {
        panic!("not mx")
    };
    assert_eq!((mx.port, mx.tls), (25, Tls::Opportunistic));
    assert_eq!(mx.dkim.expect("it signs").selector, "s1");
}

#[test]
fn a_sandbox_behaves_as_it_is_told() {
    let account = valid(json!({
        "id": "a", "transport": "sandbox",
        "sandbox": {
            "latency": {"p50": "20ms", "p99": "2s"},
            "failures": [
                {"share": 0.05, "reply": "451 4.3.0 Later"},
                {"share": "0.1%", "kind": "uncertain"},
            ],
            "hidden_rate": "50/s burst 10", "over": 429, "retry_after": "1.5s", "keep": 7,
            "headers": ["RateLimit-Policy: 5;w=1"],
        },
    }));
    assert!(account.is_sandbox());
    let TransportSettings::Sandbox(sandbox) = account.transport else {
        panic!("not a sandbox")
    };
    let (p50, p99) = (Nanos::from_millis(20), Nanos::from_secs(2));
    assert_eq!(sandbox.latency, Latency::Spread { p50, p99 });
    let shares: Vec<u32> = sandbox.failures.iter().map(|it| it.share_ppm).collect();
    assert_eq!(shares, [50_000, 1_000]);
    assert_eq!(
        sandbox.failures[0].reply,
        Reply::said(Stage::Data, 451, "4.3.0 Later")
    );
    assert_eq!(sandbox.failures[1].reply, Reply::Uncertain);
    let hidden = sandbox.hidden_rate.expect("there is one");
    let Reply::Said {
        code: 429,
        retry_after,
        ..
    } = hidden.over
    else {
        panic!("{:?}", hidden.over)
    };
    assert_eq!(retry_after, Some(Nanos::from_millis(1_500)));
    assert_eq!(sandbox.keep, 7);
    let header = ("RateLimit-Policy".to_owned(), "5;w=1".to_owned());
    assert_eq!(sandbox.headers, [header]);

    let wrong = complaints(json!({
        "id": "a", "transport": "sandbox",
        "sandbox": {
            "latency": {"p50": "2s", "p99": "1s"}, "over": 421, "headers": ["nonsense"],
            "failures": [{"share": "60%", "kind": "rate"}, {"share": "60%", "kind": "full"}],
        },
    }));
    let expected = [
        "/sandbox/latency/p99",
        "/sandbox/failures",
        "/sandbox/over",
        "/sandbox/headers/0",
    ];
    assert_eq!(pointers(&wrong), expected);
}

#[test]
fn every_named_failure_is_an_answer() {
    for kind in outflow_config::account::sandbox::FAILURE_KINDS {
        let account = valid(json!({
            "id": "a", "transport": "sandbox",
            "sandbox": {"failures": [{"share": "1%", "kind": kind}]},
        }));
        let TransportSettings::Sandbox(sandbox) = account.transport else {
            panic!("not a sandbox")
        };
        assert!(!sandbox.failures[0].reply.is_accepted(), "{kind}");
    }
}

#[test]
fn a_password_is_never_shown_and_survives_being_sent_back() {
    let before = RawAccount::read(&json!({
        "id": "a", "host": "h", "user": "me", "password": "hunter2",
    }))
    .expect("it is sound");
    let account = before.validate().expect("it is sound");
    for shown in [
        before.shown().to_string(),
        format!("{before:?}"),
        format!("{account:?}"),
        serde_json::to_string(&before).expect("it is JSON"),
    ] {
        assert!(!shown.contains("hunter2"), "{shown}");
    }
    assert_eq!(before.stored()["password"], "hunter2");

    let sent_back = merge(&before.shown(), &json!({"port": 2525}));
    let mut after = RawAccount::read(&sent_back).expect("what is shown can be read");
    let unresolved = after
        .validate()
        .expect_err("the placeholder is no password");
    assert_eq!(pointers(&unresolved), ["/password"]);
    after.keep_secrets(&before);
    assert_eq!(
        (after.stored()["password"].clone(), after.port),
        (json!("hunter2"), Some(2525))
    );

    let leaks = complaints(json!({"id": "a", "host": "h", "user": "u", "password": ["hunter2"]}));
    assert!(!leaks.to_string().contains("hunter2"), "{leaks}");
}

#[test]
fn passwords_come_from_variable_or_file_and_only_over_a_protected_line() {
    let account = valid(json!({"id": "a", "host": "h", "user": "me", "password_env": "PW"}));
    let TransportSettings::Smtp(smtp) = account.transport else {
        panic!("not a relay")
    };
    let source = smtp.login.expect("it logs in").password;
    assert_eq!(source, SecretSource::Env("PW".to_owned()));
    let found = source.resolve(|name| (name == "PW").then(|| "hunter2".to_owned()));
    assert_eq!(found.expect("it is set").expose(), "hunter2");
    let missing = source.resolve(|_| None).expect_err("it is not set");
    assert!(missing.to_string().contains("PW"), "{missing}");

    let file = std::env::temp_dir().join(format!("outflow-secret-{}", std::process::id()));
    std::fs::write(&file, "hunter2\n").expect("a file can be written");
    let read = SecretSource::File(file.clone()).resolve(|_| None);
    std::fs::remove_file(&file).expect("it is there");
    assert_eq!(read.expect("it is there").expose(), "hunter2");

    let open = json!({"id": "a", "host": "h", "user": "me", "password_env": "PW", "tls": "none"});
    assert_eq!(pointers(&complaints(open)), ["/tls"]);
    let many = json!({
        "id": "a", "host": "h", "user": "me", "password_env": "PW", "password_file": "/pw",
    });
    assert_eq!(pointers(&complaints(many)), ["/password_env"]);
}

#[test]
fn a_patch_replaces_and_null_clears() {
    let base = json!({"id": "a", "host": "h", "limits": ["1/s"], "dkim": {"domain": "d", "selector": "s"}});
    let patch = json!({"limits": null, "port": 25, "dkim": {"selector": "t", "x": null}});
    let expected =
        json!({"id": "a", "host": "h", "port": 25, "dkim": {"domain": "d", "selector": "t"}});
    assert_eq!(merge(&base, &patch), expected);
}

#[test]
fn connections_of_a_relay_serve_any_destination_and_those_of_mx_one() {
    let relay = valid(json!({"id": "a", "host": "smtp.example.com"}));
    assert_eq!(relay.spec.sessions.kind, SessionKind::RelayConnections);
    let mx = valid(json!({"id": "a", "transport": "mx", "helo": "mail.example.com"}));
    assert_eq!(mx.spec.sessions.kind, SessionKind::Connections);
    let sandbox = valid(json!({"id": "a", "transport": "sandbox"}));
    assert_eq!(sandbox.spec.sessions.kind, SessionKind::Slots);
}
