//! From a message that came whole to what the node is given, or to the reply
//! that says why not.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use outflow_core::class::Class;
use outflow_core::name::Name;
use outflow_core::time::Wall;
use outflow_mail::{Address, Reception, named_senders, receive};
use outflow_ports::draft::{self, DEFAULT, Draft};
use outflow_ports::intake::Submission;
use outflow_ports::letter::{Content, Envelope};
use outflow_ports::naming::Naming;
use xxhash_rust::xxh3::Xxh3;

use crate::doorkeeper::Pass;
use crate::marks::{self, Marks};
use crate::server::Handed;
use crate::server::reply::Reply;

/// Where a message with the null sender sends its bounces.
const NULL_SENDER: &str = "<>";

/// Makes one submission for each recipient; all share one body.
pub fn accept(
    handed: &Handed,
    pass: &Pass,
    hostname: &str,
    now: Wall,
    naming: &Naming,
) -> Result<Vec<Submission>, Reply> {
    let protocol = match handed.is_protected {
        true => "ESMTPSA",
        false => "ESMTPA",
    };
    let reception = Reception {
        sender: handed.sender.as_ref(),
        trace: &format!("by {hostname} with {protocol}"),
        date: now.0.div_euclid(1_000_000_000),
        prefix: marks::PREFIX,
    };
    let name_it = |domain: &str| naming.message_id(now, domain);
    let received = receive(&handed.bytes, &reception, name_it);
    let received = received.map_err(|wrong| Reply::new(554, "5.6.0", wrong.to_string()))?;
    let wrong = |wrong: marks::WrongMark| Reply::new(554, "5.6.0", wrong.to_string());
    let marks = Marks::read(&received.told).map_err(wrong)?;
    let (not_before, expires_at) = marks.times(now).map_err(wrong)?;
    let default = || Name::from(DEFAULT);
    let tenant = pass.tenant.clone().or(marks.tenant);
    let tenant = tenant.unwrap_or_else(default);
    let class = marks.class.unwrap_or(Class::Normal);
    let pool = marks.pool.unwrap_or_else(default);
    let named = match pass.from_domains.is_empty() {
        true => Vec::new(),
        false => named_senders(&received.bytes)
            .map_err(|wrong| Reply::new(554, "5.6.0", wrong.to_string()))?,
    };
    may_submit(pass, class, &pool, received.authors.iter().chain(&named))?;
    let author = received.authors.first();
    let author = author.ok_or_else(|| Reply::new(554, "5.6.0", "the message has no author"))?;
    let return_path = match &handed.sender {
        Some(sender) if sender == author => None,
        Some(sender) => Some(sender.as_str().to_owned()),
        None => Some(NULL_SENDER.to_owned()),
    };
    let envelope = Envelope {
        to: String::new(),
        from: author.as_str().to_owned(),
        return_path,
        subject: received.subject,
        digest: digest(handed, &tenant),
        ..Envelope::default()
    };
    let content = Content {
        message_id: received.message_id,
        date: reception.date,
        raw: Some(STANDARD.encode(&received.bytes)),
        ..Content::default()
    };
    let key = marks.idempotency_key;
    let draft = Draft {
        key: key.map(|key| draft::key(&tenant, &key)),
        tenant,
        class,
        campaign: marks.campaign,
        pool,
        sender_domain: Name::from(author.domain()),
        not_before,
        expires_at,
        fans_out: handed.recipients.len() > 1,
        engaged: None,
        envelope,
        body: content.to_bytes().into(),
    };
    let mut seen = BTreeSet::new();
    let recipients = handed.recipients.iter();
    let recipients = recipients.filter(|address| seen.insert(address.as_str()));
    Ok(draft.fan_out(recipients.cloned().map(Address::into_recipient)))
}

/// Whether the token covers this message. Everyone named as its author or sender
/// counts: readers may be shown any of them.
fn may_submit<'a>(
    pass: &Pass,
    class: Class,
    pool: &Name,
    mut named: impl Iterator<Item = &'a Address>,
) -> Result<(), Reply> {
    let stranger = named.find(|author| !pass.may_send_from(author.domain()));
    let refused = if !pass.may_class(class) {
        format!("class {class}")
    } else if !pass.may_pool(pool.as_str()) {
        format!("pool {pool}")
    } else if let Some(author) = stranger {
        format!("mail from {}", author.domain())
    } else {
        return Ok(());
    };
    let text = format!("this token does not cover {refused}");
    Err(Reply::new(550, "5.7.1", text))
}

/// A digest of all that was submitted. It outlives the process, so each part
/// goes with its length.
fn digest(handed: &Handed, tenant: &Name) -> u64 {
    let mut digest = Xxh3::with_seed(2);
    let mut add = |bytes: &[u8]| {
        digest.update(&(bytes.len() as u64).to_le_bytes());
        digest.update(bytes);
    };
    add(tenant.as_str().as_bytes());
    let sender = handed.sender.as_ref();
    add(sender.map_or("", Address::as_str).as_bytes());
    for recipient in &handed.recipients {
        add(recipient.as_str().as_bytes());
    }
    add(&handed.bytes);
    digest.digest()
}
