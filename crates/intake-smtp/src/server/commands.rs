//! What each command does.

use outflow_mail::Address;
use smtp_proto::{
    AUTH_LOGIN, AUTH_PLAIN, Error, MAIL_BODY_7BIT, MAIL_BODY_8BITMIME, MAIL_SMTPUTF8, MailFrom,
    RcptTo, Request,
};
use std::borrow::Cow;

use super::body::Chunk;
use super::data::DataReader;
use super::login::Step;
use super::reply::Reply;
use super::returns::Returned;
use super::transaction::Transaction;
use super::{Output, Rules, Session, State, overloaded, too_large};

/// The most digits of the size of a chunk.
const SIZE_DIGITS_MAX: usize = 15;

impl Session {
    pub(super) fn on_command(&mut self, text: &str, line: &[u8]) {
        self.commands += 1;
        self.steps += 1;
        if self.commands > self.rules.commands_max {
            let text = "too many commands on one connection: open another";
            return self.bye(Reply::new(421, "4.7.0", text));
        }
        // How many bytes follow is not left to a lenient parser: two readings
        // of it are two messages.
        if text
            .get(..4)
            .is_some_and(|verb| verb.eq_ignore_ascii_case("BDAT"))
        {
            return self.bdat(text);
        }
        match Request::parse(&mut line.iter()) {
            Ok(request) => self.on_request(request),
            Err(error) => self.refuse(&unread(error)),
        }
    }

    fn on_request(&mut self, request: Request<Cow<'_, str>>) {
        match request {
            Request::Ehlo { .. } => self.ehlo(),
            Request::Helo { .. } => {
                self.transaction = None;
                self.has_greeted = true;
                self.say(&Reply::new(250, "", self.rules.hostname.clone()));
            }
            Request::StartTls => self.starttls(),
            Request::Auth {
                mechanism,
                initial_response,
            } => self.auth(mechanism, &initial_response),
            Request::Mail { from } => self.mail(&from),
            Request::Rcpt { to } => self.rcpt(&to),
            Request::Data => self.data(),
            Request::Rset => {
                self.transaction = None;
                self.say(&Reply::new(250, "2.0.0", "Ok"));
            }
            Request::Noop { .. } => self.say(&Reply::new(250, "2.0.0", "Ok")),
            Request::Help { .. } => {
                let text = "Outflow takes mail here: EHLO, STARTTLS, AUTH, MAIL, RCPT, DATA";
                self.say(&Reply::new(214, "2.0.0", text));
            }
            Request::Vrfy { .. } => {
                let text = "cannot say, but will take the message";
                self.say(&Reply::new(252, "2.1.5", text));
            }
            Request::Quit => self.bye(Reply::new(221, "2.0.0", "Bye")),
            Request::Lhlo { .. }
            | Request::Expn { .. }
            | Request::Etrn { .. }
            | Request::Atrn { .. }
            | Request::Burl { .. }
            | Request::Bdat { .. } => {
                self.refuse(&Reply::new(502, "5.5.1", "the command is not implemented"));
            }
        }
    }

    /// Whether a token may be shown.
    fn may_show_token(&self) -> bool {
        self.is_protected || self.line.is_trusted
    }

    fn ehlo(&mut self) {
        self.transaction = None;
        self.has_greeted = true;
        let mut offers = vec![
            self.rules.hostname.clone(),
            "PIPELINING".to_owned(),
            format!("SIZE {}", self.rules.message_bytes_max),
        ];
        if self.line.can_tls && !self.is_protected {
            offers.push("STARTTLS".to_owned());
        }
        if self.may_show_token() {
            offers.push("AUTH PLAIN LOGIN".to_owned());
        }
        let plain = ["8BITMIME", "SMTPUTF8", "CHUNKING"];
        offers.extend(plain.map(str::to_owned));
        for offer in offers {
            self.replies.extend_from_slice(b"250-");
            self.replies.extend_from_slice(offer.as_bytes());
            self.replies.extend_from_slice(b"\r\n");
        }
        self.replies
            .extend_from_slice(b"250 ENHANCEDSTATUSCODES\r\n");
    }

