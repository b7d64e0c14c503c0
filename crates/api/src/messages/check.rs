//! From a message as somebody wrote it to one that can be sent, or to all that
//! is wrong with it, each by its JSON pointer.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use outflow_core::class::Class;
use outflow_core::name::Name;
use outflow_core::time::Wall;
use outflow_mail::structure::MailStructure;
use outflow_mail::{Address, Mailbox, ReceiveError, content_id, named_senders};
use outflow_ports::draft::{self, DEFAULT, RECIPIENTS_MAX};
use outflow_ports::letter::{Attachment, Content, Unsubscribe};

use super::form::{AttachmentForm, MessageForm, OneOrMany};
use super::{digest, headers};
use crate::auth::Caller;
use crate::bounded;
use crate::extract::escaped;
use crate::problem::{ERRORS_MAX, FieldError, Problem};
use crate::stamp::Stamp;

const SUBJECT_BYTES_MAX: usize = 2_000;
const TAGS_MAX: usize = 32;
const TAG_KEY_BYTES_MAX: usize = 64;
const TAG_VALUE_BYTES_MAX: usize = 256;
const ATTACHMENTS_MAX: usize = 100;
const FILENAME_BYTES_MAX: usize = 255;

/// A message that can be sent, to each of its recipients.
#[derive(Debug)]
pub struct Checked {
    /// Whose it is.
    pub tenant: Name,
    /// How urgent it is.
    pub class: Class,
    /// What it belongs to.
    pub campaign: Option<Name>,
    /// Which accounts may send it.
    pub pool: Name,
    /// Who sends it.
    pub from: Address,
    /// Whom it goes to, each once.
    pub recipients: Vec<Address>,
    /// Whether it was written for several, even if they are one.
    pub fans_out: bool,
    /// Where bounces go.
    pub return_path: Option<String>,
    /// The sender's own labels.
    pub tags: BTreeMap<String, String>,
    /// Not to be sent before this.
    pub not_before: Option<Wall>,
    /// Of no use from this on.
    pub expires_at: Wall,
    /// Whether its recipients read what they get.
    pub engaged: Option<bool>,
    /// The key in its own field.
    pub idempotency_key: Option<String>,
    /// What it says, without Message-ID and Date.
    pub content: Content,
    /// A digest of all of it.
    pub digest: u64,
}

/// Collects what is wrong.
struct Faults<'a> {
    base: &'a str,
    /// The first of them.
    found: Vec<FieldError>,
    count: usize,
}

impl Faults<'_> {
    fn add(&mut self, field: &str, detail: impl ToString) {
        self.count += 1;
        if self.found.len() < ERRORS_MAX {
            let pointer = format!("{}/{field}", self.base);
            self.found
                .push(FieldError::new(pointer, detail.to_string()));
        }
    }

    /// The value, or a fault at `field`.
    fn take<T, E: ToString>(&mut self, field: &str, read: Result<T, E>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(wrong) => {
                self.add(field, wrong);
                None
            }
        }
    }

    fn name(&mut self, field: &str, text: Option<String>) -> Option<Name> {
        let text = text?;
        self.take(field, bounded::name(&text))?;
        Some(Name::from(text))
    }

    fn time(&mut self, field: &str, text: Option<String>) -> Option<Wall> {
        let Stamp(wall) = self.take(field, Stamp::parse(&text?))?;
        Some(wall)
    }

    fn mailbox(&mut self, field: &str, text: &str) -> Option<Mailbox> {
        self.take(field, Mailbox::parse(text))
    }
}

