//! From a parcel to a mail, on a thread that may wait for a disk.

use std::borrow::Cow;
use std::sync::Arc;

use outflow_core::reply::{Reply, Stage};
use outflow_mail::address::Address;
use outflow_mail::{Can, Keyring, Mail, compose};
use outflow_ports::letter::Envelope;
use outflow_ports::parcel::ParcelRef;

/// The domain that a message goes to.
pub(crate) async fn domain_of(parcel: Option<ParcelRef>) -> Result<String, Reply> {
    let Some(parcel) = parcel else {
        return Err(unread("the content of the message is not there".to_owned()));
    };
    let work = tokio::task::spawn_blocking(move || {
        let envelope = parcel.read_envelope();
        let envelope = envelope.map_err(|error| unread(error.to_string()))?;
        let envelope =
            Envelope::from_bytes(&envelope).map_err(|error| never(&error.to_string()))?;
        let recipient = Address::parse(&envelope.to).map_err(|error| never(&error.to_string()))?;
        Ok(recipient.domain().to_owned())
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
) -> Result<Mail, Reply> {
    let Some(parcel) = parcel else {
        return Err(unread("the content of the message is not there".to_owned()));
    };
    let work = tokio::task::spawn_blocking(move || made(&parcel, can, &keys));
    work.await
        .unwrap_or_else(|_| Err(unread("the message could not be composed".to_owned())))
}

fn made(parcel: &ParcelRef, can: Can, keys: &Keyring) -> Result<Mail, Reply> {
    let parcel = parcel.read().map_err(|error| unread(error.to_string()))?;
    let (envelope, content) = parcel.open().map_err(|error| never(&error.to_string()))?;
    let mut mail = compose(&envelope, &content, can).map_err(|error| never(&error.to_string()))?;
    // An unsigned mail would harm the domain more than a late one.
    keys.sign(&mut mail)
        .map_err(|error| unread(error.to_string()))?;
    Ok(mail)
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
