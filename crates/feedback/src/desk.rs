//! What comes back is matched to its message, counted, and learnt from.
//!
//! Anybody can write anything into a report. So the recipient is taken from our
//! own receipt, never from the report, and the message from a return address
//! that we signed, or from a caller who may speak for its tenant. Without such a
//! caller only the address of the envelope counts, and for a month only.

use std::sync::Arc;

use outflow_core::classify::Rules;
use outflow_core::message_id::MessageId;
use outflow_core::name::Name;
use outflow_core::outcome::Outcome;
use outflow_core::reply::{Enhanced, Reply, Stage};
use outflow_core::suppression::Reason;
use outflow_core::tally::{Counter, Teller};
use outflow_core::time::{Nanos, Wall};
use outflow_ports::control::Control;
use outflow_ports::hearing::{Hearing, HearingError, Hearsay, Tale, Told};
use outflow_ports::letter::Envelope;
use outflow_ports::receipts::{Receipt, Receipts};
use outflow_ports::suppression::Suppression;

use crate::feedback::{Feedback, Kind, Report};
use crate::learner::{Learner, canonical, detail};
use crate::lookup;
use crate::once::{OPT_OUT, Once, What};
use crate::read::{read, read_first};
use crate::return_path::ReturnPaths;

/// How long after a message was done with anybody at all may report of it, by its
/// return address. Servers give up after days; an address that leaks with an old
/// mail is worth nothing.
const HEARD_FOR: Nanos = Nanos::from_secs(30 * 86_400);

/// Takes in what comes back.
pub struct Desk {
    /// Our own return addresses, if there are any.
    pub paths: Option<Arc<ReturnPaths>>,
    /// Puts what was learnt on the list.
    pub learner: Arc<Learner>,
    /// What became of messages.
    pub receipts: Arc<dyn Receipts>,
    /// Whoever counts.
    pub control: Arc<dyn Control>,
    /// What refusals mean.
    pub rules: Rules,
    /// What was told before.
    pub once: Once,
}

/// What is done about one thing that was told.
struct Consequence {
    what: Option<What>,
    counter: Option<Counter>,
    reason: Option<Reason>,
    source: &'static str,
    reply: Option<Reply>,
    said: String,
}

impl Hearing for Desk {
    fn return_address(&self, address: &str) -> Option<MessageId> {
        self.paths.as_ref()?.verify(address)
    }

    fn mail(
        &self,
        mail: &[u8],
        about: Option<MessageId>,
        tenant: Option<&str>,
    ) -> Result<Hearsay, HearingError> {
        // One that came to the return address of a message is about that
        // message, which had one recipient.
        let report = match about {
            Some(_) => read_first(mail),
            None => read(mail),
        };
        let Some(report) = report else {
            return Ok(Hearsay::default());
        };
        let signed = about.or_else(|| self.paths.as_ref()?.find(&report));
        let mut heard = Hearsay::default();
        let mut told_of = Vec::new();
        let mut looks = lookup::LOOKS_MAX;
        for feedback in told(&report, signed.is_some()) {
            heard.read += 1;
            let Some(receipt) = self.find(signed, feedback, tenant, &mut looks)? else {
                continue;
            };
            if about.is_some() && self.is_over(&receipt) {
                continue;
            }
            heard.matched += 1;
            let consequence = self.consequence(feedback, &receipt);
            told_of.push((receipt, consequence, self.learner.now()));
        }
        // What came to an address that we signed is the far end's word.
        let teller = match (about, tenant) {
            (None, Some(_)) => Teller::Tenant,
            _ => Teller::FarEnd,
        };
        heard.suppressed = self.act(told_of, Vec::new(), teller)?;
        Ok(heard)
    }

