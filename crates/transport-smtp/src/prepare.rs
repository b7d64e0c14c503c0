//! From a parcel to a mail: at once if it is small, in memory and not to be
//! signed, since handing it to another thread would take longer than the work;
//! else on a thread that may wait for a disk.
//!
//! A message on which this code itself fails is given up with what went wrong:
//! tried again, it would fail again, after every restart.

use std::any::Any;
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use outflow_core::reply::{Reply, Stage};
use outflow_mail::address::Address;
use outflow_mail::{Can, Keyring, Mail, compose};
use outflow_ports::letter::{Envelope, RETURN_FIELD};
use outflow_ports::parcel::{Parcel, ParcelError, ParcelRef};

/// By which addresses reports find a message.
#[derive(Debug)]
pub(crate) struct ReturnAddresses {
    /// The sender of the envelope, unless the message names one itself.
    pub sender: Address,
    /// What stands in the header.
    pub field: Address,
}

/// The domain that a message goes to.
pub(crate) async fn domain_of(parcel: Option<ParcelRef>) -> Result<String, Reply> {
    let Some(parcel) = parcel else {
        return Err(unread("the content of the message is not there".to_owned()));
    };
    let work = tokio::task::spawn_blocking(move || {
        or_given_up(|| {
            let envelope = parcel.read_envelope();
            let envelope = envelope.map_err(|error| unreadable(&error))?;
            let envelope =
                Envelope::from_bytes(&envelope).map_err(|error| never(&error.to_string()))?;
            let recipient =
                Address::parse(&envelope.to).map_err(|error| never(&error.to_string()))?;
            Ok(recipient.domain().to_owned())
        })
    });
    work.await
        .unwrap_or_else(|_| Err(unread("the message could not be read".to_owned())))
}

/// Reads, composes and signs. What cannot be read now may be later; what cannot
/// be composed never will.
pub(crate) async fn prepare(
    parcel: Option<ParcelRef>,
    can: Can,
    keys: Arc<Keyring>,
    return_to: Option<ReturnAddresses>,
) -> Result<Mail, Reply> {
    let Some(parcel) = parcel else {
        return Err(unread("the content of the message is not there".to_owned()));
    };
    if keys.is_empty()
        && let Some(parcel) = parcel.read_now()
    {
        return or_given_up(|| made(&parcel, can, &keys, return_to));
    }
    let work = tokio::task::spawn_blocking(move || {
        or_given_up(|| {
            let parcel = parcel.read().map_err(|error| unreadable(&error))?;
            made(&parcel, can, &keys, return_to)
        })
    });
    work.await
        .unwrap_or_else(|_| Err(unread("the message could not be composed".to_owned())))
}

fn made(
    parcel: &Parcel,
    can: Can,
    keys: &Keyring,
    return_to: Option<ReturnAddresses>,
) -> Result<Mail, Reply> {
    let (envelope, content) = parcel.open().map_err(|error| never(&error.to_string()))?;
    let mut mail = compose(&envelope, &content, can).map_err(|error| never(&error.to_string()))?;
    if let Some(return_to) = &return_to {
        let field = format!("{RETURN_FIELD}: {}\r\n", return_to.field.as_str());
        mail.bytes.splice(..0, field.into_bytes());
    }
    // Whoever names a return address wants to hear of bounces himself, and what
    // must not bounce has none.
    if envelope.return_path.is_none()
        && mail.sender.is_some()
        && let Some(return_to) = return_to
    {
        mail.sender = Some(return_to.sender);
    }
    // An unsigned mail would harm the domain more than a late one.
    keys.sign(&mut mail)
        .map_err(|error| unread(error.to_string()))?;
    Ok(mail)
}

/// What `work` makes of a message. If it panics, that message is given up; the
/// session and the others go on.
fn or_given_up<T>(work: impl FnOnce() -> Result<T, Reply>) -> Result<T, Reply> {
    // Nothing that it may leave half done outlives it.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let why = words_of(&*panic);
        Err(never(&format!("the message cannot be handled: {why}")))
    })
}

fn words_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no reason was given")
}

/// Not sent: the content is not there now, or never will be.
fn unreadable(error: &ParcelError) -> Reply {
    match error {
        ParcelError::Unread(_) => unread(error.to_string()),
        ParcelError::Damaged(_) => Reply::Damaged {
            text: Cow::Owned(error.to_string()),
        },
    }
}

/// Not sent, and worth another try.
fn unread(text: String) -> Reply {
    let (stage, text) = (Stage::Sender, Cow::Owned(text));
    Reply::Network { stage, text }
}

