//! `outflow messages cancel|retry|move`: by id, or everything that matches.
//!
//! Everything that matches is counted first, and on a terminal it is asked
//! whether that was meant.

use clap::Args;
use serde::Deserialize;
use serde_json::json;

use super::client::{Answer, segment};
use super::confirm::confirm;
use super::failure::Failure;
use super::message::Message;
use super::plain::counted;
use super::selection::Selection;
use super::session::{Output, Session, print};

/// How it is done.
#[derive(Debug, Args)]
pub struct How {
    /// Only say what it would be about.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask.
    #[arg(long, short = 'y')]
    yes: bool,
    #[command(flatten)]
    output: Output,
}

/// What to cancel.
#[derive(Debug, Args)]
pub struct Cancel {
    /// Ids of messages.
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    how: How,
}

/// What to retry.
#[derive(Debug, Args)]
pub struct Retry {
    /// Ids of messages.
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    how: How,
}

/// What to move, and where to.
#[derive(Debug, Args)]
pub struct Move {
    /// The pool that is to send them.
    #[arg(long, value_name = "POOL")]
    to_pool: String,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    how: How,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Matched {
    matched: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Touched {
    id: String,
    state: String,
}

/// An action, and how it is spoken of.
#[derive(Clone, Copy)]
struct Action<'a> {
    word: &'static str,
    done: &'static str,
    to_pool: Option<&'a str>,
}

const CANCEL: Action<'_> = Action {
    word: "cancel",
    done: "Cancelled",
    to_pool: None,
};
const RETRY: Action<'_> = Action {
    word: "retry",
    done: "Queued for another try",
    to_pool: None,
};

/// Cancels.
pub fn cancel(arguments: &Cancel, session: &Session) -> Result<(), Failure> {
    let Cancel {
        ids,
        selection,
        how,
    } = arguments;
    match ids.is_empty() {
        true => all(CANCEL, selection, how, session),
        false => each(CANCEL, ids, selection, how, session),
    }
}

/// Retries.
pub fn retry(arguments: &Retry, session: &Session) -> Result<(), Failure> {
    let Retry {
        ids,
        selection,
        how,
    } = arguments;
    match ids.is_empty() {
        true => all(RETRY, selection, how, session),
        false => each(RETRY, ids, selection, how, session),
    }
}

/// Moves.
pub fn move_all(arguments: &Move, session: &Session) -> Result<(), Failure> {
    let action = Action {
        word: "move",
        done: "Moved",
        to_pool: Some(&arguments.to_pool),
    };
    all(action, &arguments.selection, &arguments.how, session)
}

/// One after the other; stops at the first that is refused.
fn each(
    action: Action<'_>,
    ids: &[String],
    selection: &Selection,
    how: &How,
    session: &Session,
) -> Result<(), Failure> {
    if !selection.is_empty() {
        return Err(Failure::WrongUse(
            "name messages by id, or say what they have in common, not both".to_owned(),
        ));
    }
    for id in ids {
        let path = format!("/messages/{}", segment(id));
        if how.dry_run {
            let answer = session.get(&path)?;
            session.show(&answer, how.output, |message: Message, _| {
                let Message { id, state, .. } = message;
                format!("Would {} {id}, which is {state}.\n", action.word)
            })?;
            continue;
        }
        let answer = match action.word {
            "cancel" => session.delete(&path)?,
            _ => session.post(&format!("{path}/retry"), &json!({}))?,
        };
        session.show(&answer, how.output, |touched: Touched, _| {
            format!("{} is {}.\n", touched.id, touched.state)
        })?;
    }
    Ok(())
}

/// Everything that matches, counted first.
fn all(
    action: Action<'_>,
    selection: &Selection,
    how: &How,
    session: &Session,
) -> Result<(), Failure> {
    if selection.is_empty() {
        return Err(Failure::WrongUse(format!(
            "{} what? Name messages by {}what they have in common: --tenant, --campaign, \
             --destination, --class, --pool",
            action.word,
            match action.to_pool {
                Some(_) => "",
                None => "id, or by ",
            }
        )));
    }
    let ask = |dry_run: bool| -> Result<(Answer, u64), Failure> {
        let mut body = json!({
            "action": action.word,
            "match": selection.json(),
            "dry_run": dry_run,
        });
        if let (Some(pool), Some(body)) = (action.to_pool, body.as_object_mut()) {
            body.insert("to_pool".to_owned(), pool.into());
        }
        let answer = session.post("/messages/bulk", &body)?;
        let Matched { matched } = answer.read()?;
        Ok((answer, matched))
    };
    let (counted_first, matched) = ask(true)?;
    let about = format!(
        "{} {}",
        counted(matched, "message", "messages"),
        selection.words()
    );
    let to = action.to_pool.map(|pool| format!(" to pool {pool}"));
    let to = to.unwrap_or_default();
    if how.dry_run {
        return match how.output.json {
            true => session.print_json(&counted_first),
            false => print(&format!("Would {} at most {about}{to}.\n", action.word)),
        };
    }
    let question = format!("{} {about}{to}?", capital(action.word));
    if matched > 0 && !confirm(&question, how.yes)? {
        return Err(Failure::Other("nothing was done".to_owned()));
    }
    let (answer, matched) = ask(false)?;
    match how.output.json {
        true => session.print_json(&answer),
        false => print(&format!(
            "{} {}{to}.\n",
            action.done,
            counted(matched, "message", "messages")
        )),
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