    fn starttls(&mut self) {
        if self.is_protected || !self.line.can_tls {
            let text = "STARTTLS is not offered";
            return self.refuse(&Reply::new(502, "5.5.1", text));
        }
        if self.transaction.is_some() {
            return self.out_of_turn("STARTTLS does not go inside a message");
        }
        self.say(&Reply::new(220, "2.0.0", "Ready to start TLS"));
        self.state = State::WaitsForTls;
        self.output = Some(Output::StartTls);
    }

    fn auth(&mut self, mechanism: u64, initial: &str) {
        if !self.has_greeted || self.is_admitted || self.transaction.is_some() {
            return self.out_of_turn("AUTH goes once, behind EHLO");
        }
        if !self.may_show_token() {
            let text = "no token over an open line: STARTTLS first";
            return self.refuse(&Reply::new(538, "5.7.11", text));
        }
        let step = match mechanism {
            AUTH_PLAIN => Step::Plain,
            AUTH_LOGIN => Step::User,
            _ => {
                let text = "this mechanism is not offered: use PLAIN or LOGIN";
                return self.refuse(&Reply::new(504, "5.5.4", text));
            }
        };
        match initial {
            "" => self.on_answer(super::Next::Ask(step)),
            text => self.on_answer(step.answer(text)),
        }
    }

    fn mail(&mut self, from: &MailFrom<Cow<'_, str>>) {
        if !self.is_admitted && self.rules.returns.is_none() {
            return self.refuse(&no_token());
        }
        if !self.has_greeted || self.transaction.is_some() {
            return self.out_of_turn("MAIL goes behind EHLO, once for each message");
        }
        if self.is_overloaded {
            return self.refuse(&overloaded());
        }
        if from.size > self.rules.message_bytes_max {
            return self.refuse(&too_large(self.rules.message_bytes_max));
        }
        let known = MAIL_BODY_7BIT | MAIL_BODY_8BITMIME | MAIL_SMTPUTF8;
        let is_plain = from.flags & !known == 0
            && from.env_id.is_none()
            && from.trans_id.is_none()
            && from.solicit.is_none()
            && from.mtrk.is_none()
            && (from.by, from.hold_for, from.hold_until, from.mt_priority) == (0, 0, 0, 0);
        if !is_plain {
            return self.refuse(&not_offered());
        }
        let sender = match from.address.as_ref() {
            "" => None,
            text => match Address::parse(text) {
                Ok(address) => Some(address),
                Err(wrong) => return self.refuse(&Reply::new(553, "5.1.7", wrong.to_string())),
            },
        };
        self.transaction = Some(Transaction::new(sender, !self.is_admitted));
        self.say(&Reply::new(250, "2.1.0", "Ok"));
    }

    fn rcpt(&mut self, to: &RcptTo<Cow<'_, str>>) {
        let Some(transaction) = &mut self.transaction else {
            return self.out_of_turn("RCPT goes behind MAIL");
        };
        if transaction.is_chunked {
            return self.out_of_turn("RCPT goes before the data");
        }
        // A report is about one message.
        let max = match transaction.is_report {
            true => 1,
            false => self.rules.recipients_max,
        };
        if transaction.recipients.len() >= max {
            let text = format!("too many recipients: at most {max} for each message");
            return self.refuse(&Reply::new(452, "4.5.3", text));
        }
        if let Some(refusal) = refused_without_token(&self.rules, transaction, &to.address) {
            return self.refuse(&refusal);
        }
        if to.flags != 0 || to.orcpt.is_some() || to.rrvs != 0 {
            return self.refuse(&not_offered());
        }
        let refusal = match Address::parse(&to.address) {
            Ok(address) if address.domain().starts_with('[') => {
                let text = "the domain of an address is a name, not the number of a host";
                Reply::new(553, "5.1.2", text)
            }
            Ok(address) => {
                transaction.recipients.push(address);
                self.commands = self.commands.saturating_sub(1);
                return self.say(&Reply::new(250, "2.1.5", "Ok"));
            }
            Err(wrong) => Reply::new(553, "5.1.3", wrong.to_string()),
        };
        self.refuse(&refusal);
    }

    fn data(&mut self) {
        let Some(transaction) = &self.transaction else {
            return self.out_of_turn("DATA goes behind MAIL and RCPT");
        };
        if transaction.is_chunked {
            return self.out_of_turn("DATA does not go with BDAT");
        }
        if transaction.recipients.is_empty() {
            return self.refuse(&Reply::new(554, "5.5.1", "no valid recipients"));
        }
        if self.is_overloaded {
            self.transaction = None;
            return self.refuse(&overloaded());
        }
        self.state = State::Data(DataReader::default());
        self.say(&Reply::new(354, "", "End data with <CR><LF>.<CR><LF>"));
    }