    fn tales(&self, tales: &[Tale], tenant: Option<&str>) -> Result<Hearsay, HearingError> {
        let mut heard = Hearsay::default();
        let (mut told_of, mut learnt) = (Vec::new(), Vec::new());
        for tale in tales {
            heard.read += 1;
            let consequence = of_tale(tale);
            let receipt = match tale.message {
                Some(id) => self.receipt(id, tenant)?,
                None => None,
            };
            // The receipt of a message may be gone when somebody opts out.
            if let Some(receipt) = receipt {
                heard.matched += 1;
                told_of.push((receipt, consequence, tale.at));
            } else if let (Some(recipient), Some(reason)) = (&tale.recipient, consequence.reason) {
                heard.matched += 1;
                learnt.push(Suppression {
                    tenant: tenant.unwrap_or(&tale.tenant).to_owned(),
                    recipient: canonical(recipient),
                    reason,
                    is_held: false,
                    since: tale.at,
                    source: consequence.source.to_owned(),
                    destination: String::new(),
                    message: String::new(),
                    detail: detail(&tale.reason),
                });
            }
        }
        let teller = match tenant {
            Some(_) => Teller::Tenant,
            None => Teller::FarEnd,
        };
        heard.suppressed = self.act(told_of, learnt, teller)?;
        Ok(heard)
    }
}

/// What of a report counts. One that came to the return address of a message
/// is about that message, which had one recipient.
fn told(report: &Report, is_signed: bool) -> impl Iterator<Item = &Feedback> {
    let most = if is_signed { 1 } else { usize::MAX };
    report.feedback.iter().take(most)
}

impl Desk {
    fn find(
        &self,
        signed: Option<MessageId>,
        feedback: &Feedback,
        tenant: Option<&str>,
        looks: &mut usize,
    ) -> Result<Option<Receipt>, HearingError> {
        match signed {
            Some(id) => self.receipt(id, tenant),
            None => lookup::by_message_id(&*self.receipts, feedback, tenant, looks)
                .map_err(|error| HearingError(error.to_string())),
        }
    }

    /// The receipt of a message, if it is one of this tenant.
    fn receipt(
        &self,
        id: MessageId,
        tenant: Option<&str>,
    ) -> Result<Option<Receipt>, HearingError> {
        let receipt = self.receipts.get(id.seq());
        let receipt = receipt.map_err(|error| HearingError(error.to_string()))?;
        let is_it = |it: &Receipt| MessageId::new(it.accepted_at, it.seq) == id;
        let is_theirs = |it: &Receipt| tenant.is_none_or(|tenant| it.key.tenant.as_str() == tenant);
        Ok(receipt.filter(|it| is_it(it) && is_theirs(it)))
    }

    /// Whether it is too late for a report by the return address.
    fn is_over(&self, receipt: &Receipt) -> bool {
        let passed = self.learner.now().0.saturating_sub(receipt.settled_at.0);
        u64::try_from(passed).is_ok_and(|passed| passed > HEARD_FOR.0)
    }

    fn consequence(&self, feedback: &Feedback, receipt: &Receipt) -> Consequence {
        let none = Consequence {
            what: None,
            counter: None,
            reason: None,
            source: "dsn",
            reply: None,
            said: String::new(),
        };
        match feedback.kind {
            Kind::Bounce => {
                let reply = feedback.reply();
                let outcome = reply.as_ref().map(|reply| {
                    self.rules
                        .classify(Some(&receipt.key.destination), reply, 1)
                });
                let is_hard = outcome.is_some_and(|outcome| is_hard(feedback.status, &outcome))
                    && is_about_recipient(feedback, receipt);
                Consequence {
                    what: Some(What::Bounce),
                    counter: Some(Counter::Bounced),
                    reason: is_hard.then_some(Reason::HardBounce),
                    said: feedback.diagnostic.clone().unwrap_or_default(),
                    reply,
                    ..none
                }
            }
            Kind::Complaint | Kind::OptOut => {
                let word = feedback.feedback_type.as_deref().unwrap_or("complaint");
                let is_complaint = feedback.kind == Kind::Complaint;
                let (what, begins) = match is_complaint {
                    true => (What::Complaint, "complaint"),
                    false => (What::OptOut, OPT_OUT),
                };
                let said = format!("{begins}: {word}");
                Consequence {
                    what: Some(what),
                    counter: is_complaint.then_some(Counter::Complained),
                    reason: Some(match is_complaint {
                        true => Reason::Complaint,
                        false => Reason::OptOut,
                    }),
                    source: "arf",
                    reply: Some(Reply::said(Stage::Data, 250, &said)),
                    said,
                }
            }
            Kind::Delay
            | Kind::Delivered
            | Kind::NotSpam
            | Kind::AuthenticationFailure
            | Kind::AutoReply
            | Kind::Other => none,
        }
    }