/// Checks a message; pointers in what is refused begin with `base`.
pub fn check(
    form: MessageForm,
    base: &str,
    caller: &Caller,
    now: Wall,
) -> Result<Checked, Problem> {
    let digest = digest::of(&form);
    let mut faults = Faults {
        base,
        found: Vec::new(),
        count: 0,
    };
    if let Some(channel) = form.channel.as_deref()
        && channel != "email"
    {
        faults.add("channel", "must be email: others are not available yet");
    }
    let class = form.class.as_deref().unwrap_or(Class::Normal.as_str());
    let class = faults.take("class", class.parse::<Class>());
    let tenant = match &caller.tenant {
        Some(own) => Some(own.clone()),
        None => faults.name("tenant", form.tenant),
    };
    let campaign = faults.name("campaign", form.campaign);
    let pool = faults.name("pool", form.pool);
    let (not_before, expires_at) = times(&mut faults, form.not_before, form.expires_at, now);
    if let Some(key) = &form.idempotency_key {
        faults.take("idempotency_key", bounded::idempotency_key(key));
    }
    check_tags(&mut faults, &form.tags);
    let return_path = form.return_path.as_deref();
    let return_path = return_path
        .filter(|text| !text.is_empty())
        .and_then(|text| faults.take("return_path", Address::parse(text)));
    let letter = Letter {
        from: form.from,
        to: form.to,
        cc: form.cc,
        bcc: form.bcc,
        reply_to: form.reply_to,
        subject: form.subject,
        text: form.text,
        html: form.html,
        headers: form.headers,
        attachments: form.attachments,
        unsubscribe: form.unsubscribe.map(|said| Unsubscribe {
            url: said.url,
            mailto: said.mailto,
            one_click: said.one_click,
        }),
        raw: form.raw,
    };
    let read = letter.read(&mut faults);
    if !faults.found.is_empty() {
        return Err(Problem::invalid_of(faults.found, faults.count));
    }
    let (Some(class), Some(read)) = (class, read) else {
        return Err(Problem::field(base, "cannot be accepted"));
    };
    let checked = Checked {
        tenant: tenant.unwrap_or_else(|| Name::from(DEFAULT)),
        class,
        campaign,
        pool: pool.unwrap_or_else(|| Name::from(DEFAULT)),
        from: read.from,
        recipients: read.recipients,
        fans_out: read.fans_out,
        return_path: return_path.map(Address::into_string),
        tags: form.tags,
        not_before,
        expires_at,
        engaged: form.engaged,
        idempotency_key: form.idempotency_key,
        content: read.content,
        digest,
    };
    may_submit(&checked, caller)?;
    may_name(&checked, caller, base)?;
    Ok(checked)
}

/// Whether the token covers everybody whom the message names as its sender:
/// besides `from`, the authors and senders of a whole message, which is signed
/// for them, and the address that bounces go to.
fn may_name(checked: &Checked, caller: &Caller, base: &str) -> Result<(), Problem> {
    if !caller.is_bound_to_domains() {
        return Ok(());
    }
    let mut named = Vec::new();
    if let Some(raw) = &checked.content.raw {
        let bytes = STANDARD.decode(raw).unwrap_or_default();
        let senders = named_senders(&bytes);
        named =
            senders.map_err(|wrong| Problem::field(&format!("{base}/raw"), wrong.to_string()))?;
    }
    let return_path = checked.return_path.as_deref();
    named.extend(return_path.and_then(|text| Address::parse(text).ok()));
    let stranger = named.iter().find(|it| !caller.may_send_from(it.domain()));
    match stranger {
        Some(stranger) => Err(uncovered(&format!("mail from {}", stranger.domain()))),
        None => Ok(()),
    }
}

/// Whether the token covers this message.
fn may_submit(checked: &Checked, caller: &Caller) -> Result<(), Problem> {
    let domain = checked.from.domain();
    let refused = if !caller.may_class(checked.class) {
        format!("class {}", checked.class)
    } else if !caller.may_pool(checked.pool.as_str()) {
        format!("pool {}", checked.pool)
    } else if !caller.may_send_from(domain) {
        format!("mail from {domain}")
    } else {
        return Ok(());
    };
    Err(uncovered(&refused))
}

fn uncovered(what: &str) -> Problem {
    Problem::forbidden(format!("this token does not cover {what}"))
}

