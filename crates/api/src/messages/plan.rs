//! From a request to what the node is given: parsed once, checked, fanned out.

use outflow_core::name::Name;
use outflow_core::time::Wall;
use outflow_mail::Address;
use outflow_ports::draft::{self, Draft};
use outflow_ports::intake::Submission;
use outflow_ports::letter::Envelope;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::check::{self, Checked};
use super::form::MessageForm;
use super::naming::Naming;
use crate::auth::Caller;
use crate::extract::{Media, read};
use crate::object::Object;
use crate::problem::{Code, ERRORS_MAX, Problem};

/// Messages of one request.
pub const BATCH_MAX: usize = 10_000;

/// What a request becomes.
#[derive(Debug, Default)]
pub struct Plan {
    /// One for each recipient.
    pub submissions: Vec<Submission>,
    /// What each of them came from, in the same order.
    pub origins: Vec<Origin>,
    /// Messages that cannot be accepted.
    pub rejected: Vec<(usize, Problem)>,
    /// Whether the answer is a list.
    pub is_batch: bool,
    /// Where the list of messages is in the request, if it is one.
    pub list_at: Option<&'static str>,
}

/// Where a submission came from.
#[derive(Debug)]
pub struct Origin {
    /// Which message of the request.
    pub index: usize,
    /// Which of its recipients, if it had several.
    pub to: Option<String>,
    /// The digest of what was submitted.
    pub digest: u64,
}

/// What planning needs to know.
#[derive(Debug)]
pub struct Planner<'a> {
    /// Who submits.
    pub caller: &'a Caller,
    /// When.
    pub now: Wall,
    /// Gives Message-IDs.
    pub naming: &'a Naming,
    /// The key in the header, which covers the request.
    pub request_key: Option<&'a str>,
    /// Bytes of one message, as JSON.
    pub message_bytes_max: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Batch<'a> {
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
}

