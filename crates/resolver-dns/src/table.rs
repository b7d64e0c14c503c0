//! The mailbox providers that are known, as data.

use std::collections::{BTreeMap, BTreeSet};

use outflow_core::name::Name;
use serde::Deserialize;

use crate::domain::normal;

const BUILT_IN: &str = include_str!("../data/mailbox-providers.toml");
/// No file has more.
const PROVIDERS_MAX: usize = 10_000;
const NAMES_MAX: usize = 100_000;

/// Why a file of providers cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// It is not written as it should be.
    #[error("{0}")]
    Form(#[from] toml::de::Error),
    /// A provider cannot be called so.
    #[error(
        "a provider cannot be called {0:?}: write a short name without spaces, colons and slashes"
    )]
    Name(String),
    /// It says nothing.
    #[error("provider {0:?} has neither domains nor brands nor mx: nothing would be its own")]
    Empty(String),
    /// There are too many.
    #[error("more than {PROVIDERS_MAX} providers, or {NAMES_MAX} names in all")]
    TooMany,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    endings: Vec<String>,
    #[serde(default)]
    provider: Vec<Provider>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Provider {
    name: String,
    #[serde(default)]
    domains: Vec<String>,
    #[serde(default)]
    brands: Vec<String>,
    #[serde(default)]
    mx: Vec<String>,
    messages_per_connection: Option<u32>,
    /// For whoever reads the file.
    #[serde(default, rename = "source")]
    _source: String,
}

/// The mailbox providers that are known.
#[derive(Clone, Debug, Default)]
pub struct Table {
    domains: BTreeMap<String, Name>,
    brands: BTreeMap<String, Name>,
    servers: BTreeMap<String, Name>,
    endings: BTreeSet<String>,
    /// One domain of each, to find its servers by.
    examples: BTreeMap<Name, String>,
    messages: BTreeMap<Name, u32>,
}

impl Table {
    /// Those that come with the program.
    pub fn built_in() -> Self {
        let table = Self::default();
        table
            .with(BUILT_IN)
            .expect("the table that is compiled in can be read")
    }

    /// These, and before them those of a file.
    pub fn with(mut self, toml: &str) -> Result<Self, TableError> {
        let file: File = toml::from_str(toml)?;
        let names = |provider: &Provider| {
            provider.domains.len() + provider.brands.len() + provider.mx.len()
        };
        if file.provider.len() > PROVIDERS_MAX
            || file.provider.iter().map(names).sum::<usize>() > NAMES_MAX
        {
            return Err(TableError::TooMany);
        }
        self.endings
            .extend(file.endings.iter().map(|it| normal(it)));
        for provider in file.provider {
            self.add(provider)?;
        }
        Ok(self)
    }

    fn add(&mut self, provider: Provider) -> Result<(), TableError> {
        let text = provider.name.to_ascii_lowercase();
        let is_fit = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
        if text.is_empty() || text.len() > 128 || !text.chars().all(is_fit) {
            return Err(TableError::Name(provider.name));
        }
        if provider.domains.is_empty() && provider.brands.is_empty() && provider.mx.is_empty() {
            return Err(TableError::Empty(provider.name));
        }
        let name = Name::from(text.as_str());
        for domain in provider.domains.iter().map(|it| normal(it)) {
            self.examples
                .entry(name.clone())
                .or_insert_with(|| domain.clone());
            self.domains.insert(domain, name.clone());
        }
        for brand in provider.brands.iter().map(|it| normal(it)) {
            self.examples
                .entry(name.clone())
                .or_insert_with(|| format!("{brand}.com"));
            self.brands.insert(brand, name.clone());
        }
        for end in &provider.mx {
            self.servers
                .insert(normal(end.trim_start_matches('.')), name.clone());
        }
        if let Some(messages) = provider.messages_per_connection {
            self.messages.insert(name, messages.max(1));
        }
        Ok(())
    }

    /// Who owns a domain, in its one form.
    pub fn owner_of(&self, domain: &str) -> Option<&Name> {
        self.domains.get(domain).or_else(|| {
            let (brand, ending) = domain.split_once('.')?;
            let owner = self.brands.get(brand)?;
            self.endings.contains(ending).then_some(owner)
        })
    }

    /// Whose mail server this is: the longest end that is listed speaks.
    pub fn host_of(&self, server: &str) -> Option<&Name> {
        let mut end = server;
        loop {
            if let Some(owner) = self.servers.get(end) {
                return Some(owner);
            }
            end = end.split_once('.')?.1;
        }
    }

    /// A domain of a provider.
    pub fn example_of(&self, provider: &Name) -> Option<&str> {
        self.examples.get(provider).map(String::as_str)
    }

    /// How many messages a provider wants on one connection, if it is known.
    pub fn messages_per_connection(&self, provider: &Name) -> Option<u32> {
        self.messages.get(provider).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_domains_have_owners_and_others_do_not() {
        let table = Table::built_in();
        for (domain, owner) in [
            ("gmail.com", Some("google")),
            ("hotmail.co.uk", Some("outlook")),
            ("live.com", Some("outlook")),
            ("live.example.com", None),
            ("yahoo.fr", Some("yahoo")),
            ("yahoo.co.jp", Some("yahoo-japan")),
            ("aol.com", Some("yahoo")),
            ("me.com", Some("icloud")),
            ("mail.gmail.com", None),
            ("example.org", None),
        ] {
            assert_eq!(table.owner_of(domain).map(Name::as_str), owner, "{domain}");
        }
    }

    #[test]
    fn servers_are_known_by_the_end_of_their_names() {
        let table = Table::built_in();
        for (server, owner) in [
            ("aspmx.l.google.com", Some("google")),
            ("smtp.google.com", Some("google")),
            ("hotmail-com.olc.protection.outlook.com", Some("outlook")),
            ("example-org.mail.protection.outlook.com", Some("office365")),
            ("mx0a-001.pphosted.com", Some("proofpoint")),
            ("notgoogle.com", None),
            ("mx.example.net", None),
        ] {
            assert_eq!(table.host_of(server).map(Name::as_str), owner, "{server}");
        }
    }

    #[test]
    fn a_file_goes_before_what_is_built_in() {
        let more = "[[provider]]\nname = \"Example\"\ndomains = [\"gmail.com\", \"bücher.example\"]\n\
                    mx = [\".mx.example.net\"]\nmessages_per_connection = 3\n";
        let table = Table::built_in().with(more).unwrap();
        let example = Name::from("example");
        assert_eq!(table.owner_of("gmail.com"), Some(&example));
        assert_eq!(table.owner_of("xn--bcher-kva.example"), Some(&example));
        assert_eq!(table.host_of("a.mx.example.net"), Some(&example));
        assert_eq!(table.messages_per_connection(&example), Some(3));
        assert_eq!(
            table.owner_of("googlemail.com"),
            Some(&Name::from("google"))
        );
        for wrong in [
            "[[provider]]\nname = \"a:b\"\ndomains = [\"x.example\"]\n",
            "[[provider]]\nname = \"empty\"\n",
            "[[provider]]\nname = \"a\"\ndomian = [\"x.example\"]\n",
        ] {
            assert!(Table::built_in().with(wrong).is_err(), "{wrong}");
        }
    }
}
