//! One message: MAIL, RCPT, and DATA or BDAT.
//!
//! With PIPELINING all commands go at once, and with CHUNKING a small message
//! goes with them, so that it takes a single round trip. The first refusal is
//! the answer; what the server says to the commands behind it only ends them.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::Duration;

use outflow_core::reply::{Reply, Stage};
use outflow_mail::{Address, Mail, Utf8};

use super::offers::Offers;
use super::reply::SmtpReply;
use super::timeouts::Timeouts;

/// The largest message that goes along with its commands: it is sent in vain if
/// they are refused.
const ALONG_BYTES_MAX: usize = 64 << 10;

/// Which answer comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    Reset,
    Sender,
    Recipient,
    /// The permission to send the message.
    Data,
    /// The verdict on the message.
    Verdict,
    /// The verdict on an empty message, sent because a server gave permission
    /// after it had refused.
    Nothing,
}

impl Awaited {
    const fn stage(self) -> Stage {
        match self {
            Self::Reset | Self::Sender => Stage::Sender,
            Self::Recipient => Stage::Recipient,
            Self::Data | Self::Verdict | Self::Nothing => Stage::Data,
        }
    }

    const fn command(self) -> &'static str {
        match self {
            Self::Reset => "RSET",
            Self::Sender => "MAIL",
            Self::Recipient => "RCPT",
            Self::Data => "DATA",
            Self::Verdict | Self::Nothing => "the message",
        }
    }
}

/// What is to be done after a reply.
#[derive(Debug)]
pub(super) enum Next {
    Wait,
    Write(Vec<u8>),
    /// It ended, and the session lives; if it is not clean, it needs RSET.
    Done {
        reply: Reply,
        is_clean: bool,
    },
    /// It ended, and so does the session.
    Over(Reply),
}

/// One message on its way.
#[derive(Debug)]
pub(super) struct Transaction {
    /// Commands that were not sent yet, each with what it is answered by.
    unsent: VecDeque<(Awaited, Vec<u8>)>,
    /// Answers that are to come.
    awaited: VecDeque<Awaited>,
    /// The message after DATA, with its final dot.
    after_data: Vec<u8>,
    refusal: Option<Reply>,
    /// Whether the last byte of the message was given out, and written.
    is_out: bool,
    is_written: bool,
}

impl Transaction {
    /// The transaction and its first bytes; or a refusal, if the server said
    /// before that it does not take such a message.
    pub fn begin(
        mail: Mail,
        offers: &Offers,
        chunking: bool,
        reset: bool,
    ) -> Result<(Self, Vec<u8>), Reply> {
        check(&mail, offers)?;
        let mut commands = VecDeque::new();
        if reset {
            commands.push_back((Awaited::Reset, b"RSET\r\n".to_vec()));
        }
        commands.push_back((Awaited::Sender, sender_line(&mail, offers)));
        let recipient = format!("RCPT TO:<{}>\r\n", mail.recipient);
        commands.push_back((Awaited::Recipient, recipient.into_bytes()));
        let chunked = chunking && offers.chunking;
        let mut after_data = Vec::new();
        let goes_along = chunked && mail.bytes.len() <= ALONG_BYTES_MAX;
        if chunked {
            let mut chunk = format!("BDAT {} LAST\r\n", mail.bytes.len()).into_bytes();
            chunk.extend_from_slice(&mail.bytes);
            commands.push_back((Awaited::Verdict, chunk));
        } else {
            after_data = dotted(&mail.bytes);
            commands.push_back((Awaited::Data, b"DATA\r\n".to_vec()));
        }
        let mut transaction = Self {
            unsent: commands,
            awaited: VecDeque::new(),
            after_data,
            refusal: None,
            is_out: false,
            is_written: false,
        };
        let count = transaction.unsent.len();
        let together = match (offers.pipelining, chunked && !goes_along) {
            (true, false) => count,
            (true, true) => count - 1,
            (false, _) => 1,
        };
        let mut bytes = Vec::new();
        for _ in 0..together {
            bytes.append(&mut transaction.send_one());
        }
        Ok((transaction, bytes))
    }

    fn send_one(&mut self) -> Vec<u8> {
        let Some((awaited, bytes)) = self.unsent.pop_front() else {
            return Vec::new();
        };
        self.is_out |= awaited == Awaited::Verdict;
        self.awaited.push_back(awaited);
        bytes
    }

    /// All that was given out is written.
    pub fn on_written(&mut self) {
        self.is_written = self.is_out;
    }

    pub fn timeout(&self, times: &Timeouts) -> Duration {
        if self.is_out && !self.is_written {
            return times.block;
        }
        match self.awaited.front() {
            Some(Awaited::Reset | Awaited::Sender) | None => times.sender,
            Some(Awaited::Recipient) => times.recipient,
            Some(Awaited::Data) => times.data,
            Some(Awaited::Verdict | Awaited::Nothing) => times.verdict,
        }
    }

