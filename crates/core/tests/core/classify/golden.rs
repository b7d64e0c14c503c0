//! A table of replies as they are seen in the field, and what each must mean.
//!
//! Rules may be split, joined and reordered; what they make of these may not
//! change unless somebody means it to.

use std::collections::BTreeSet;

use outflow_core::classify::{Rules, destination_named};
use outflow_core::outcome::ReplyClass;
use outflow_core::reply::Reply;
use serde::Deserialize;

use super::built_in::stage_of;

const TABLE: &str = include_str!("../../data/replies.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    reply: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// Who said it; nobody in particular if empty.
    #[serde(default)]
    to: String,
    /// Stage, code and text.
    said: String,
    /// Verdict, class, scope, action.
    means: String,
    #[serde(default = "second")]
    attempts: u16,
}

const fn second() -> u16 {
    2
}

#[test]
fn replies_mean_what_the_table_says() {
    let table: Table = toml::from_str(TABLE).unwrap();
    let rules = Rules::built_in();
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    let mut classes = BTreeSet::new();
    for row in &table.reply {
        assert!(
            seen.insert((&row.to, &row.said, row.attempts)),
            "twice: {}",
            row.said
        );
        let to = (!row.to.is_empty()).then(|| destination_named(&row.to).unwrap());
        if let Some(to) = &to {
            assert!(rules.knows(to), "{to} has no rules");
        }
        let (stage, said) = stage_of(&row.said);
        let reply = Reply::said(
            stage,
            said[..3].parse().unwrap(),
            said.get(4..).unwrap_or(""),
        );
        let outcome = rules.classify(to.as_ref(), &reply, row.attempts);
        let means = format!(
            "{} {} {} {}",
            outcome.verdict, outcome.class, outcome.scope, outcome.action
        );
        classes.insert(outcome.class);
        if means != row.means {
            wrong.push(format!(
                "{:?} of {:?}\n  should mean {}\n  but means   {means}, by {}",
                row.said, row.to, row.means, outcome.rule
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(
        table.reply.len() >= 150,
        "only {} replies",
        table.reply.len()
    );
    let spoken = ReplyClass::ALL.iter().filter(|class| {
        // Nobody says that the network failed.
        !matches!(class, ReplyClass::Accepted | ReplyClass::Network)
    });
    for class in spoken {
        assert!(classes.contains(class), "no reply of class {class}");
    }
}
