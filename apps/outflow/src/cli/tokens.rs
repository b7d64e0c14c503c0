//! `outflow tokens`.

use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::client::segment;
use super::failure::Failure;
use super::plain::plain;
use super::selection;
use super::session::{Output, Session, print};
use super::table::{Column, Table};
use super::when;

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List tokens, without the tokens themselves.
    List(Output),
    /// Make a token. It is shown this once.
    Add(Box<Add>),
    /// Take a token away. It stops working at once.
    Remove(Remove),
}

/// What a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scope {
    /// Everything.
    Admin,
    /// See everything, and change all but accounts and tokens.
    Operator,
    /// Submit messages, and see its own.
    Submit,
    /// Read metrics.
    Metrics,
}

/// The token to make.
#[derive(Debug, Args)]
pub struct Add {
    /// What people call it; the audit names it.
    name: String,
    /// What it may do.
    #[arg(long, value_enum, default_value = "submit")]
    scope: Scope,
    /// The only tenant it speaks for.
    #[arg(long)]
    tenant: Option<String>,
    /// A class it may submit. Without any, all.
    #[arg(long, value_parser = selection::class)]
    class: Vec<String>,
    /// A pool it may submit to. Without any, all.
    #[arg(long)]
    pool: Vec<String>,
    /// A domain it may send from. Without any, all.
    #[arg(long, value_name = "DOMAIN")]
    from_domain: Vec<String>,
    /// Print the token and nothing else.
    #[arg(long, short = 'q', conflicts_with = "json")]
    quiet: bool,
    #[command(flatten)]
    output: Output,
}

/// Which token.
#[derive(Debug, Args)]
pub struct Remove {
    /// Its id, as `outflow tokens list` shows it.
    id: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Token {
    id: String,
    name: String,
    scope: String,
    tenant: Option<String>,
    classes: Vec<String>,
    pools: Vec<String>,
    from_domains: Vec<String>,
    created_at: String,
    token: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Tokens {
    tokens: Vec<Token>,
}

/// Runs the command.
pub fn run(command: &Command, session: &Session) -> Result<(), Failure> {
    match command {
        Command::List(output) => {
            let answer = session.get("/tokens")?;
            session.show(&answer, *output, |all: Tokens, now| table(&all, now))
        }
        Command::Add(arguments) => add(arguments, session),
        Command::Remove(Remove { id }) => {
            session.delete(&format!("/tokens/{}", segment(id)))?;
            print(&format!("Token {} is gone.\n", plain(id)))
        }
    }
}

fn add(arguments: &Add, session: &Session) -> Result<(), Failure> {
    let scope = match arguments.scope {
        Scope::Admin => "admin",
        Scope::Operator => "operator",
        Scope::Submit => "submit",
        Scope::Metrics => "metrics",
    };
    let body = json!({
        "name": arguments.name,
        "scope": scope,
        "tenant": arguments.tenant,
        "classes": arguments.class,
        "pools": arguments.pool,
        "from_domains": arguments.from_domain,
    });
    let answer = session.post("/tokens", &body)?;
    session.show(&answer, arguments.output, |made: Token, _| {
        let token = plain(&made.token);
        match arguments.quiet {
            true => format!("{token}\n"),
            false => format!(
                "{token}\n\nThis is the token, shown this once. Its id is {}; to take it away: \
                 outflow tokens remove {}\n",
                plain(&made.id),
                plain(&made.id)
            ),
        }
    })
}

fn table(all: &Tokens, now: Timestamp) -> String {
    let mut table = Table::new([
        Column::Text("id"),
        Column::Text("name"),
        Column::Text("scope"),
        Column::Text("tenant"),
        Column::Text("only"),
        Column::Text("made"),
    ]);
    for token in &all.tokens {
        let only = [&token.classes, &token.pools, &token.from_domains];
        let only: Vec<String> = only.into_iter().flatten().cloned().collect();
        table.row([
            token.id.clone(),
            token.name.clone(),
            token.scope.clone(),
            token.tenant.clone().unwrap_or("all".to_owned()),
            only.join(", "),
            when::both(&token.created_at, now),
        ]);
    }
    table.text("No tokens.")
}
