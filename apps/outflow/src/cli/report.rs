//! `outflow report`: what happened, drawn and told, in files that can be read
//! without the server.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::client::query;
use super::failure::Failure;
use super::plain::plain;
use super::session::{Output, Session, print};
use super::when::{self, Direction};
use crate::report::case::{Case, LED_TO, Period};
use crate::report::change::Change;
use crate::report::material::{Entry, HOUR, History, SECOND};
use crate::report::phase::Phase;
use crate::report::series::Series;
use crate::report::story::{CASES_MAX, Story, concerned, totals};
use crate::report::{chart, escape, markdown};

/// How finely a drawing is divided, about.
const STEPS: i64 = 240;
/// The steps that are asked for, in seconds.
const STEP_SECONDS: [i64; 12] = [
    10, 20, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 86_400,
];
/// Rows of one answer.
const ROWS: &str = "50000";
/// Answers that are asked for, one after the other.
const PAGES_MAX: usize = 40;

/// What to tell.
#[derive(Clone, Debug, Args)]
pub struct Arguments {
    /// From when on: `2h`, `2026-01-31`, `2026-01-31T12:00:00Z`.
    #[arg(long, value_name = "TIME", default_value = "2h")]
    pub since: String,
    /// Until when; now unless told. `30m` is half an hour ago.
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Only about this destination: `isp:google`.
    #[arg(long, value_name = "DESTINATION")]
    pub destination: Option<String>,
    /// Where the files go. Without it, a new folder here.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub output: Output,
}

/// What was written.
pub struct Written {
    /// What happened, in one sentence.
    pub headline: String,
    /// The report, then the drawings.
    pub files: Vec<PathBuf>,
    /// The same for programs.
    pub json: Value,
}

/// Writes a report and says where it is.
pub fn run(arguments: &Arguments, session: &Session) -> Result<(), Failure> {
    let written = write(arguments, session)?;
    if arguments.output.json {
        return print(&format!("{}\n", written.json));
    }
    let mut text = format!("{}\n\n", plain(&written.headline));
    for file in &written.files {
        text.push_str(&format!("  {}\n", file.display()));
    }
    print(&text)
}

/// Asks the server, and writes the report.
pub fn write(arguments: &Arguments, session: &Session) -> Result<Written, Failure> {
    let now = session.now();
    let period = period(arguments, now)?;
    let history = history(session, period, arguments.destination.as_deref(), STEPS)?;
    let Changes {
        entries,
        missing_before,
    } = audit(session, period)?;
    let mut names = concerned(&history, &entries, period);
    let untold = names.len().saturating_sub(CASES_MAX);
    names.truncate(CASES_MAX);
    let changes: Vec<Change> = entries.iter().map(Change::of).collect();
    let mut cases = Vec::new();
    for name in &names {
        let rough = Case::of(name, Series::of(&history, name), &changes, period);
        let near = self::history(session, rough.drawn, Some(name), STEPS)?;
        let mut case = Case::of(name, Series::of(&near, name), &changes, period);
        if let Some(start) = case.start() {
            case.lost = lost(session, name, start, period.until)?;
        }
        cases.push(case);
    }
    let totals = totals(&history, period);
    let now = now.as_millisecond();
    let mut story = Story::new(period, now, cases, untold, totals, &entries);
    story.missing_before = missing_before;
    let out = arguments.out.clone();
    let out = out.unwrap_or_else(|| {
        let minute = crate::report::figures::minute(now);
        PathBuf::from(format!("outflow-report-{}", escape::file_name(&minute)))
    });
    put(&story, &out)
}

fn put(story: &Story, out: &Path) -> Result<Written, Failure> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| {
            Failure::Other(format!(
                "{path} cannot be written: {error}. Say where the report goes with --out DIR."
            ))
        }
    };
    fs::create_dir_all(out).map_err(failed(out))?;
    let mut files = vec![out.join("report.md")];
    let mut drawings = Vec::new();
    for (index, case) in story.cases.iter().enumerate() {
        let name = escape::file_name(&case.destination);
        let name = format!("report-{}-{name}.svg", index + 1);
        let path = out.join(&name);
        fs::write(&path, chart::svg(case, story.now)).map_err(failed(&path))?;
        files.push(path);
        drawings.push(name);
    }
    if let Some(report) = files.first() {
        fs::write(report, markdown::report(story, &drawings)).map_err(failed(report))?;
    }
    Ok(Written {
        headline: story.headline(),
        json: json!({
            "headline": story.headline(),
            "quiet": story.is_quiet(),
            "changes_missing_before": time(story.missing_before),
            "cases": story.cases.iter().map(facts).collect::<Vec<_>>(),
            "files": files,
        }),
        files,
    })
}