impl Planner<'_> {
    /// Plans a whole request.
    pub fn plan(&self, bytes: &[u8], media: Media) -> Result<Plan, Problem> {
        match media {
            Media::Lines => {
                let lines = bytes.split(|byte| *byte == b'\n');
                let lines = lines.filter(|line| !line.trim_ascii().is_empty());
                self.several(lines, "")
            }
            Media::Json if looks_like_batch(bytes) => {
                match serde_json::from_slice::<Batch<'_>>(bytes) {
                    Ok(batch) => self.several(texts(&batch), "/messages"),
                    Err(error) => Err(bad_batch(&error)),
                }
            }
            Media::Json => self.one_or_several(bytes),
        }
    }

    fn one_or_several(&self, bytes: &[u8]) -> Result<Plan, Problem> {
        self.fits(bytes.len())?;
        let form = match read(bytes, "") {
            Ok(Object::<MessageForm>(form)) => form,
            // A batch whose first key is another one: only those who err pay.
            Err(refused) => match serde_json::from_slice::<Object<Batch<'_>>>(bytes) {
                Ok(Object(batch)) => return self.several(texts(&batch), "/messages"),
                Err(_) => return Err(refused),
            },
        };
        let mut plan = Plan::default();
        let checked = check::check(form, "", self.caller, self.now)?;
        let key = self.key_of_one(&checked)?;
        plan.is_batch = checked.fans_out;
        self.fan_out(0, checked, key, &mut plan);
        Ok(plan)
    }

    fn several<'b>(
        &self,
        texts: impl Iterator<Item = &'b [u8]>,
        base: &'static str,
    ) -> Result<Plan, Problem> {
        let mut plan = Plan {
            is_batch: true,
            list_at: Some(base),
            ..Plan::default()
        };
        let mut errors_left = ERRORS_MAX;
        for (index, text) in texts.enumerate() {
            if index >= BATCH_MAX {
                return Err(Problem::field(
                    base,
                    format!("has too many messages: at most {BATCH_MAX}"),
                ));
            }
            match self.one_of(text, &format!("{base}/{index}")) {
                Ok(checked) => {
                    let key = self.key_of_several(&checked, index);
                    self.fan_out(index, checked, key, &mut plan);
                }
                Err(problem) => {
                    let problem = problem.within(&mut errors_left);
                    plan.rejected.push((index, problem));
                }
            }
            if plan.submissions.len() > BATCH_MAX {
                let detail = format!("has too many recipients in all: at most {BATCH_MAX}");
                return Err(Problem::field(base, detail));
            }
        }
        if plan.submissions.is_empty() && plan.rejected.is_empty() {
            return Err(Problem::field(base, "has no messages"));
        }
        Ok(plan)
    }

    fn one_of(&self, text: &[u8], base: &str) -> Result<Checked, Problem> {
        self.fits(text.len())?;
        let Object(form) = read::<Object<MessageForm>>(text, base)?;
        check::check(form, base, self.caller, self.now)
    }

    fn fits(&self, bytes: usize) -> Result<(), Problem> {
        if bytes <= self.message_bytes_max {
            return Ok(());
        }
        let max = self.message_bytes_max;
        Err(Problem::new(
            Code::TooLarge,
            format!("a message has at most {max} bytes"),
        ))
    }

    fn key_of_one(&self, checked: &Checked) -> Result<Option<String>, Problem> {
        let own = checked.idempotency_key.as_deref();
        if let (Some(own), Some(header)) = (own, self.request_key)
            && own != header
        {
            let detail = "is not the key in the Idempotency-Key header";
            return Err(Problem::field("/idempotency_key", detail));
        }
        let key = own.or(self.request_key);
        Ok(key.map(|key| draft::key(&checked.tenant, key)))
    }

    /// The header covers the request, so each message has its place as well.
    fn key_of_several(&self, checked: &Checked, index: usize) -> Option<String> {
        let tenant = &checked.tenant;
        match (&checked.idempotency_key, self.request_key) {
            (Some(own), _) => Some(draft::key(tenant, own)),
            (None, Some(key)) => Some(draft::key_of_place(tenant, key, index)),
            (None, None) => None,
        }
    }

    /// One submission for each recipient; all share one body.
    fn fan_out(&self, index: usize, checked: Checked, key: Option<String>, plan: &mut Plan) {
        let Checked {
            from,
            recipients,
            fans_out,
            mut content,
            digest,
            ..
        } = checked;
        content.message_id = self.naming.message_id(self.now, from.domain());
        content.date = self.now.0.div_euclid(1_000_000_000);
        let origin = |to: &Address| Origin {
            index,
            to: fans_out.then(|| to.as_str().to_owned()),
            digest,
        };
        plan.origins.extend(recipients.iter().map(origin));
        let draft = Draft {
            tenant: checked.tenant,
            class: checked.class,
            campaign: checked.campaign,
            pool: checked.pool,
            sender_domain: Name::from(from.domain()),
            not_before: checked.not_before,
            expires_at: checked.expires_at,
            key,
            fans_out,
            engaged: checked.engaged,
            envelope: Envelope {
                to: String::new(),
                from: from.into_string(),
                return_path: checked.return_path,
                subject: content.subject.clone(),
                tags: checked.tags,
                digest,
            },
            body: content.to_bytes().into(),
        };
        let recipients = recipients.into_iter().map(Address::into_recipient);
        plan.submissions.extend(draft.fan_out(recipients));
    }
}

fn texts<'b>(batch: &Batch<'b>) -> impl Iterator<Item = &'b [u8]> {
    batch.messages.iter().map(|text| text.get().as_bytes())
}

/// Whether `messages` is the first key.
fn looks_like_batch(bytes: &[u8]) -> bool {
    let inside = bytes.trim_ascii_start().strip_prefix(b"{");
    inside.is_some_and(|inside| inside.trim_ascii_start().starts_with(b"\"messages\""))
}

fn bad_batch(error: &serde_json::Error) -> Problem {
    match error.is_data() {
        true => Problem::field(
            "/messages",
            "must be a list of messages, with nothing beside it",
        ),
        false => Problem::new(Code::InvalidJson, error.to_string()),
    }
}
