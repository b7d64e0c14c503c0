//! Messages as they come in, by DATA or in chunks, up to their end.

use super::reply::Reply;
use super::transaction::Handed;
use super::{Output, Session, State, overloaded, too_large};

/// A chunk of BDAT.
#[derive(Debug)]
pub(super) struct Chunk {
    pub size: usize,
    pub left: usize,
    pub is_last: bool,
    /// What will be said, if it is not taken.
    pub refusal: Option<Reply>,
}

impl Session {
    pub(super) fn take_data<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let bytes_max = self.rules.message_bytes_max;
        let (State::Data(reader), Some(transaction)) = (&mut self.state, &mut self.transaction)
        else {
            self.state = State::Over;
            return &[];
        };
        let rest = reader.read(bytes, &mut transaction.bytes);
        let came = bytes.len() - rest.map_or(0, <[u8]>::len);
        transaction.note(came, bytes_max);
        let (is_smuggled, came) = (reader.is_smuggled(), transaction.came);
        match rest {
            None if came / 2 > bytes_max => {
                self.bye(too_large(bytes_max));
                &[]
            }
            None => &[],
            Some(rest) => {
                self.state = State::Command;
                if is_smuggled {
                    self.transaction = None;
                    let text = "a line with only a dot must end, and follow a line that ends, \
                                with CR LF";
                    self.refuse(&Reply::new(554, "5.5.2", text));
                    self.after_data();
                } else {
                    self.hand_over();
                }
                rest
            }
        }
    }

    pub(super) fn take_chunk<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let State::Chunk(chunk) = &mut self.state else {
            return &[];
        };
        let (part, rest) = bytes.split_at(chunk.left.min(bytes.len()));
        chunk.left -= part.len();
        if chunk.refusal.is_none()
            && let Some(transaction) = &mut self.transaction
        {
            transaction.bytes.extend_from_slice(part);
            transaction.note(part.len(), self.rules.message_bytes_max);
        }
        if chunk.left == 0 {
            self.end_chunk();
        }
        rest
    }

    pub(super) fn end_chunk(&mut self) {
        let State::Chunk(chunk) = std::mem::replace(&mut self.state, State::Command) else {
            return;
        };
        self.steps += 1;
        match chunk.refusal {
            Some(refusal) => {
                match &mut self.transaction {
                    Some(_) if chunk.is_last => self.transaction = None,
                    Some(transaction) => {
                        transaction.is_spoilt = true;
                        transaction.bytes = Vec::new();
                    }
                    None => {}
                }
                self.refuse(&refusal);
                self.after_data();
            }
            None if chunk.is_last => self.hand_over(),
            None => {
                let text = format!("{} octets received", chunk.size);
                self.say(&Reply::new(250, "2.0.0", text));
                self.after_data();
            }
        }
    }

    /// A message came whole.
    fn hand_over(&mut self) {
        self.steps += 1;
        let Some(transaction) = self.transaction.take() else {
            return;
        };
        let refusal = if transaction.came > self.rules.message_bytes_max {
            Some(too_large(self.rules.message_bytes_max))
        } else if transaction.is_shed {
            Some(overloaded())
        } else {
            None
        };
        if let Some(refusal) = refusal {
            self.refuse(&refusal);
            return self.after_data();
        }
        self.state = State::WaitsForStore;
        self.output = Some(Output::Deliver(Box::new(Handed {
            sender: transaction.sender,
            recipients: transaction.recipients,
            bytes: transaction.bytes,
            is_protected: self.is_protected,
            is_report: transaction.is_report,
        })));
    }

    /// The data of a message, or a chunk of it, was answered.
    fn after_data(&mut self) {
        if self.is_closing {
            self.farewell();
        }
    }
}
