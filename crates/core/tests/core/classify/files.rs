//! What rules must look like, and which of them comes first.

use outflow_core::classify::{RuleProblem, RuleSet, Rules};
use outflow_core::destination::{Destination, DestinationKind};
use outflow_core::reply::{Reply, Stage};

const PROVIDER: &str = r#"
[[rule]]
id = "google.alignment"
code = ["421"]
enhanced = ["4.7.32"]
verdict = "misconfigured"
class = "authentication"
scope = "sending_domain"
samples = ["421 4.7.32 Not aligned"]
"#;

fn google() -> Destination {
    Destination::isp("google")
}

fn rule_for(rules: &Rules, to: &Destination, reply: &Reply) -> String {
    rules.classify(Some(to), reply, 2).rule.as_str().to_owned()
}

#[test]
fn rules_of_a_provider_hold_only_there() {
    let rules = Rules::built_in();
    let reply = Reply::said(Stage::Data, 421, "4.7.32 Not aligned");
    assert!(rules.knows(&google()));
    assert_eq!(
        rule_for(&rules, &google(), &reply),
        "google.unauthenticated"
    );
    for other in [
        Destination::isp("yahoo"),
        Destination::new(DestinationKind::Host, "google"),
    ] {
        assert_eq!(rule_for(&rules, &other, &reply), "code.421");
    }
    assert_eq!(rules.classify(None, &reply, 2).rule.as_str(), "code.421");
    assert_eq!(rule_for(&Rules::generic(), &google(), &reply), "code.421");
    let unknown = Reply::said(Stage::Data, 421, "Closing");
    let there = rules.classify(Some(&google()), &unknown, 2);
    assert_eq!(
        there,
        Rules::generic().classify(None, &unknown, 2),
        "nothing of its own to say"
    );
}

#[test]
fn own_rules_come_first_and_in_order() {
    let first = RuleSet::parse(PROVIDER).unwrap();
    let everywhere = r#"
        version = 1
        [[rule]]
        id = "own.busy"
        code = ["421"]
        verdict = "retry"
        class = "capacity"
        scope = "destination"
        samples = ["421 Whatever it says"]
    "#;
    let second = RuleSet::after(std::slice::from_ref(&first), everywhere).unwrap();
    let rules = Rules::built_in().with(first.clone()).with(second.clone());
    assert_eq!(rules.own().len(), 2);
    let aligned = Reply::said(Stage::Data, 421, "4.7.32 Not aligned");
    assert_eq!(rule_for(&rules, &google(), &aligned), "google.alignment");
    assert_eq!(
        rule_for(&rules, &Destination::isp("yahoo"), &aligned),
        "google.alignment"
    );
    let other = Reply::said(Stage::Data, 421, "4.7.28 Flood");
    assert_eq!(rule_for(&rules, &google(), &other), "own.busy");
    let bounced = Reply::said(Stage::Recipient, 550, "5.1.1 User unknown");
    assert_eq!(
        rule_for(&rules, &google(), &bounced),
        "recipient.unknown_words"
    );
    // The other way round the second file could never speak.
    let error = RuleSet::after(&[RuleSet::parse(everywhere).unwrap()], PROVIDER).unwrap_err();
    assert!(matches!(error.problem, RuleProblem::Shadowed { by, .. } if by == "own.busy"));
}

#[test]
fn a_file_may_speak_of_some_destinations_only() {
    let file = format!("destination = [\"gmail\", \"host:api.example.com\"]\n{PROVIDER}");
    let rules = Rules::built_in().with(RuleSet::parse(&file).unwrap());
    let reply = Reply::said(Stage::Data, 421, "4.7.32 Not aligned");
    assert_eq!(rule_for(&rules, &google(), &reply), "google.alignment");
    let host = Destination::new(DestinationKind::Host, "api.example.com");
    assert_eq!(rule_for(&rules, &host, &reply), "google.alignment");
    assert_eq!(
        rule_for(&rules, &Destination::isp("yahoo"), &reply),
        "code.421"
    );
    // Two rules for different destinations do not stand in each other's way.
    let of = |to: &str, id: &str| {
        PROVIDER
            .replace("google.alignment", id)
            .replace("code =", &format!("destination = [\"{to}\"]\ncode ="))
    };
    assert!(RuleSet::parse(&(of("google", "a") + &of("yahoo", "b"))).is_ok());
    assert!(RuleSet::parse(&(of("google", "a") + &of("gmail", "b"))).is_err());
    let stranger = format!("destination = [\"yahoo\"]\n{}", of("google", "a"));
    assert!(matches!(
        RuleSet::parse(&stranger).unwrap_err().problem,
        RuleProblem::BadPattern {
            field: "destination",
            ..
        }
    ));
}