/// Not sent, and not worth another try.
fn never(text: &str) -> Reply {
    Reply::said(Stage::Data, 554, &format!("5.6.0 not sent: {text}"))
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use outflow_ports::letter::Content;
    use outflow_ports::parcel::ParcelSource;

    use super::*;

    /// A parcel that is in memory; whoever would wait for it fails.
    struct InMemory {
        return_path: Option<String>,
    }

    impl ParcelSource for InMemory {
        fn read(&self, _: u64, _: u64) -> Result<Parcel, ParcelError> {
            Err(ParcelError::Unread(
                "somebody waited for the disk".to_owned(),
            ))
        }

        fn read_now(&self, _: u64, _: u64) -> Option<Parcel> {
            let envelope = Envelope {
                to: "reader@example.com".to_owned(),
                from: "writer@example.org".to_owned(),
                return_path: self.return_path.clone(),
                ..Envelope::default()
            };
            let content = Content {
                message_id: "<1@example.org>".to_owned(),
                from: "writer@example.org".to_owned(),
                text: Some("Hello".to_owned()),
                ..Content::default()
            };
            Some(Parcel {
                envelope: envelope.to_bytes().into(),
                body: content.to_bytes().into(),
            })
        }
    }

    /// There is no executor here, so that another thread cannot be asked.
    fn at_once(return_path: Option<&str>) -> Mail {
        let return_path = return_path.map(str::to_owned);
        let parcel = ParcelRef::new(Arc::new(InMemory { return_path }), 0, 0);
        let can = Can { eight_bit: true };
        let return_to = ReturnAddresses {
            sender: Address::parse("bounce+1@example.net").unwrap(),
            field: Address::parse("report+1@example.net").unwrap(),
        };
        let work = pin!(prepare(Some(parcel), can, Arc::default(), Some(return_to)));
        let done = work.poll(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(Ok(mail)) = done else {
            panic!("it waits, or failed: {done:?}");
        };
        mail
    }

    #[test]
    fn what_is_in_memory_is_composed_at_once() {
        let mail = at_once(None);
        assert_eq!(mail.recipient.as_str(), "reader@example.com");
        let sender = mail.sender.map(Address::into_string);
        assert_eq!(sender.as_deref(), Some("bounce+1@example.net"));
        assert!(mail.bytes.ends_with(b"\r\n\r\nHello\r\n"));
        // Whoever is shown the header does not learn where bounces are taken.
        let text = String::from_utf8(mail.bytes).unwrap();
        assert!(!text.contains("bounce+"), "{text}");
    }

    /// A parcel on which the code that reads it fails.
    struct Cursed {
        is_in_memory: bool,
    }

    impl ParcelSource for Cursed {
        fn read(&self, _: u64, _: u64) -> Result<Parcel, ParcelError> {
            panic!("index {} is out of bounds", 7)
        }

        fn read_now(&self, _: u64, _: u64) -> Option<Parcel> {
            self.is_in_memory.then(|| Parcel {
                envelope: b"{}".as_slice().into(),
                body: b"{}".as_slice().into(),
            })
        }
    }

    #[test]
    fn a_message_that_cannot_be_handled_is_given_up_with_its_cause() {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.unwrap();
        let cursed = |is_in_memory| ParcelRef::new(Arc::new(Cursed { is_in_memory }), 0, 0);
        let can = Can { eight_bit: true };
        let prepared = runtime.block_on(prepare(Some(cursed(false)), can, Arc::default(), None));
        let domain = runtime.block_on(domain_of(Some(cursed(false))));
        let read = runtime.block_on(prepare(Some(cursed(true)), can, Arc::default(), None));
        let refused = [prepared.map(|_| ()), domain.map(|_| ()), read.map(|_| ())];
        for (reply, why) in refused
            .into_iter()
            .zip(["bounds", "bounds", "missing field"])
        {
            let Err(Reply::Said { code, text, .. }) = reply else {
                panic!("it is tried again: {reply:?}");
            };
            assert_eq!(code, 554, "{text}");
            assert!(text.contains(why), "{text}");
        }
    }

    #[test]
    fn what_has_a_return_path_of_its_own_is_known_by_our_field() {
        let mail = at_once(Some("me@example.org"));
        let sender = mail.sender.map(Address::into_string);
        assert_eq!(sender.as_deref(), Some("me@example.org"));
        let field = b"X-Outflow: report+1@example.net\r\n";
        assert!(mail.bytes.starts_with(field));
    }
}
