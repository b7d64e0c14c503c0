//! Whatever stands in DNS: no panic, and no end of questions.

use outflow_doctor::der::{Certificate, rsa_bits};
use outflow_doctor::spf::walk::LOOKUPS_SEEN_MAX;
use outflow_doctor::{Check, QUESTIONS_MAX, ROUNDS_MAX, Status};
use proptest::prelude::*;

use crate::world::World;

/// Names that a record may point to: few, so that loops are common.
const NAMES: [&str; 5] = [
    "example.com",
    "a.example",
    "b.example",
    "c.example",
    "d.example",
];

fn term() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "include:",
        "redirect=",
        "a:",
        "mx:",
        "exists:",
        "ip4:",
        "ip6:",
        "ptr",
        "a",
        "mx",
        "all",
        "exp=",
        "+",
        "-",
        "~",
        "?",
        "%{i}.",
        "/24",
        "//64",
        "192.0.2.10",
        "2001:db8::/32",
        "",
    ]);
    let name = prop::sample::select(NAMES.to_vec());
    (word, name).prop_map(|(word, name)| match word.ends_with([':', '=', '.']) {
        true => format!("{word}{name}"),
        false => word.to_owned(),
    })
}

fn spf() -> impl Strategy<Value = String> {
    let terms = prop::collection::vec(term(), 0..12);
    terms.prop_map(|terms| format!("v=spf1 {}", terms.join(" ")))
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => spf(),
        1 => ".{0,200}",
        1 => "v=(DKIM1|DMARC1); ?[a-z]{1,3}=.{0,30}(; ?[a-z]{1,5}=.{0,60}){0,6}",
        1 => "[vpkthsrua=;: @,!\\.a-zA-Z0-9+/]{0,300}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_texts_are_judged(texts in prop::collection::vec(prop::collection::vec(text(), 0..3), 7)) {
        let mut world = World::good();
        let names = NAMES.iter().copied();
        let names = names.chain(["s1._domainkey.example.com", "_dmarc.example.com"]);
        for (name, texts) in names.zip(&texts) {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            world.texts(name, &texts);
        }
        let findings = world.judge();
        prop_assert!(findings.iter().any(|finding| finding.check == Check::Spf));
        prop_assert!(world.asked <= QUESTIONS_MAX && world.rounds <= ROUNDS_MAX);
    }

    #[test]
    fn any_bytes_are_no_certificate(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Certificate::parse(&bytes);
        let _ = rsa_bits(&bytes);
    }
}

#[test]
fn loops_and_trees_of_includes_end() {
    // Every name includes every name: without a bound that is 5 to the power of
    // the depth.
    let mut world = World::good();
    let all: Vec<String> = NAMES.iter().map(|name| format!("include:{name}")).collect();
    for name in NAMES {
        world.texts(name, &[&format!("v=spf1 {} -all", all.join(" "))]);
    }
    let findings = world.judge();
    assert!(world.asked < 40, "{} questions", world.asked);
    let is_told = |words: &str| {
        let mut told = findings
            .iter()
            .filter(|finding| finding.status == Status::Fail);
        told.any(|finding| finding.what.contains(words))
    };
    assert!(
        is_told("includes itself") && is_told("lookups"),
        "{findings:?}"
    );
}

#[test]
fn a_chain_that_never_ends_is_left() {
    let mut world = World::good();
    world.texts("example.com", &["v=spf1 include:n0.example -all"]);
    for no in 0..500 {
        let next = format!("v=spf1 include:n{}.example -all", no + 1);
        world.texts(&format!("n{no}.example"), &[&next]);
    }
    let findings = world.judge();
    let most = usize::try_from(LOOKUPS_SEEN_MAX).unwrap() + 20;
    assert!(world.asked < most, "{} questions", world.asked);
    let mut failed = findings
        .iter()
        .filter(|finding| finding.status == Status::Fail);
    let is_told = failed.any(|finding| finding.what.contains("lookups: receivers stop at 10"));
    assert!(is_told, "{findings:?}");
}
