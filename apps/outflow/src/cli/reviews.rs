//! `outflow dead-letters review|reviews|replay|discard`: what is decided on is
//! what was shown.

use clap::Args;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::client::{Answer, segment};
use super::confirm::confirm;
use super::dead_letters::{Cause, Times, causes};
use super::failure::Failure;
use super::message::{self, Message};
use super::pace;
use super::plain::{count, counted, plain};
use super::selection::Selection;
use super::session::{Output, Session};
use super::table::{Column, Table, lines};
use super::{when, words};

/// What to review.
#[derive(Debug, Args)]
pub struct Make {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    times: Times,
    /// Only those given up for this: attempts, age, uncertain, too_large or storage_damaged.
    #[arg(long)]
    cause: Option<String>,
    /// How fast they would re-enter: `10/s`, `600/min`.
    #[arg(long, value_parser = pace::read)]
    pace: Option<f64>,
    #[command(flatten)]
    output: Output,
}

/// Which review to look at.
#[derive(Debug, Args)]
pub struct Look {
    /// Its id. Without it, all are listed.
    review: Option<String>,
    #[command(flatten)]
    output: Output,
}

/// Which review to approve.
#[derive(Debug, Args)]
pub struct Replay {
    /// Its id.
    review: String,
    /// How fast they re-enter: `10/s`, `600/min`. Without it, as the review
    /// says.
    #[arg(long, value_parser = pace::read)]
    pace: Option<f64>,
    /// Do not ask.
    #[arg(long, short = 'y')]
    yes: bool,
    #[command(flatten)]
    output: Output,
}

/// Which review to discard.
#[derive(Debug, Args)]
pub struct Discard {
    /// Its id.
    review: String,
    /// Do not ask.
    #[arg(long, short = 'y')]
    yes: bool,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Review {
    id: String,
    #[serde(rename = "match")]
    select: Map<String, Value>,
    cause: Option<String>,
    since: Option<String>,
    before: String,
    pace: f64,
    state: String,
    selected: u64,
    done: u64,
    skipped: u64,
    by: String,
    created_at: String,
    samples: Vec<Message>,
    causes: Vec<Cause>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Reviews {
    reviews: Vec<Review>,
}

/// Makes a review and shows what it selects.
pub fn make(arguments: &Make, session: &Session) -> Result<(), Failure> {
    let [since, before] = arguments.times.read(session.now())?;
    let body = json!({
        "match": arguments.selection.json(),
        "cause": arguments.cause,
        "since": since,
        "before": before,
        "pace": arguments.pace,
    });
    let answer = session.post("/dead-letters/reviews", &body)?;
    session.show(&answer, arguments.output, |review: Review, now| {
        let mut out = review.text(now);
        out.push('\n');
        out.push_str(&causes(&review.causes));
        if !review.samples.is_empty() {
            out.push_str("\nSome of them:\n");
            out.push_str(&message::table(&review.samples, "", now));
        }
        let id = plain(&review.id);
        out.push_str(&format!(
            "\nTo send them again: outflow dead-letters replay {id} --pace {}\n\
             To throw them away: outflow dead-letters discard {id}\n",
            pace::text(review.pace)
        ));
        out
    })
}

/// Lists reviews, or shows one.
pub fn look(arguments: &Look, session: &Session) -> Result<(), Failure> {
    match &arguments.review {
        Some(id) => {
            let answer = session.get(&path(id))?;
            show(&answer, arguments.output, session)
        }
        None => {
            let answer = session.get("/dead-letters/reviews")?;
            session.show(&answer, arguments.output, |all: Reviews, now| {
                table(&all, now)
            })
        }
    }
}

/// Approves a review.
pub fn replay(arguments: &Replay, session: &Session) -> Result<(), Failure> {
    let Replay {
        review, pace, yes, ..
    } = arguments;
    sure("Send again", review, *yes, session)?;
    let answer = session.post(
        &format!("{}/approve", path(review)),
        &json!({ "pace": pace }),
    )?;
    show(&answer, arguments.output, session)
}

/// Discards the dead letters of a review.
pub fn discard(arguments: &Discard, session: &Session) -> Result<(), Failure> {
    let Discard { review, yes, .. } = arguments;
    sure("Throw away for good", review, *yes, session)?;
    let answer = session.post(&format!("{}/discard", path(review)), &json!({}))?;
    show(&answer, arguments.output, session)
}

fn path(id: &str) -> String {
    format!("/dead-letters/reviews/{}", segment(id))
}

fn show(answer: &Answer, output: Output, session: &Session) -> Result<(), Failure> {
    session.show(answer, output, |review: Review, now| review.text(now))
}

fn sure(what: &str, id: &str, yes: bool, session: &Session) -> Result<(), Failure> {
    let review: Review = session.read(&path(id))?;
    let about = counted(review.selected, "dead letter", "dead letters");
    match confirm(&format!("{what} {about}?"), yes)? {
        true => Ok(()),
        false => Err(Failure::Other("nothing was done".to_owned())),
    }
}

impl Review {
    fn about(&self) -> String {
        let terms = self.select.iter();
        let terms =
            terms.map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()));
        let cause = self.cause.iter().map(|cause| format!("cause={cause}"));
        let about: Vec<String> = terms.chain(cause).collect();
        match about.is_empty() {
            true => "all".to_owned(),
            false => about.join(" "),
        }
    }

    fn text(&self, now: Timestamp) -> String {
        let done = format!("{} of {}", count(self.done), count(self.selected));
        let skipped = (self.skipped > 0).then(|| count(self.skipped));
        lines([
            ("review", Some(self.id.clone())),
            ("state", Some(words::decision(&self.state).to_owned())),
            ("selects", Some(self.about())),
            ("since", self.since.as_deref().map(|at| when::both(at, now))),
            ("before", Some(when::both(&self.before, now))),
            (
                "selected",
                Some(counted(self.selected, "dead letter", "dead letters")),
            ),
            ("done", (self.state != "open").then_some(done)),
            ("no longer there", skipped),
            ("pace", Some(pace::text(self.pace))),
            (
                "made",
                Some(format!(
                    "{} by {}",
                    when::both(&self.created_at, now),
                    self.by
                )),
            ),
        ])
    }
}

fn table(all: &Reviews, now: Timestamp) -> String {
    let mut table = Table::new([
        Column::Text("review"),
        Column::Text("state"),
        Column::Text("selects"),
        Column::Number("selected"),
        Column::Number("done"),
        Column::Number("pace"),
        Column::Text("made"),
        Column::Text("by"),
    ]);
    for review in &all.reviews {
        table.row([
            review.id.clone(),
            review.state.clone(),
            review.about(),
            count(review.selected),
            count(review.done),
            pace::text(review.pace),
            when::both(&review.created_at, now),
            review.by.clone(),
        ]);
    }
    table.text("No reviews.")
}
