//! `outflow send`.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::content;
use super::failure::Failure;
use super::plain::plain;
use super::selection;
use super::session::{Output, Session, print};
use super::when::{self, Direction};

/// What to send.
#[derive(Debug, Default, Args)]
pub struct Arguments {
    /// Whom it goes to. Each recipient is a message of its own.
    #[arg(long, required = true, value_name = "ADDRESS")]
    to: Vec<String>,
    /// Who sends it. Without it, the `From` field of --file, else you at this
    /// machine.
    #[arg(long, env = "OUTFLOW_FROM", value_name = "ADDRESS")]
    from: Option<String>,
    /// Further recipients, named in the Cc field.
    #[arg(long, value_name = "ADDRESS")]
    cc: Vec<String>,
    /// Further recipients, named nowhere.
    #[arg(long, value_name = "ADDRESS")]
    bcc: Vec<String>,
    /// Where answers go.
    #[arg(long, value_name = "ADDRESS")]
    reply_to: Option<String>,
    /// Where bounces go, if not to the sender.
    #[arg(long, value_name = "ADDRESS")]
    return_path: Option<String>,
    /// The subject.
    #[arg(long)]
    subject: Option<String>,
    /// Plain text; `-` reads it from stdin.
    #[arg(long)]
    text: Option<String>,
    /// HTML; `-` reads it from stdin.
    #[arg(long)]
    html: Option<String>,
    /// A whole message (RFC 5322) in a file; `-` reads it from stdin.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["text", "html", "subject", "attach", "header", "reply_to", "cc"]
    )]
    file: Option<PathBuf>,
    /// A file to attach.
    #[arg(long, value_name = "FILE")]
    attach: Vec<PathBuf>,
    /// A further header field: `List-Id: news`.
    #[arg(long, value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// How urgent it is: critical, high, normal or low.
    #[arg(long, value_parser = selection::class)]
    class: Option<String>,
    /// Whose it is.
    #[arg(long)]
    tenant: Option<String>,
    /// What it belongs to.
    #[arg(long)]
    campaign: Option<String>,
    /// Which accounts may send it.
    #[arg(long)]
    pool: Option<String>,
    /// A label of yours.
    #[arg(long, value_name = "NAME=VALUE")]
    tag: Vec<String>,
    /// Not before this time: `2h`, `2026-01-31T12:00:00Z`.
    #[arg(long, value_name = "TIME")]
    not_before: Option<String>,
    /// Of no use from this time on.
    #[arg(long, value_name = "TIME")]
    expires_at: Option<String>,
    /// The same key twice is one message.
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Print the ids and nothing else.
    #[arg(long, short = 'q', conflicts_with = "json")]
    quiet: bool,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Sent {
    id: Option<String>,
    state: Option<String>,
    accepted: Vec<Accepted>,
    rejected: Vec<Rejected>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Accepted {
    id: String,
    to: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Rejected {
    error: super::failure::Problem,
}

/// Sends it.
pub fn run(arguments: &Arguments, session: &Session) -> Result<(), Failure> {
    let body = body(arguments, session.now())?;
    let answer = session.post("/messages", &body)?;
    let sent: Sent = answer.read()?;
    let rejected = sent.rejected.len();
    match arguments.output.json {
        true => session.print_json(&answer)?,
        false => print(&text(&sent, arguments.quiet))?,
    }
    match rejected {
        0 => Ok(()),
        _ => {
            let why = sent.rejected.iter().map(|one| plain(&one.error.detail));
            let why: Vec<String> = why.collect();
            Err(Failure::Other(format!(
                "{rejected} recipients were not accepted: {}",
                why.join("; ")
            )))
        }
    }
}

fn text(sent: &Sent, quiet: bool) -> String {
    let mut out = String::new();
    let one = sent.id.iter().map(|id| (id, None));
    let many = sent.accepted.iter().map(|one| (&one.id, one.to.as_ref()));
    for (id, to) in one.chain(many) {
        let (id, state) = (plain(id), sent.state.as_deref().unwrap_or("queued"));
        let line = match (quiet, to) {
            (true, _) => format!("{id}\n"),
            (false, Some(to)) => format!("{id} to {} is queued.\n", plain(to)),
            (false, None) => format!("{id} is {}.\n", plain(state)),
        };
        out.push_str(&line);
    }
    if !quiet && let Some(id) = &sent.id {
        let id = plain(id);
        out.push_str(&format!(
            "See what became of it: outflow messages show {id}\nIf it waits: outflow explain {id}\n"
        ));
    }
    out
}

/// The message as the API takes it.
fn body(arguments: &Arguments, now: Timestamp) -> Result<Value, Failure> {
    one_stdin(arguments)?;
    let mut fields = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        fields.extend(value.map(|value| (name.to_owned(), value)));
    };
    let texts = [
        ("reply_to", &arguments.reply_to),
        ("return_path", &arguments.return_path),
        ("subject", &arguments.subject),
        ("class", &arguments.class),
        ("tenant", &arguments.tenant),
        ("campaign", &arguments.campaign),
        ("pool", &arguments.pool),
        ("idempotency_key", &arguments.idempotency_key),
    ];
    for (name, text) in texts {
        set(name, text.as_deref().map(Value::from));
    }
    let times = [
        ("not_before", &arguments.not_before),
        ("expires_at", &arguments.expires_at),
    ];
    for (name, text) in times
        .into_iter()
        .filter_map(|(name, text)| Some((name, text.as_ref()?)))
    {
        let time = when::read(text, now, Direction::Ahead).map_err(Failure::WrongUse)?;
        set(name, Some(time.into()));
    }
    set(
        "to",
        Some(match arguments.to.as_slice() {
            [one] => json!(one),
            many => json!(many),
        }),
    );
    let said = |list: &Vec<String>| (!list.is_empty()).then(|| json!(list));
    set("cc", said(&arguments.cc));
    set("bcc", said(&arguments.bcc));
    let text = |said: &Option<String>| said.as_deref().map(content::text).transpose();
    set("text", text(&arguments.text)?.map(Value::from));
    set("html", text(&arguments.html)?.map(Value::from));
    let raw = arguments.file.as_deref().map(content::file).transpose()?;
    let from = arguments.from.clone().filter(|from| !from.is_empty());
    let from = from.or_else(|| content::sender(raw.as_deref()?));
    set("from", Some(from.unwrap_or_else(whoever).into()));
    set("raw", raw.map(|raw| STANDARD.encode(raw).into()));
    let attachments = attachments(&arguments.attach)?;
    set(
        "attachments",
        (!attachments.is_empty()).then(|| json!(attachments)),
    );
    let headers = pairs(&arguments.header, ':')?;
    set(
        "headers",
        (!headers.is_empty()).then_some(Value::Object(headers)),
    );
    let tags = pairs(&arguments.tag, '=')?;
    set("tags", (!tags.is_empty()).then_some(Value::Object(tags)));
    Ok(Value::Object(fields))
}

/// Stdin can be read once.
fn one_stdin(arguments: &Arguments) -> Result<(), Failure> {
    let texts = [&arguments.text, &arguments.html];
    let from_stdin = texts.iter().filter(|text| text.as_deref() == Some("-"));
    match from_stdin.count() {
        2 => Err(Failure::WrongUse(
            "--text and --html cannot both be stdin".to_owned(),
        )),
        _ => Ok(()),
    }
}

/// The person at this machine.
fn whoever() -> String {
    let said = |name| {
        std::env::var(name)
            .ok()
            .filter(|text: &String| is_atom(text))
    };
    let user = said("USER").or_else(|| said("LOGNAME"));
    let host = std::fs::read_to_string("/etc/hostname").ok();
    let host = host
        .map(|host| host.trim().to_owned())
        .filter(|host| is_atom(host));
    format!(
        "{}@{}",
        user.as_deref().unwrap_or("outflow"),
        host.as_deref().unwrap_or("localhost")
    )
}

fn is_atom(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    !text.is_empty() && text.len() <= 64 && text.bytes().all(fits)
}

fn attachments(paths: &[PathBuf]) -> Result<Vec<Value>, Failure> {
    let read = paths.iter().map(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok(json!({
            "filename": name,
            "content_type": content::media_type(path),
            "content": STANDARD.encode(content::file(path)?),
        }))
    });
    read.collect()
}

fn pairs(said: &[String], between: char) -> Result<Map<String, Value>, Failure> {
    let pairs = said.iter().map(|pair| {
        let split = pair.split_once(between);
        let (name, value) = split
            .ok_or_else(|| Failure::WrongUse(format!("{pair:?}: write NAME{between}VALUE")))?;
        Ok((name.trim().to_owned(), Value::from(value.trim())))
    });
    pairs.collect()
}

#[cfg(test)]
#[path = "send_tests.rs"]
mod tests;
