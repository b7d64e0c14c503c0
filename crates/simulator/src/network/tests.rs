use outflow_core::reply::{Reply, Stage};
use outflow_core::time::{Nanos, Wall};

use super::spec::NetworkSpec;
use super::{Answer, Delivery, Network, SessionNo};
use crate::random::Random;

fn network(toml: &str) -> Network {
    let spec: NetworkSpec = toml::from_str(&format!("name = \"test\"\n{toml}")).unwrap();
    assert_eq!(spec.problems(), Vec::<String>::new());
    Network::new(spec, Wall(0), Random::new(1, 1))
}

fn open(network: &mut Network, now: Nanos) -> SessionNo {
    network.connect(now, 0).result.unwrap()
}

fn send(network: &mut Network, now: Nanos, session: SessionNo, recipient: u64) -> Answer {
    network.deliver(
        now,
        Delivery {
            session,
            recipient,
            cost: 1,
        },
    )
}

fn secs(secs: u64) -> Nanos {
    Nanos::from_secs(secs)
}

fn code(answer: &Answer) -> u16 {
    match &answer.reply {
        Reply::Said { code, .. } => *code,
        _ => 0,
    }
}

#[test]
fn beyond_the_hidden_rate_it_says_421_and_closes() {
    let mut far = network("rate = { rate = \"1/s\", burst = 2 }");
    let session = open(&mut far, secs(0));
    assert!(send(&mut far, secs(0), session, 1).taken);
    assert!(send(&mut far, secs(0), session, 2).taken);
    let refused = send(&mut far, secs(0), session, 3);
    assert_eq!((code(&refused), refused.closes_session), (421, true));
    assert_eq!(far.open_sessions(), 0);
    let session = open(&mut far, secs(1));
    assert!(send(&mut far, secs(1), session, 3).taken);
}

#[test]
fn accounts_are_judged_alone_unless_it_judges_everyone() {
    for (judges, taken) in [("account", true), ("everyone", false)] {
        let mut far = network(&format!(
            "judges = \"{judges}\"\nrate = {{ rate = \"1/s\", burst = 1 }}"
        ));
        let one = far.connect(secs(0), 1).result.unwrap();
        let two = far.connect(secs(0), 2).result.unwrap();
        assert!(send(&mut far, secs(0), one, 1).taken);
        assert_eq!(send(&mut far, secs(0), two, 2).taken, taken);
    }
}

#[test]
fn connections_and_messages_per_connection_are_capped() {
    let mut far = network("connections = { max = 1, messages = 2 }");
    let session = open(&mut far, secs(0));
    assert!(far.connect(secs(0), 0).result.is_err());
    assert!(send(&mut far, secs(0), session, 1).taken);
    assert!(send(&mut far, secs(0), session, 2).taken);
    assert!(send(&mut far, secs(0), session, 3).closes_session);
    assert!(far.connect(secs(0), 0).result.is_ok());
}

#[test]
fn a_greylist_lets_those_pass_who_come_back_in_time() {
    let mut far = network("greylist = { delay = \"300s\" }");
    let session = open(&mut far, secs(0));
    let first = send(&mut far, secs(0), session, 9);
    assert!(matches!(
        first.reply,
        Reply::Said {
            stage: Stage::Recipient,
            code: 450,
            ..
        }
    ));
    assert!(!send(&mut far, secs(299), session, 9).taken);
    assert!(send(&mut far, secs(300), session, 9).taken);
    assert!(send(&mut far, secs(301), session, 9).taken);
}

#[test]
fn a_penalty_grows_while_one_pushes_and_is_forgiven() {
    let mut far = network(
        "protocol = \"http\"\nrate = { rate = \"1/s\", burst = 1 }\n\
         penalty = { first = \"10s\", longest = \"40s\", forgives = \"100s\" }",
    );
    let session = open(&mut far, secs(0));
    assert!(send(&mut far, secs(0), session, 1).taken);
    assert_eq!(code(&send(&mut far, secs(0), session, 1)), 429);
    // Blocked until 10; pushing at 5 makes it 5 + 20, pushing at 24 makes it 24 + 40.
    assert!(!send(&mut far, secs(5), session, 1).taken);
    assert!(!send(&mut far, secs(24), session, 1).taken);
    assert!(!send(&mut far, secs(63), session, 1).taken);
    assert!(send(&mut far, secs(63 + 40), session, 1).taken);
}