fn times(
    faults: &mut Faults<'_>,
    not_before: Option<String>,
    expires_at: Option<String>,
    now: Wall,
) -> (Option<Wall>, Wall) {
    let not_before = faults.time("not_before", not_before);
    let not_before = faults.take("not_before", draft::not_before(not_before, now));
    let not_before = not_before.flatten();
    let expires_at = faults.time("expires_at", expires_at);
    let expires_at = draft::expires_at(expires_at, not_before, now);
    let expires_at = faults.take("expires_at", expires_at);
    (not_before, expires_at.unwrap_or(Wall::NEVER))
}

fn check_tags(faults: &mut Faults<'_>, tags: &BTreeMap<String, String>) {
    if tags.len() > TAGS_MAX {
        faults.add("tags", format!("has too many entries: at most {TAGS_MAX}"));
    }
    for (key, value) in tags.iter().take(TAGS_MAX) {
        let wrong = match bounded::line(key, TAG_KEY_BYTES_MAX) {
            Ok(()) => bounded::line(value, TAG_VALUE_BYTES_MAX).err(),
            Err(wrong) => Some(wrong),
        };
        if let Some(wrong) = wrong {
            faults.add(&format!("tags/{}", escaped(key)), wrong);
        }
    }
}

/// What is written on a message and into it.
struct Letter {
    from: Option<String>,
    to: OneOrMany,
    cc: Vec<String>,
    bcc: Vec<String>,
    reply_to: Option<String>,
    subject: Option<String>,
    text: Option<String>,
    html: Option<String>,
    headers: BTreeMap<String, String>,
    attachments: Vec<AttachmentForm>,
    unsubscribe: Option<Unsubscribe>,
    raw: Option<String>,
}

/// A letter that can be sent.
struct Readable {
    from: Address,
    recipients: Vec<Address>,
    fans_out: bool,
    content: Content,
}

impl Letter {
    fn read(self, faults: &mut Faults<'_>) -> Option<Readable> {
        self.check_content(faults);
        let from = match self.from.as_deref() {
            Some(text) => faults.mailbox("from", text),
            None => {
                faults.add("from", "is required");
                None
            }
        };
        let reply_to = self.reply_to.as_deref();
        let reply_to = reply_to.and_then(|text| faults.mailbox("reply_to", text));
        let fans_out =
            !matches!(self.to, OneOrMany::One(_)) || !self.cc.is_empty() || !self.bcc.is_empty();
        let (field, to) = match self.to {
            OneOrMany::None => {
                faults.add("to", "is required");
                ("to", Vec::new())
            }
            OneOrMany::One(text) => ("to", vec![text]),
            OneOrMany::Many(list) => ("to/", list),
        };
        if field == "to/" && to.is_empty() && self.cc.is_empty() && self.bcc.is_empty() {
            faults.add("to", "names nobody");
        }
        if to.len() + self.cc.len() + self.bcc.len() > RECIPIENTS_MAX {
            faults.add(
                "to",
                format!("has too many recipients: at most {RECIPIENTS_MAX}"),
            );
            return None;
        }
        let to = mailboxes(faults, field, &to);
        let cc = mailboxes(faults, "cc/", &self.cc);
        let bcc = mailboxes(faults, "bcc/", &self.bcc);
        let everyone = to.iter().chain(&cc).chain(&bcc);
        let recipients = each_once(everyone.map(Mailbox::address));
        let from = from?;
        let content = Content {
            from: from.to_string(),
            to: to.iter().map(Mailbox::to_string).collect(),
            cc: cc.iter().map(Mailbox::to_string).collect(),
            reply_to: reply_to.map(|mailbox| mailbox.to_string()),
            subject: self.subject,
            text: self.text,
            html: self.html,
            headers: self.headers,
            attachments: self.attachments.into_iter().map(attachment).collect(),
            unsubscribe: self.unsubscribe,
            raw: self.raw,
            ..Content::default()
        };
        Some(Readable {
            from: from.into_address(),
            recipients,
            fans_out,
            content,
        })
    }