    /// Puts on the list what follows, with more that is known already, and then
    /// counts: whoever hears that it failed tells it again. What was told before
    /// changes nothing. How many are new on the list.
    fn act(
        &self,
        told_of: Vec<(Receipt, Consequence, Wall)>,
        mut entries: Vec<Suppression>,
        teller: Teller,
    ) -> Result<u64, HearingError> {
        let mut claimed = Vec::new();
        for (receipt, told, at) in told_of {
            let Some(what) = told.what else { continue };
            if self.once.claim(&receipt, what) {
                entries.extend(suppression(&receipt, &told, at));
                claimed.push((receipt, what, told));
            }
        }
        match self.learner.learn(entries) {
            Ok(put) => {
                for (receipt, _, told) in claimed {
                    self.count(receipt, told, teller);
                }
                Ok(put.added)
            }
            Err(error) => {
                for (receipt, what, _) in claimed {
                    self.once.release(receipt.seq, what);
                }
                Err(HearingError(error.to_string()))
            }
        }
    }

    /// Counts, and notes it at the message.
    fn count(&self, receipt: Receipt, told: Consequence, teller: Teller) {
        if let Some(counter) = told.counter {
            let account = receipt.account.as_deref().map(Name::from);
            let key = receipt.key.clone();
            self.control.heard(key, account, counter, teller);
        }
        if let Some(reply) = told.reply {
            self.control.feedback(receipt.key, receipt.seq, reply);
        }
    }
}

/// What goes on the list.
fn suppression(receipt: &Receipt, told: &Consequence, at: Wall) -> Option<Suppression> {
    let envelope = Envelope::from_bytes(&receipt.envelope).ok()?;
    Some(Suppression {
        tenant: receipt.key.tenant.as_str().to_owned(),
        recipient: canonical(&envelope.to),
        reason: told.reason?,
        is_held: false,
        since: at,
        source: told.source.to_owned(),
        destination: receipt.key.destination.to_string(),
        message: MessageId::new(receipt.accepted_at, receipt.seq).to_string(),
        detail: detail(&told.said),
    })
}

/// Whether a report speaks of the mailbox that we wrote to. One of somebody
/// behind it, whom it forwards to or who is on its list, says nothing of it.
fn is_about_recipient(feedback: &Feedback, receipt: &Receipt) -> bool {
    let Some(named) = feedback.recipient.as_deref() else {
        return true;
    };
    let envelope = Envelope::from_bytes(&receipt.envelope);
    envelope.is_ok_and(|envelope| canonical(&envelope.to) == canonical(named))
}

/// Whether a bounce says that there is no such mailbox. A block with such digits
/// is none.
fn is_hard(status: Option<Enhanced>, outcome: &Outcome) -> bool {
    let says_so = matches!(status, Some(Enhanced(5, 1, 1 | 2 | 3 | 6 | 10)));
    outcome.suppresses() || (says_so && !outcome.is_about_us())
}

fn of_tale(tale: &Tale) -> Consequence {
    let (what, counter, reason) = match tale.told {
        Told::Bounce => {
            let (counter, reason) = (Counter::Bounced, Reason::HardBounce);
            (What::Bounce, Some(counter), Some(reason))
        }
        Told::Complaint => {
            let (counter, reason) = (Counter::Complained, Reason::Complaint);
            (What::Complaint, Some(counter), Some(reason))
        }
        Told::Open => (What::Open, Some(Counter::Opened), None),
        Told::Click => (What::Click, Some(Counter::Clicked), None),
        Told::OptOut => (What::OptOut, None, Some(Reason::OptOut)),
    };
    let said = detail(&format!("{}: {}", tale.told.as_str(), tale.reason));
    let reply = match tale.told {
        Told::Bounce => Some(Reply::said(Stage::Data, 550, &said)),
        Told::Complaint | Told::OptOut => Some(Reply::said(Stage::Data, 250, &said)),
        // There may be many of them: they are counted, not written down.
        Told::Open | Told::Click => None,
    };
    Consequence {
        what: Some(what),
        counter,
        reason,
        source: "events",
        reply,
        said,
    }
}
