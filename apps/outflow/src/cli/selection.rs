//! Which messages a command is about.

use clap::Args;
use outflow_core::class::Class;
use serde_json::{Map, Value};

/// What messages must have in common.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Which messages")]
pub struct Selection {
    /// Whose they are.
    #[arg(long)]
    pub tenant: Option<String>,
    /// What they belong to.
    #[arg(long)]
    pub campaign: Option<String>,
    /// Who judges them: `isp:google`, `host:mail.example.com`. A bare name is
    /// a mailbox provider.
    #[arg(long, value_parser = destination)]
    pub destination: Option<String>,
    /// How urgent they are: critical, high, normal or low.
    #[arg(long, value_parser = class)]
    pub class: Option<String>,
    /// Which accounts may send them.
    #[arg(long)]
    pub pool: Option<String>,
}

/// Reads a class.
pub fn class(text: &str) -> Result<String, String> {
    let class: Class = text.parse().map_err(|_| {
        let all: Vec<&str> = Class::ALL.iter().map(|class| class.as_str()).collect();
        format!("write one of {}", all.join(", "))
    })?;
    Ok(class.as_str().to_owned())
}

/// Reads a destination.
fn destination(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("write KIND:NAME, as isp:google".to_owned()),
        text if text.contains(':') => Ok(text.to_owned()),
        text => Ok(format!("isp:{text}")),
    }
}

impl Selection {
    /// What was said.
    pub fn pairs(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let fields = [
            ("tenant", &self.tenant),
            ("campaign", &self.campaign),
            ("destination", &self.destination),
            ("class", &self.class),
            ("pool", &self.pool),
        ];
        let said = fields.into_iter();
        said.filter_map(|(name, value)| Some((name, value.as_ref()?)))
    }

    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        self.pairs().next().is_none()
    }

    /// As a query has it.
    pub fn query(&self) -> impl Iterator<Item = (&'static str, Option<String>)> {
        self.pairs()
            .map(|(name, value)| (name, Some(value.clone())))
    }

    /// As a body has it.
    pub fn json(&self) -> Value {
        let pairs = self.pairs();
        let fields = pairs.map(|(name, value)| (name.to_owned(), Value::from(value.as_str())));
        Value::Object(fields.collect::<Map<_, _>>())
    }

    /// As people say it: `of tenant acme to isp:google`.
    pub fn words(&self) -> String {
        let parts = self.pairs().map(|(name, value)| match name {
            "destination" => format!("to {value}"),
            _ => format!("of {name} {value}"),
        });
        parts.collect::<Vec<_>>().join(" ")
    }
}