    fn bdat(&mut self, text: &str) {
        let Some((size, is_last)) = chunk(text) else {
            // Where the chunk ends, and commands go on, nobody knows.
            let text = "BDAT goes as in BDAT 1000 or BDAT 1000 LAST";
            return self.bye(Reply::new(501, "5.5.4", text));
        };
        let max = self.rules.message_bytes_max;
        let refusal = match &self.transaction {
            None => Some(Reply::new(503, "5.5.1", "BDAT goes behind MAIL and RCPT")),
            Some(transaction) if transaction.is_spoilt => {
                let text = "a chunk before this one was refused: RSET";
                Some(Reply::new(503, "5.5.1", text))
            }
            Some(transaction) if transaction.recipients.is_empty() => {
                Some(Reply::new(554, "5.5.1", "no valid recipients"))
            }
            Some(transaction) if size > max.saturating_sub(transaction.came) => {
                Some(too_large(max))
            }
            Some(transaction) if self.is_overloaded && !transaction.is_chunked => {
                Some(overloaded())
            }
            Some(_) => None,
        };
        if let Some(refusal) = &refusal
            && (size > max || !self.is_admitted)
        {
            // Not worth reading to its end.
            return self.bye(refusal.clone());
        }
        if let Some(transaction) = &mut self.transaction {
            transaction.is_chunked = true;
            if refusal.is_none() {
                transaction.bytes.reserve(size.min(64 << 10));
            }
        }
        self.state = State::Chunk(Chunk {
            size,
            left: size,
            is_last,
            refusal,
        });
        if size == 0 {
            self.end_chunk();
        }
    }

    fn out_of_turn(&mut self, text: &'static str) {
        self.refuse(&Reply::new(503, "5.5.1", text));
    }
}

/// Why somebody without a token cannot send to an address, if he cannot.
fn refused_without_token(rules: &Rules, transaction: &Transaction, to: &str) -> Option<Reply> {
    if !transaction.is_report {
        return None;
    }
    match rules.returns.as_ref().map(|returns| returns.look(to)) {
        Some(Returned::Ours) => None,
        Some(Returned::Forged) => {
            let text = "no message was sent with this return address";
            Some(Reply::new(550, "5.1.1", text))
        }
        Some(Returned::Elsewhere) | None => Some(no_token()),
    }
}

fn no_token() -> Reply {
    let text = "Authentication required: the password is a submit token";
    Reply::new(530, "5.7.0", text)
}

/// The size of a chunk, and whether it is the last.
fn chunk(text: &str) -> Option<(usize, bool)> {
    let mut words = text.split(' ');
    let (_, size, last) = (words.next()?, words.next()?, words.next());
    let is_number = (1..=SIZE_DIGITS_MAX).contains(&size.len())
        && size.bytes().all(|byte| byte.is_ascii_digit());
    let is_last = match last {
        None => false,
        Some(last) if last.eq_ignore_ascii_case("LAST") => true,
        Some(_) => return None,
    };
    let is_all = words.next().is_none() && text.as_bytes().get(4) == Some(&b' ');
    let size = size.parse().ok()?;
    (is_number && is_all).then_some((size, is_last))
}

fn not_offered() -> Reply {
    Reply::new(555, "5.5.4", "this parameter is not offered")
}

/// What to say to a line that is no command.
fn unread(error: Error) -> Reply {
    match error {
        Error::UnknownCommand => Reply::new(500, "5.5.1", "the command is not known"),
        Error::InvalidSenderAddress => Reply::new(501, "5.1.7", "the sender is no address"),
        Error::InvalidRecipientAddress => Reply::new(501, "5.1.3", "the recipient is no address"),
        Error::SyntaxError { syntax } => Reply::new(501, "5.5.4", format!("write {syntax}")),
        Error::InvalidParameter { param } => {
            Reply::new(501, "5.5.4", format!("the parameter {param} is not valid"))
        }
        Error::UnsupportedParameter { .. } => not_offered(),
        Error::NeedsMoreData { .. } | Error::ResponseTooLong | Error::InvalidResponse { .. } => {
            Reply::new(501, "5.5.2", "the command cannot be read")
        }
    }
}