    pub fn on_reply(&mut self, reply: &SmtpReply) -> Next {
        let Some(awaited) = self.awaited.pop_front() else {
            return Next::Over(self.lost("the server answered more than it was asked", None));
        };
        let is_yes = match awaited {
            Awaited::Data => reply.code == 354,
            _ => (200..300).contains(&reply.code),
        };
        let is_no = reply.code >= 400;
        if reply.code == 421 {
            // Whatever it was about, the connection ends.
            return Next::Over(self.refusal.take().unwrap_or(reply.said(awaited.stage())));
        }
        if !is_yes && !is_no {
            self.awaited.push_front(awaited);
            let (code, command) = (reply.code, awaited.command());
            let why = format!("the server answered {code} to {command}");
            return Next::Over(self.lost(&why, None));
        }
        match awaited {
            Awaited::Reset if is_no => {
                self.awaited.push_front(awaited);
                Next::Over(self.lost("the server does not take RSET", None))
            }
            Awaited::Data if is_yes => self.permitted(),
            Awaited::Verdict if !self.is_written && self.refusal.is_none() => {
                // It judged what it had not seen to the end. A refusal may be
                // meant; but the rest of the message is no SMTP command.
                Next::Over(match is_no {
                    true => reply.said(Stage::Data),
                    false => network(Stage::Data, "the server answered before the end"),
                })
            }
            Awaited::Verdict if is_yes => {
                let accepted = reply.said(Stage::Data);
                let is_clean = self.refusal.is_none();
                self.done(self.refusal.clone().unwrap_or(accepted), is_clean)
            }
            Awaited::Nothing => self.go_on(),
            _ if is_no => {
                self.refusal
                    .get_or_insert_with(|| reply.said(awaited.stage()));
                self.unsent.clear();
                self.go_on()
            }
            _ => self.go_on(),
        }
    }

    /// The message may be sent.
    fn permitted(&mut self) -> Next {
        if self.refusal.is_some() {
            // There is nobody to send it to.
            self.awaited.push_back(Awaited::Nothing);
            return Next::Write(b".\r\n".to_vec());
        }
        self.awaited.push_back(Awaited::Verdict);
        self.is_out = true;
        Next::Write(std::mem::take(&mut self.after_data))
    }

    fn go_on(&mut self) -> Next {
        if !self.awaited.is_empty() {
            return Next::Wait;
        }
        if !self.unsent.is_empty() {
            return Next::Write(self.send_one());
        }
        match self.refusal.take() {
            Some(refusal) => self.done(refusal, false),
            None => Next::Over(network(Stage::Data, "the server ended the transaction")),
        }
    }

    fn done(&self, reply: Reply, is_clean: bool) -> Next {
        Next::Done { reply, is_clean }
    }

    /// The connection is lost: whether the message may have been taken depends
    /// on whether its last byte was written. The verdict on it is known once the
    /// server has begun to say it.
    pub fn lost(&self, why: &str, begun: Option<&SmtpReply>) -> Reply {
        if let Some(refusal) = &self.refusal {
            return refusal.clone();
        }
        if self.is_written {
            let is_verdict = self.awaited.front() == Some(&Awaited::Verdict);
            return match begun {
                Some(reply) if is_verdict && reply.code / 100 != 3 => reply.said(Stage::Data),
                _ => Reply::Uncertain,
            };
        }
        let stage = self.awaited.front().map_or(Stage::Data, |it| it.stage());
        network(stage, why)
    }
}

fn network(stage: Stage, text: &str) -> Reply {
    let text = Cow::Owned(text.to_owned());
    Reply::Network { stage, text }
}

/// What the server said that it does not take.
fn check(mail: &Mail, offers: &Offers) -> Result<(), Reply> {
    let bytes = mail.bytes.len();
    if let Some(most) = offers.size_max
        && bytes as u64 > most
    {
        let text = format!("5.3.4 not sent: {bytes} bytes, and the server takes {most}");
        return Err(Reply::said(Stage::Sender, 552, &text));
    }
    if mail.utf8 == Utf8::Required && !offers.utf8 {
        let text = "5.6.7 not sent: an address is in UTF-8, which the server does not take";
        return Err(Reply::said(Stage::Sender, 553, text));
    }
    Ok(())
}

fn sender_line(mail: &Mail, offers: &Offers) -> Vec<u8> {
    let sender = mail.sender.as_ref().map_or("", Address::as_str);
    let mut line = format!("MAIL FROM:<{sender}>");
    if offers.size {
        line.push_str(&format!(" SIZE={}", mail.bytes.len()));
    }
    if mail.eight_bit && offers.eight_bit {
        line.push_str(" BODY=8BITMIME");
    }
    if mail.utf8 != Utf8::No && offers.utf8 {
        line.push_str(" SMTPUTF8");
    }
    line.push_str("\r\n");
    line.into_bytes()
}

/// The message with dots before lines that begin with one, and the final dot.
pub(super) fn dotted(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 64 + 8);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b".") {
            out.push(b'.');
        }
        out.extend_from_slice(line);
    }
    if !out.ends_with(b"\r\n") {
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b".\r\n");
    out
}
