//! `outflow doctor`: whether a domain is ready to send, and what to do if not.
//!
//! Works from settings and DNS alone; what a running server knows (accounts and
//! policies that were made over the API, traffic, warm-up) is added if one
//! answers. The judging is done in `outflow-doctor`, which asks nobody.
//!
//! In reading order: this file (the command), `subject` (what settings say),
//! `paces` (limits in force and known ones), `live` (what a server says), `ask`
//! (questions to DNS and mail servers), `show` (the answer).

mod ask;
mod live;
mod paces;
mod show;
mod subject;

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use clap::Args;
use outflow_doctor::{Finding, Status, names};
use outflow_resolver_dns::{Survey, domain};

use super::GlobalOptions;
use super::failure::Failure;
use super::session::print;
use crate::config::Sources;
use live::Live;

/// Domains that are looked over in one run.
const DOMAINS_MAX: usize = 20;

/// What to look at.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The domain that mail is from; several may be named. Without it, those
    /// that accounts sign for.
    #[arg(long, value_name = "DOMAIN")]
    domain: Vec<String>,
    /// The domain of return paths, if it is another.
    #[arg(long, value_name = "DOMAIN")]
    bounce_domain: Option<String>,
    /// The sending address as receivers see it, for accounts that do not say;
    /// several may be named.
    #[arg(long, value_name = "ADDRESS")]
    ip: Vec<IpAddr>,
    /// The DNS server to ask: an address, with or without a port. Without it,
    /// those of the settings, else of the system.
    #[arg(long, value_name = "ADDRESS")]
    dns: Option<String>,
    #[command(flatten)]
    sources: Sources,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// One domain and what was found.
pub struct Report {
    /// Which.
    pub domain: String,
    /// What was found.
    pub findings: Vec<Finding>,
}

/// Looks domains over. Fails if something must be mended.
pub fn run(arguments: &Arguments, options: &GlobalOptions) -> Result<(), Failure> {
    let settings = arguments.sources.read(options.data_dir.as_deref(), &[]);
    let settings = settings.map_err(|error| Failure::WrongUse(error.to_string()))?;
    let live = Live::ask(options, &settings)?;
    let facts = subject::Facts::of(&settings, &live, &arguments.ip);
    let domains = domains(&arguments.domain, &facts)?;
    let bounce_domain = arguments
        .bounce_domain
        .as_deref()
        .map(checked)
        .transpose()?;
    let servers = match &arguments.dns {
        Some(text) => vec![server(text)?],
        None => settings.dns.servers.clone(),
    };
    let failed = |error: &dyn std::fmt::Display| Failure::Other(error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| failed(&error))?;
    let reports: Result<Vec<Report>, Failure> = runtime.block_on(async {
        let survey = Arc::new(Survey::new(&servers).map_err(|error| failed(&error))?);
        let mut reports = Vec::new();
        for domain in domains {
            let subject = facts.about(&domain, bounce_domain.clone());
            let findings = ask::judge(&subject, &survey).await;
            reports.push(Report { domain, findings });
        }
        Ok(reports)
    });
    let reports = reports?;
    print(&match arguments.json {
        true => show::json(&reports),
        false => show::text(&reports),
    })?;
    let findings = reports.iter().flat_map(|report| &report.findings);
    let failures = findings.filter(|finding| finding.status == Status::Fail);
    match failures.count() {
        0 => Ok(()),
        1 => Err(Failure::Other("1 finding must be mended".to_owned())),
        count => Err(Failure::Other(format!("{count} findings must be mended"))),
    }
}

/// The domains that are named, or else those that accounts sign for.
fn domains(named: &[String], facts: &subject::Facts) -> Result<Vec<String>, Failure> {
    let domains: Result<BTreeSet<String>, Failure> = match named {
        [] => Ok(facts.signed_domains()),
        named => named.iter().map(|text| checked(text)).collect(),
    };
    let domains = domains?;
    match domains.len() {
        0 => Err(Failure::WrongUse(
            "say which domain: --domain example.com (no account signs for one)".to_owned(),
        )),
        1..=DOMAINS_MAX => Ok(domains.into_iter().collect()),
        count => Err(Failure::WrongUse(format!(
            "{count} domains at once, at most {DOMAINS_MAX}: name some with --domain"
        ))),
    }
}

fn checked(text: &str) -> Result<String, Failure> {
    let name = domain::normal(text.trim());
    match names::is_name(&name) && name.contains('.') && name.parse::<IpAddr>().is_err() {
        true => Ok(name),
        false => Err(Failure::WrongUse(format!(
            "{text:?} is no domain: write it as example.com"
        ))),
    }
}

fn server(text: &str) -> Result<SocketAddr, Failure> {
    let bare = text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 53));
    let server = text.parse::<SocketAddr>().or(bare);
    server.map_err(|_| {
        Failure::WrongUse(format!(
            "{text:?}: a DNS server is written as 192.0.2.53 or 192.0.2.53:5353"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::{checked, server};

    #[test]
    fn domains_and_servers_are_read_as_people_write_them() {
        assert_eq!(
            checked(" Example.COM. ").ok().as_deref(),
            Some("example.com")
        );
        let german = checked("b\u{fc}cher.example").ok();
        assert_eq!(german.as_deref(), Some("xn--bcher-kva.example"));
        for wrong in ["", "com", "a b.example", "192.0.2.1", "user@example.com"] {
            assert!(checked(wrong).is_err(), "{wrong}");
        }
        let port = |text| server(text).ok().map(|server| server.port());
        assert_eq!(port("192.0.2.53"), Some(53));
        assert_eq!(port("[2001:db8::1]:54"), Some(54));
        assert_eq!(port("ns.example"), None);
    }
}
