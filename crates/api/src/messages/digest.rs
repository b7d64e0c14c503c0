//! A digest of all that was submitted, by which a repeated idempotency key with
//! other content is noticed. It outlives the process, so each field is written
//! out with its length, whatever the library that hashes does.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::Xxh3;

use super::form::{MessageForm, OneOrMany};

struct Digest(Xxh3);

impl Digest {
    fn text(&mut self, text: &str) {
        self.0.update(&(text.len() as u64).to_le_bytes());
        self.0.update(text.as_bytes());
    }

    fn perhaps(&mut self, text: Option<&str>) {
        self.0.update(&[u8::from(text.is_some())]);
        self.text(text.unwrap_or_default());
    }

    fn list(&mut self, texts: &[String]) {
        self.0.update(&(texts.len() as u64).to_le_bytes());
        texts.iter().for_each(|text| self.text(text));
    }

    fn map(&mut self, map: &BTreeMap<String, String>) {
        self.0.update(&(map.len() as u64).to_le_bytes());
        for (key, value) in map {
            self.text(key);
            self.text(value);
        }
    }
}

/// The digest of a message, but for its idempotency key.
pub fn of(form: &MessageForm) -> u64 {
    let mut digest = Digest(Xxh3::with_seed(1));
    let texts = [
        &form.channel,
        &form.tenant,
        &form.class,
        &form.campaign,
        &form.pool,
        &form.from,
        &form.reply_to,
        &form.return_path,
        &form.subject,
        &form.text,
        &form.html,
        &form.raw,
        &form.not_before,
        &form.expires_at,
    ];
    for text in texts {
        digest.perhaps(text.as_deref());
    }
    match &form.to {
        OneOrMany::None => digest.list(&[]),
        OneOrMany::One(text) => digest.text(text),
        OneOrMany::Many(texts) => digest.list(texts),
    }
    digest.list(&form.cc);
    digest.list(&form.bcc);
    digest.map(&form.headers);
    digest.map(&form.tags);
    for file in &form.attachments {
        digest.text(&file.filename);
        digest.text(&file.content_type);
        digest.text(&file.content);
        // Absent, later fields count for nothing: digests made before there
        // were any still hold.
        if let Some(id) = &file.content_id {
            digest.text(id);
        }
    }
    if let Some(said) = &form.unsubscribe {
        digest.perhaps(said.url.as_deref());
        digest.perhaps(said.mailto.as_deref());
        digest.text(if said.one_click { "one_click" } else { "" });
    }
    digest.0.digest()
}