    fn check_content(&self, faults: &mut Faults<'_>) {
        if let Some(subject) = &self.subject {
            faults.take("subject", bounded::line(subject, SUBJECT_BYTES_MAX));
        }
        if self.headers.len() > headers::HEADERS_MAX {
            let max = headers::HEADERS_MAX;
            faults.add("headers", format!("has too many fields: at most {max}"));
        }
        for (name, value) in self.headers.iter().take(headers::HEADERS_MAX) {
            if let Some(wrong) = headers::objection(name, value) {
                faults.add(&format!("headers/{}", escaped(name)), wrong);
            }
        }
        if self.attachments.len() > ATTACHMENTS_MAX {
            let detail = format!("has too many files: at most {ATTACHMENTS_MAX}");
            faults.add("attachments", detail);
        }
        for (at, file) in self.attachments.iter().take(ATTACHMENTS_MAX).enumerate() {
            check_attachment(faults, at, file);
        }
        if let Some(said) = &self.unsubscribe {
            faults.take("unsubscribe", outflow_mail::Unsubscribe::new(said));
        }
        match &self.raw {
            Some(raw) => self.check_raw(faults, raw),
            None => {
                let has_text = self.text.is_some() || self.html.is_some();
                if !has_text && self.subject.is_none() && self.attachments.is_empty() {
                    faults.add("text", "is required: write text, html, raw or attachments");
                }
            }
        }
    }

    fn check_raw(&self, faults: &mut Faults<'_>, raw: &str) {
        let others = [
            ("subject", self.subject.is_some()),
            ("text", self.text.is_some()),
            ("html", self.html.is_some()),
            ("reply_to", self.reply_to.is_some()),
            ("headers", !self.headers.is_empty()),
            ("attachments", !self.attachments.is_empty()),
            ("unsubscribe", self.unsubscribe.is_some()),
        ];
        for (field, _) in others.iter().filter(|(_, present)| *present) {
            faults.add(field, "does not go with raw, which says it all");
        }
        match STANDARD.decode(raw) {
            Ok(bytes) if bytes.is_empty() => faults.add("raw", "must not be empty"),
            Ok(bytes) if MailStructure::of(&bytes).is_too_deep => {
                faults.add("raw", ReceiveError::TooDeep);
            }
            Ok(_) => {}
            Err(_) => faults.add("raw", "is not base64"),
        }
    }
}

fn mailboxes(faults: &mut Faults<'_>, field: &str, texts: &[String]) -> Vec<Mailbox> {
    let mut found = Vec::with_capacity(texts.len());
    for (at, text) in texts.iter().enumerate() {
        let read = Mailbox::parse(text);
        let read = match field.ends_with('/') {
            true => faults.take(&format!("{field}{at}"), read),
            false => faults.take(field, read),
        };
        found.extend(read);
    }
    found
}

fn each_once<'a>(addresses: impl Iterator<Item = &'a Address>) -> Vec<Address> {
    let mut seen = BTreeSet::new();
    addresses
        .filter(|address| seen.insert(address.as_str()))
        .cloned()
        .collect()
}

fn check_attachment(faults: &mut Faults<'_>, at: usize, file: &AttachmentForm) {
    let filename = bounded::line(&file.filename, FILENAME_BYTES_MAX);
    faults.take(&format!("attachments/{at}/filename"), filename);
    if !is_media_type(&file.content_type) {
        let field = format!("attachments/{at}/content_type");
        faults.add(&field, "is not a media type: write it as in text/plain");
    }
    if STANDARD.decode(&file.content).is_err() {
        faults.add(&format!("attachments/{at}/content"), "is not base64");
    }
    if file
        .content_id
        .as_deref()
        .is_some_and(|id| content_id(id).is_none())
    {
        let field = format!("attachments/{at}/content_id");
        faults.add(
            &field,
            "is not 1 to 256 printable ASCII letters without < and >",
        );
    }
}

/// `type/subtype`, without parameters.
fn is_media_type(text: &str) -> bool {
    let is_token = |part: &str| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
        (1..=127).contains(&part.len()) && part.bytes().all(letter)
    };
    text.split_once('/')
        .is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype))
}

fn attachment(form: AttachmentForm) -> Attachment {
    Attachment {
        filename: form.filename,
        content_type: form.content_type,
        content: form.content,
        content_id: form.content_id,
    }
}