/// A case for programs.
fn facts(case: &Case) -> Value {
    json!({
        "destination": case.destination,
        "first_refusal": time(case.first.as_ref().map(|first| first.at)),
        "said": case.first.as_ref().map(|first| &first.said),
        "class": case.first.as_ref().map(|first| &first.class),
        "code": case.first.as_ref().and_then(|first| first.code),
        "attempts": case.attempts,
        "refused": case.refused,
        "refused_until": time(case.last_refused()),
        "ongoing": case.is_ongoing,
        "rate_before": case.before.rate,
        "peak_before": case.before.peak,
        "limit_before": case.limit_before,
        "lowest_limit": case.lowest.map(|(_, rate)| rate),
        "mitigated_at": time(case.mitigation.as_ref().map(|change| change.at)),
        "mitigated_by": case.mitigation.as_ref().map(|change| &change.who),
        "recovered_at": time(case.recovered),
        "phases": case.phases.iter().map(phase).collect::<Vec<_>>(),
        "lost": case.lost,
        "changes": case.changes.len() + case.untold,
    })
}

fn phase(phase: &Phase) -> Value {
    json!({
        "phase": phase.kind.as_str(),
        "from": time(Some(phase.from)),
        "to": time(Some(phase.to)),
    })
}

fn time(at: Option<i64>) -> Option<String> {
    let at = at.and_then(|at| Timestamp::from_millisecond(at).ok());
    at.map(|at| format!("{at:.3}"))
}

fn period(arguments: &Arguments, now: Timestamp) -> Result<Period, Failure> {
    let read = |text: &str| {
        let text = when::read(text, now, Direction::Back).map_err(Failure::WrongUse)?;
        let at = text.parse::<Timestamp>();
        at.map(|at| at.as_millisecond())
            .map_err(|error| Failure::WrongUse(error.to_string()))
    };
    let until = arguments.until.as_deref().map(read).transpose()?;
    let period = Period {
        since: read(&arguments.since)?,
        until: until.unwrap_or_else(|| now.as_millisecond()),
    };
    match period.since < period.until {
        true => Ok(period),
        false => Err(Failure::WrongUse(
            "--since must be before --until".to_owned(),
        )),
    }
}

/// The history of a period and of the hour before it.
fn history(
    session: &Session,
    period: Period,
    destination: Option<&str>,
    steps: i64,
) -> Result<History, Failure> {
    let wanted = (period.until - period.since) / SECOND / steps;
    let step = STEP_SECONDS.into_iter().find(|step| *step >= wanted);
    let step = step.unwrap_or(86_400);
    let mut all = History::default();
    let mut since = stamp(period.since - HOUR);
    for _ in 0..PAGES_MAX {
        let asked = query([
            ("since", Some(since)),
            ("until", Some(stamp(period.until))),
            ("destination", destination.map(str::to_owned)),
            ("step", Some(step.to_string())),
            ("limit", Some(ROWS.to_owned())),
        ]);
        let page: History = session.read(&format!("/history{asked}"))?;
        all.step = page.step;
        all.slices.extend(page.slices);
        all.rates.extend(page.rates);
        match page.next_since {
            Some(next) => since = next,
            None => return Ok(all),
        }
    }
    Err(Failure::Other(
        "there is too much to tell: shorten the time with --since and --until, or name one \
         --destination"
            .to_owned(),
    ))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AuditPage {
    entries: Vec<Entry>,
    next_cursor: Option<u64>,
}

/// What was changed, the newest first.
struct Changes {
    entries: Vec<Entry>,
    /// What is older could not be read.
    missing_before: Option<i64>,
}

/// All changes of the period, and those just before it, which may have led to
/// what happened.
fn audit(session: &Session, period: Period) -> Result<Changes, Failure> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let asked = query([
            ("since", Some(stamp(period.since - LED_TO))),
            ("until", Some(stamp(period.until))),
            ("cursor", cursor.map(|cursor: u64| cursor.to_string())),
            ("limit", Some("1000".to_owned())),
        ]);
        let page: AuditPage = session.read(&format!("/audit{asked}"))?;
        entries.extend(page.entries);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    let oldest = entries.last().map(|entry| entry.at);
    Ok(Changes {
        missing_before: oldest.filter(|oldest| cursor.is_some() && *oldest > period.since),
        entries,
    })
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Causes {
    causes: Vec<Cause>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cause {
    error_class: String,
    count: u64,
}

/// Messages that were given up because of our rate or standing. What lies
/// beyond the bound on destinations has no name to ask for.
fn lost(
    session: &Session,
    destination: &str,
    since: i64,
    until: i64,
) -> Result<Option<u64>, Failure> {
    if destination == "other" {
        return Ok(None);
    }
    let asked = query([
        ("destination", Some(destination.to_owned())),
        ("since", Some(stamp(since))),
        ("before", Some(stamp(until))),
    ]);
    let causes: Causes = session.read(&format!("/dead-letters/causes{asked}"))?;
    let ours = causes.causes.into_iter();
    let ours = ours.filter(|it| matches!(it.error_class.as_str(), "rate" | "reputation"));
    Ok(Some(ours.map(|cause| cause.count).sum()))
}

fn stamp(at: i64) -> String {
    let at = Timestamp::from_millisecond(at.max(0)).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{at:.3}")
}
