use std::net::SocketAddr;
use std::path::Path;

use outflow_config::{LoadError, Settings};
use outflow_core::engine;
use outflow_core::engine::admission::FlowCaps;
use outflow_core::policy::set::Policies;
use outflow_core::retry::schedule::{OnUncertain, RetrySchedules};
use outflow_core::time::Nanos;

fn env(pairs: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> {
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
        .collect();
    pairs.into_iter()
}

fn refused(text: &str) -> String {
    Settings::parse(text)
        .expect_err("it should be refused")
        .to_string()
}

#[test]
fn without_a_file_everything_has_its_default_and_there_is_a_sandbox() {
    let settings = Settings::load(None, env(&[])).expect("nothing is needed");
    let local: SocketAddr = "127.0.0.1:8025".parse().expect("it is one");
    assert_eq!(settings.server.listener.address, local);
    assert!(settings.is_sandbox_by_default);
    assert_eq!(settings.accounts.len(), 1);
    assert!(settings.accounts[0].account.is_sandbox());
    assert!(settings.smtp.is_none() && settings.throttle.listener.is_none());
    // The defaults here are those with which the engine is tested.
    assert_eq!(settings.retry.schedules, RetrySchedules::default());
    assert_eq!(settings.engine().on_uncertain, OnUncertain::default());
    assert_eq!(settings.engine().flow_caps, FlowCaps::default());
    let engine = engine::Settings::default();
    assert_eq!(settings.engine().retry_budget, engine.retry_budget);
    assert_eq!(settings.engine().breaker, engine.breaker);
    assert_eq!(settings.engine().pool, engine.pool);
    assert_eq!(
        settings.engine().delivery_deadline,
        engine.delivery_deadline
    );
    assert_eq!(
        settings.start_policies().epoch(),
        Policies::default().epoch()
    );
}

#[test]
fn the_example_of_the_contract_is_taken() {
    let settings = Settings::parse(
        r#"
        [server]
        listen = "127.0.0.1:8025"
        data_dir = "outflow-data"
        [store]
        [ledger]
        [smtp]
        listen = "127.0.0.1:2525"
        [throttle]
        [[account]]
        id = "primary"
        pool = "default"
        transport = "smtp"
        host = "smtp.example.com"
        port = 587
        tls = "starttls"
        user = "sender"
        password_env = "SMTP_PASSWORD"
        max_connections = 8
        max_messages_per_connection = 100
        limits = ["14/s burst 28", "600/min", "50k/day"]
        [[policy]]
        match = { isp = "google", ip = "*" }
        rate = "2/s"
        burst = 5
        concurrency = 5
        [[policy]]
        match = { tenant = "*" }
        rate = "100/s"
        weight = 1
        when_away = "open"
        [classes.critical]
        headroom = "20%"
        [retry]
        email = { first = "5m", factor = 2.0, cap = "4h", give_up_after = "4d", jitter = "equal" }
        critical = { first = "30s", cap = "5m" }
        api   = { attempts = 5, first = "1s", cap = "5m", jitter = "full" }
        budget = "20%"
        on_uncertain = "retry"
        uncertain_attempts = 5
        [retention]
        bodies = "settled"
        receipts = "30d"
        dead_letters = "14d"
        idempotency = "24h"
        "#,
    )
    .unwrap_or_else(|error| panic!("{error}"));
    assert!(!settings.is_sandbox_by_default);
    assert_eq!(settings.accounts[0].account.spec.limits.len(), 3);
    assert_eq!(settings.start_policies().iter().count(), 2);
    assert_eq!(settings.retry.schedules, RetrySchedules::default());
    let on_uncertain = OnUncertain::Retry { lost_max: 5 };
    assert_eq!(settings.engine().on_uncertain, on_uncertain);
    assert_eq!(settings.retention.idempotency, Nanos::from_secs(86_400));
    assert!(settings.smtp.is_some());
}

#[test]
fn every_problem_says_line_and_column_and_what_was_meant() {
    let told = refused(
        "[server]\nlisen = \"127.0.0.1:1\"\n\n[sever]\n[retry]\nemail = { frist = \"5m\" }\n\
         [[account]]\nid = \"a\"\ntransport = \"sandbox\"\nkeep = 3\n\
         [[account]]\nid = \"a\"\ntransport = \"sandbox\"\npassword = \"hunter2\"\n",
    );
    for words in [
        "settings:2:1: server.lisen: unknown key \"lisen\": did you mean listen?",
        "settings:4:2: sever: unknown key \"sever\": did you mean server?",
        "settings:6:11: retry.email.frist: unknown key \"frist\": did you mean first?",
        "settings:10:1: account[0].keep: unknown key",
        "settings:14:1: account[1].password: ",
    ] {
        assert!(told.contains(words), "{words}\nis not in\n{told}");
    }
    assert!(!told.contains("hunter2"), "{told}");
}

#[test]
fn what_is_missing_is_told_where_it_should_stand() {
    let told = refused("[log]\n[[account]]\nid = \"a\"\n");
    assert!(
        told.starts_with("settings:2:1: account[0].host: smtp needs"),
        "{told}"
    );
}

#[test]
fn text_that_is_not_toml_says_where() {
    let told = refused("[server]\nlisten = 127.0.0.1\n");
    assert!(told.starts_with("settings:2:"), "{told}");
}

#[test]
fn duplicates_are_named() {
    let account = "[[account]]\nid = \"a\"\ntransport = \"sandbox\"\n";
    let told = refused(&format!("{account}{account}"));
    assert!(
        told.contains("5:1: account[1].id: account number 1"),
        "{told}"
    );
    let policy = |isp: &str| format!("[[policy]]\nmatch = {{ isp = \"{isp}\" }}\nrate = 1\n");
    let told = refused(&format!("{}{}", policy("gmail"), policy("Google")));
    assert!(told.contains("policy[1].match: policy number 1"), "{told}");
}

#[test]
fn a_listener_that_others_can_reach_is_protected_or_says_that_it_is_not() {
    for open in [
        "[server]\nlisten = \"0.0.0.0:8025\"",
        "[server]\nlisten = \"[::]:8025\"",
        "[smtp]\nlisten = \"192.0.2.1:25\"",
        "[throttle]\nlisten = \"[2001:db8::1]:6380\"",
    ] {
        let told = refused(open);
        assert!(
            told.contains("insecure = true") && told.contains(":2:1: "),
            "{told}"
        );
        let insecure = format!("{open}\ninsecure = true");
        assert!(Settings::parse(&insecure).is_ok(), "{insecure}");
        let protected = format!("{open}\ntls_cert = \"c\"\ntls_key = \"k\"");
        assert!(Settings::parse(&protected).is_ok(), "{protected}");
    }
    assert!(Settings::parse("[server]\nlisten = \"[::ffff:127.0.0.1]:1\"").is_ok());
    assert!(refused("[server]\ntls_cert = \"c\"").contains("tls_key"));
}

#[test]
fn numbers_that_do_not_go_together_are_refused() {
    let retry = "[retry.email]\nfirst = \"5h\"";
    assert!(refused(retry).contains("2:1: retry.email.first: must not be longer than cap"));
    let classes = "[classes]\ncritical = { headroom = \"60%\" }\nhigh = { headroom = 0.4 }";
    assert!(refused(classes).contains("100% or more"));
    let sizes = "[server]\nmessage_size_max = \"65MiB\"";
    assert!(refused(sizes).contains("request_size_max"));
    assert!(refused("[retry.email]\nfactor = nan").contains("a number from 1 to 100"));
    assert!(refused("[server]\nrequests_max = 99999999999999999999").contains("a whole number"));
}

#[test]
fn the_runbook_looks_often_enough() {
    let runbook = |text: &str| format!("[runbook]\n{text}");
    let problem = refused(&runbook("look_every = \"2m\""));
    assert!(problem.contains("100ms to 1m"), "{problem}");
    let problem = refused(&runbook("look_every = \"30s\"\nramp_every = \"1m\""));
    assert!(
        problem.contains("a quarter of ramp_every (\"1m\"), so 15000ms"),
        "{problem}"
    );
    for sound in [
        "look_every = \"15s\"\nramp_every = \"1m\"",
        "look_every = \"1m\"",
        "enabled = false\nramp_every = \"1s\"",
    ] {
        assert!(Settings::parse(&runbook(sound)).is_ok(), "{sound}");
    }
}

#[test]
fn a_plan_of_ones_own_warms_a_sender_up() {
    let warm_up = |text: &str| format!("[[warm_up]]\naccount = \"mx-7\"\n{text}");
    let settings = Settings::parse(&warm_up("steps = [50, 100]\nper = \"hour\"")).unwrap();
    let plan = &settings.warm_ups[0].plan;
    assert_eq!((plan.name.as_str(), plan.days()), ("own", 2));
    assert_eq!(
        plan.quota(1).map(|it| (it.day, it.hour)),
        Some((2_400, 100))
    );
    let settings = Settings::parse(&warm_up("steps = [50, 100]")).unwrap();
    let plan = &settings.warm_ups[0].plan;
    assert_eq!(plan.quota(0).map(|it| (it.day, it.hour)), Some((50, 5)));
    for (wrong, words) in [
        ("plan = \"ses\"\nsteps = [1]", "either plan or steps"),
        ("plan = \"ses\"\nper = \"hour\"", "write steps beside it"),
        ("steps = []", "at least one"),
        ("steps = [0]", "from 1"),
    ] {
        let problem = refused(&warm_up(wrong));
        assert!(problem.contains(words), "{wrong}: {problem}");
    }
}

#[test]
fn the_command_line_goes_over_the_environment_and_that_over_the_file() {
    let path = std::env::temp_dir().join(format!("outflow-config-{}.toml", std::process::id()));
    std::fs::write(
        &path,
        "[server]\nnode = \"file\"\nrequests_max = 7\n[log]\nlevel = \"warn\"\n",
    )
    .expect("a file can be written");
    let variables = [
        ("OUTFLOW_SERVER__NODE", "env"),
        ("OUTFLOW_LOG__RECIPIENTS", "true"),
        ("OUTFLOW_RETRY__EMAIL__FIRST", "1m"),
        ("OUTFLOW_RETRY__EMAIL__FACTOR", "3"),
        (
            "OUTFLOW_LEDGER__URL",
            "redis://me:hunter2@redis.example.com/0",
        ),
        ("OUTFLOW_STORE__URL", ""),
        ("OUTFLOW_SERVER", "http://127.0.0.1:8025"),
        ("OUTFLOW_TOKEN", "hunter2"),
        ("HOME", "/root"),
    ];
    let over = [("server.data_dir", "/tmp/x"), ("server.node", "cli")];
    let settings = Settings::load_with(Some(&path), env(&variables), &over);
    std::fs::remove_file(&path).expect("it is there");
    let settings = settings.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(settings.server.node, "cli");
    assert_eq!(settings.server.requests_max, 7);
    assert!(settings.log.recipients && settings.engine().leased);
    assert_eq!(
        settings.retry.schedules.email.backoff.first,
        Nanos::from_secs(60)
    );
    assert_eq!(settings.retry.schedules.email.backoff.factor_milli, 3_000);
    assert_eq!(
        settings.ledger.url.as_ref().map(|url| url.expose().len()),
        Some(38)
    );

    let shown = settings.show();
    for (line, origin) in [
        ("node = \"cli\"", "# command line"),
        ("requests_max = 7", "# file"),
        ("first = \"1m\"", "# env OUTFLOW_RETRY__EMAIL__FIRST"),
        (
            "url = \"redis://me:(hidden)@redis.example.com/0\"",
            "# env OUTFLOW_LEDGER__URL",
        ),
        ("listen = \"127.0.0.1:8025\"", "# default"),
        ("id = \"sandbox\"", "# default"),
    ] {
        let found = shown.lines().find(|shown| shown.starts_with(line));
        assert!(
            found.is_some_and(|it| it.ends_with(origin)),
            "{line}\n{shown}"
        );
    }
    assert!(
        !shown.contains("hunter2") && !format!("{settings:?}").contains("hunter2"),
        "{shown}"
    );
    assert!(
        Settings::parse(&shown).is_ok(),
        "what is shown can be read again:\n{shown}"
    );
}

#[test]
fn variables_are_checked_like_the_file() {
    let load = |name: &str, text: &str| {
        let error = Settings::load(None, env(&[(name, text)])).expect_err(name);
        error.to_string()
    };
    for (name, text, words) in [
        ("OUTFLOW_SERVER__LISEN", "x", "did you mean listen?"),
        ("OUTFLOW_SERVER__LISTEN", "8025", "an address and port"),
        ("OUTFLOW_SERVER__LISTEN", "0.0.0.0:1", "insecure = true"),
        ("OUTFLOW_SERVER__INSECURE", "maybe", "true or false"),
        ("OUTFLOW_ACCOUNT__0__ID", "x", "the API"),
        ("OUTFLOW_RETRY__EMAIL", "x", "is a table"),
        ("OUTFLOW_SERVER__LISTEN__X", "x", "is no table"),
        ("OUTFLOW_RETRY__API__FACTOR", "nan", "a number from 1"),
    ] {
        let told = load(name, text);
        let start = format!("environment variable {name}: ");
        assert!(told.starts_with(&start) && told.contains(words), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Settings::load(Some(Path::new("/nowhere/outflow.toml")), env(&[]));
    let error = error.expect_err("it is not there");
    assert!(matches!(error, LoadError::Unreadable { .. }));
    assert!(
        error.to_string().contains("/nowhere/outflow.toml"),
        "{error}"
    );
}
