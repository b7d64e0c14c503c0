//! What a far end says means something, and never costs a recipient what is not
//! his fault; and a file of rules is read or refused with a reason.

use std::sync::LazyLock;

use outflow_core::classify::{RuleSet, Rules, destination_named};
use outflow_core::destination::Destination;
use outflow_core::outcome::{ReplyClass, ReplyScope, Verdict};
use outflow_core::reply::{Reply, Stage};

static RULES: LazyLock<Rules> = LazyLock::new(Rules::built_in);

const STAGES: [Stage; 6] = [
    Stage::Connect,
    Stage::Greeting,
    Stage::Auth,
    Stage::Sender,
    Stage::Recipient,
    Stage::Data,
];
const WHO: [&str; 18] = [
    "comcast",
    "cox",
    "free",
    "gmx",
    "godaddy",
    "google",
    "icloud",
    "laposte",
    "mail.ru",
    "mimecast",
    "netease",
    "office365",
    "orange",
    "outlook",
    "qq",
    "rackspace",
    "spectrum",
    "yahoo",
];

/// `google data 421 4.7.28 ...`, or a file of rules.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if text.contains("[[rule]]") {
        if let Err(error) = RuleSet::parse(text) {
            assert!(!error.to_string().is_empty());
        }
        return;
    }
    let mut words = text.splitn(3, ' ');
    let to = words.next().and_then(destination_named);
    let stage = words.next().unwrap_or_default();
    let stage = STAGES.into_iter().find(|it| it.as_str() == stage);
    let said = words.next().unwrap_or_default();
    let code = said.get(..3).and_then(|code| code.parse().ok());
    let reply = Reply::said(
        stage.unwrap_or(Stage::Data),
        code.unwrap_or(550),
        said.get(4..).unwrap_or_default(),
    );
    check(to.as_ref(), &reply);
    for name in WHO {
        check(Some(&Destination::isp(name)), &reply);
    }
}

fn check(to: Option<&Destination>, reply: &Reply) {
    for attempts in [1, 2] {
        let outcome = RULES.classify(to, reply, attempts);
        assert_eq!(outcome.verdict == Verdict::Delivered, reply.is_accepted());
        if outcome.suppresses() {
            assert_eq!(outcome.verdict, Verdict::Bounced);
            assert_eq!(outcome.scope, ReplyScope::Recipient);
            assert_eq!(outcome.class, ReplyClass::Recipient);
        }
        if outcome.verdict == Verdict::Bounced {
            let is_ours = matches!(
                outcome.class,
                ReplyClass::Rate | ReplyClass::Reputation | ReplyClass::Authentication
            );
            assert!(!is_ours, "{}", outcome.rule);
        }
    }
}
