//! What a running server adds: accounts and policies made over the API, lanes,
//! warm-up. Nothing of it is needed.

use std::collections::BTreeSet;

use outflow_config::policy::built_in::built_in;
use outflow_config::{Account, RawAccount, RawPolicy, Settings, keys};
use outflow_core::policy::set::Policies;
use outflow_doctor::subject::{Plan, WarmUp};
use serde_json::{Map, Value};

use crate::cli::GlobalOptions;
use crate::cli::failure::Failure;
use crate::cli::session::Session;

/// Rows of an answer that are looked at.
const ROWS_MAX: usize = 10_000;
/// Plans that are shown.
const PLANS_MAX: usize = 20;
/// How an account logs in does not matter here, and passwords are hidden.
const OF_LOGIN: [&str; 4] = ["user", "password", "password_env", "password_file"];

/// What a running server says; nothing if none answers.
#[derive(Default)]
pub struct Live {
    /// Its accounts.
    pub accounts: Vec<Account>,
    /// The names of all that it lists; none if no server answered.
    listed: Option<BTreeSet<String>>,
    /// How far new addresses are.
    pub warm_up: WarmUp,
    policies: Option<Vec<RawPolicy>>,
    /// Its lanes, and whether anything goes or went through them.
    lanes: Option<Vec<(String, bool)>>,
}

impl Live {
    /// Asks the server, if there is one. Only wrong use is an error.
    pub fn ask(options: &GlobalOptions, settings: &Settings) -> Result<Self, Failure> {
        let mut options = options.clone();
        let data_dir = options.data_dir.take();
        options.data_dir = data_dir.or_else(|| Some(settings.server.data_dir.clone()));
        let session = Session::new(&options)?;
        let accounts = match session.read::<Value>("/accounts") {
            Ok(accounts) => accounts,
            Err(failure) => {
                let why = match failure {
                    Failure::Unreachable { .. } => "no server answers".to_owned(),
                    Failure::Refused(refusal) => {
                        format!("the server refused: {}", refusal.problem.title)
                    }
                    other => other.to_string(),
                };
                return Ok(Self {
                    warm_up: WarmUp::Unknown(why),
                    ..Self::default()
                });
            }
        };
        let policies = session.read::<Value>("/policies").ok();
        let lanes = session.read::<Value>("/lanes").ok();
        let name = |row: &Value| Some(row.get("id")?.as_str()?.to_owned());
        Ok(Self {
            listed: Some(rows(&accounts, "accounts").filter_map(name).collect()),
            accounts: rows(&accounts, "accounts").filter_map(account).collect(),
            policies: policies.map(|it| rows(&it, "policies").filter_map(policy).collect()),
            lanes: lanes.map(|it| rows(&it, "lanes").filter_map(lane).collect()),
            warm_up: warm_up(&session),
        })
    }

    /// Whether an account of the settings may be there still: a server that
    /// answers knows better.
    pub fn may_have(&self, account: &str) -> bool {
        let listed = self.listed.as_ref();
        listed.is_none_or(|listed| listed.contains(account))
    }

    /// The policies in force: the server's, else those of the settings over
    /// those that come with the program.
    pub fn policies(&self, settings: &Settings) -> Policies {
        let mut policies = Policies::default();
        let raw = match &self.policies {
            Some(raw) => raw.clone(),
            None => {
                let own = settings.policies.iter().map(|start| start.raw.clone());
                let usual = settings.destinations.policies.then(built_in);
                usual.into_iter().flatten().chain(own).collect()
            }
        };
        for policy in raw.iter().filter_map(|raw| raw.validate().ok()) {
            // It was checked: what cannot be honoured is not in force anyway.
            let _ = policies.insert(policy);
        }
        policies
    }

    /// Whether messages go or went to lanes whose name ends like that; unknown
    /// without a server.
    pub fn traffic_to(&self, end: &str) -> Option<bool> {
        let lanes = self.lanes.as_ref()?;
        Some(
            lanes
                .iter()
                .any(|(lane, is_used)| *is_used && lane.ends_with(end)),
        )
    }

    /// Whether there is a lane whose name begins like that.
    pub fn has_lane(&self, start: &str) -> bool {
        let mut lanes = self.lanes.iter().flatten();
        lanes.any(|(lane, _)| lane.starts_with(start))
    }
}

fn rows<'a>(answer: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    let rows = answer.get(name).unwrap_or(answer).as_array();
    rows.into_iter().flatten().take(ROWS_MAX)
}

/// The fields of a row that settings know.
fn known(row: &Value, keys: &[outflow_config::key::Key]) -> Option<Map<String, Value>> {
    let fields = row.as_object()?.iter();
    let known = fields.filter(|(name, value)| {
        let is_known = keys.iter().any(|key| key.name == name.as_str());
        is_known && !value.is_null() && !OF_LOGIN.contains(&name.as_str())
    });
    Some(
        known
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    )
}

fn account(row: &Value) -> Option<Account> {
    let fields = known(row, keys::ACCOUNT)?;
    let raw = RawAccount::read(&Value::Object(fields)).ok()?;
    raw.validate().ok()
}

fn policy(row: &Value) -> Option<RawPolicy> {
    let fields = known(row, keys::POLICY)?;
    RawPolicy::read(&Value::Object(fields)).ok()
}

fn lane(row: &Value) -> Option<(String, bool)> {
    let count = |name: &str| row.get(name).and_then(Value::as_u64).unwrap_or(0);
    let waiting = row.get("waiting").and_then(Value::as_object);
    let mut waiting = waiting.into_iter().flat_map(|waiting| waiting.values());
    let waits = waiting.any(|count| count.as_u64().unwrap_or(0) > 0);
    let is_used = waits || count("in_flight") > 0 || count("sent") > 0;
    Some((row.get("lane")?.as_str()?.to_owned(), is_used))
}

/// A server that does not know the question has no plans to tell of.
fn warm_up(session: &Session) -> WarmUp {
    match session.read::<Value>("/warm-ups") {
        Ok(answer) => WarmUp::Plans(
            rows(&answer, "warm_ups")
                .map(plan)
                .take(PLANS_MAX)
                .collect(),
        ),
        Err(failure) if failure.is_refusal("not_found") => {
            WarmUp::Unknown("this server keeps no warm-up plans".to_owned())
        }
        Err(failure) => WarmUp::Unknown(failure.to_string()),
    }
}

fn plan(row: &Value) -> Plan {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let number = |name: &str| row.get(name).and_then(Value::as_u64);
    let yesterday = row.get("yesterday");
    let is_good = yesterday.and_then(|it| it.get("good")?.as_bool());
    let state = match (number("day"), number("days")) {
        (Some(day), Some(days)) => format!("day {day} of {days}"),
        _ => "the plan is over".to_owned(),
    };
    let why = text(yesterday.and_then(|it| it.get("why")));
    let is_held = is_good == Some(false) && number("day").is_some();
    Plan {
        about: text(row.get("sender")).unwrap_or_default(),
        state: match why.filter(|_| is_held) {
            Some(why) => format!("{state}, and yesterday was no good day: {why}"),
            None => state,
        },
        is_held,
    }
}