#[test]
fn files_are_bounded() {
    let large = format!("# {}\n{PROVIDER}", "x".repeat(1 << 20));
    assert!(matches!(
        RuleSet::parse(&large).unwrap_err().problem,
        RuleProblem::TooMuch { .. }
    ));
    let long = PROVIDER.replace("\"421\"", &"\"421\",".repeat(201));
    assert!(matches!(
        problem_of(&long),
        RuleProblem::TooMuch { field: "code", .. }
    ));
    let many: String = (0..2_001)
        .map(|n| PROVIDER.replace("google.alignment", &format!("r{n}")))
        .collect();
    assert!(matches!(
        RuleSet::parse(&many).unwrap_err().problem,
        RuleProblem::TooMuch { field: "rule", .. }
    ));
    let newer = format!("version = 2\n{PROVIDER}");
    assert!(RuleSet::parse(&newer).is_err());
}

#[track_caller]
fn problem_of(rule: &str) -> RuleProblem {
    let error = RuleSet::parse(rule).expect_err("a broken rule");
    assert!(error.to_string().contains(&error.id));
    assert_eq!(error.id, "google.alignment");
    error.problem
}

#[test]
fn a_rule_that_cannot_match_does_not_load() {
    let with = |from: &str, to: &str| problem_of(&PROVIDER.replace(from, to));
    assert!(matches!(
        with("code =", "colour ="),
        RuleProblem::Unreadable(text) if text.contains("colour")
    ));
    assert!(matches!(
        with("sending_domain", "planet"),
        RuleProblem::Unreadable(_)
    ));
    for (from, to) in [
        ("\"421\"", "\"459-450\""),
        ("\"421\"", "\"4x1\""),
        ("4.7.32\"]", "4.7\"]"),
        ("4.7.32\"]", "3.7.32\"]"),
        ("code", "text = [\"Spam\"]\ncode"),
        ("code", "text = [\"a  b\"]\ncode"),
        ("code", "text = [\"\"]\ncode"),
        ("code", "text = [\"a**b\"]\ncode"),
        ("code", "stage = [\"rcpt\"]\ncode"),
        ("code", "retry = \"soon\"\ncode"),
        ("code", "retry = \"0s\"\ncode"),
        ("code", "lasts = \"8d\"\ncode"),
        ("code", "destination = [\"planet:mars\"]\ncode"),
        ("421 4.7.32 Not", "Not"),
    ] {
        assert!(
            matches!(with(from, to), RuleProblem::BadPattern { .. }),
            "{to}"
        );
    }
    for (from, to) in [
        ("code", "action = \"suppress\"\ncode"),
        ("code", "action = \"bounce\"\ncode"),
        ("misconfigured", "bounced"),
        ("code", "action = \"retry\"\nlasts = \"1h\"\ncode"),
        ("code", "alert = true\nnetwork = true\ncode"),
        ("misconfigured", "delivered"),
    ] {
        assert!(
            matches!(with(from, to), RuleProblem::Contradiction(_)),
            "{to}"
        );
    }
    assert_eq!(
        with("\"421 4.7.32 Not aligned\"", ""),
        RuleProblem::NoSamples
    );
    assert!(matches!(
        with("421 4.7.32 Not", "421 4.7.3 Not"),
        RuleProblem::Missed(_)
    ));
    assert_eq!(problem_of(&PROVIDER.repeat(2)), RuleProblem::Unnamed);
    let broad = PROVIDER
        .replace("google.alignment", "broad")
        .replace("4.7.32\"]", "4.*.*\"]");
    assert_eq!(
        problem_of(&format!("{broad}{PROVIDER}")),
        RuleProblem::Shadowed {
            sample: "421 4.7.32 Not aligned".to_owned(),
            by: "broad".to_owned(),
        }
    );
    assert!(RuleSet::parse("rules = 1").is_err());
}