#[test]
fn a_daily_quota_starts_anew_at_midnight() {
    let mut far = network("protocol = \"http\"\nquota = { count = 2, per = \"day\" }");
    let session = open(&mut far, secs(0));
    assert!(send(&mut far, secs(0), session, 1).taken);
    assert!(send(&mut far, secs(1), session, 1).taken);
    assert_eq!(code(&send(&mut far, secs(86_399), session, 1)), 429);
    assert!(send(&mut far, secs(86_400), session, 1).taken);
}

#[test]
fn outages_come_and_go_by_their_calendar() {
    let mut far = network(
        "timeout = \"30s\"\nlatency = { kind = \"constant\", is = \"5ms\" }\noutages = [\n\
         { at = \"10s\", lasts = \"5s\", every = \"100s\" },\n\
         { at = \"20s\", lasts = \"5s\", kind = \"hang\" },\n\
         { at = \"30s\", lasts = \"5s\", kind = \"fail\" }]",
    );
    let session = open(&mut far, secs(0));
    assert!(far.connect(secs(10), 0).result.is_err());
    assert!(far.connect(secs(112), 0).result.is_err());
    assert!(far.connect(secs(115), 0).result.is_ok());
    assert_eq!(code(&send(&mut far, secs(31), session, 1)), 421);
    let hung = send(&mut far, secs(20), session, 1);
    assert_eq!((hung.after, hung.reply), (secs(30), Reply::Uncertain));
    assert!(!hung.taken);
    let gone = send(&mut far, secs(40), session, 1);
    assert!(matches!(gone.reply, Reply::Network { .. }));
}

#[test]
fn lost_answers_are_taken_all_the_same_and_some_bounce_late() {
    let mut far = network("failures = { lost_answer = 1.0 }");
    let session = open(&mut far, secs(0));
    let answer = send(&mut far, secs(0), session, 1);
    assert_eq!((answer.taken, answer.reply), (true, Reply::Uncertain));

    let mut far =
        network("late_bounces = { share = 1.0, after = { kind = \"constant\", is = \"1h\" } }");
    let session = open(&mut far, secs(0));
    let answer = send(&mut far, secs(0), session, 1);
    assert_eq!(answer.late_bounce, Some(secs(3_600)));
}

#[test]
fn a_clean_sender_earns_its_rate() {
    let mut far = network(
        "protocol = \"http\"\nrate = { rate = \"100/s\", burst = 1 }\n\
         reputation = { starts = 0.1, doubles_in = \"10s\", refusal_costs = 0.5 }",
    );
    let session = open(&mut far, secs(0));
    let mut taken_by_minute = Vec::new();
    for minute in 0..2 {
        let times = (0..60_000).map(|ms| Nanos::from_millis(minute * 60_000 + ms));
        // Ten a second is what a newcomer is allowed.
        let taken = times
            .step_by(if minute == 0 { 100 } else { 10 })
            .filter(|now| send(&mut far, *now, session, 1).taken)
            .count();
        taken_by_minute.push(taken);
    }
    assert!(taken_by_minute[0] >= 599, "{taken_by_minute:?}");
    assert!(taken_by_minute[1] >= 5_900, "{taken_by_minute:?}");
}

#[test]
fn the_shape_of_the_day_scales_the_rate() {
    let spec: NetworkSpec = toml::from_str(
        "name = \"x\"\nrate = { rate = \"1/s\", burst = 1 }\n\
         shape = { swing = 0.4, dips = [{ at = \"6h\", lasts = \"1h\", to = 0.5 }] }",
    )
    .unwrap();
    let factor = |hour: i64| spec.shape.factor(Wall(hour * 3_600_000_000_000));
    assert!((factor(0) - 0.6).abs() < 1e-9);
    assert!((factor(12) - 1.4).abs() < 1e-9);
    assert!((factor(6) - 0.5).abs() < 1e-9);
    assert!((factor(18) - 1.0).abs() < 1e-9);
}
