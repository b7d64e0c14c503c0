//! `v=DMARC1; p=none`: the form of DKIM and DMARC records.

/// Tags in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags(Vec<(String, String)>);

impl Tags {
    /// Reads a record, or says what cannot be read.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut tags: Vec<(String, String)> = Vec::new();
        for part in text
            .split(';')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            let Some((name, value)) = part.split_once('=') else {
                return Err(format!("{} has no \"=\"", crate::finding::quoted(part)));
            };
            let name = name.trim().to_ascii_lowercase();
            if tags.iter().any(|(other, _)| *other == name) {
                return Err(format!(
                    "the tag {} is there twice",
                    crate::finding::quoted(&name)
                ));
            }
            tags.push((name, value.trim().to_owned()));
        }
        Ok(Self(tags))
    }

    /// The value of a tag.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The first tag and its value.
    pub fn first(&self) -> Option<(&str, &str)> {
        let first = self.0.first();
        first.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The record with another value for one tag.
    pub fn with(&self, name: &str, value: &str) -> String {
        let mut tags = self.0.clone();
        match tags.iter_mut().find(|(own, _)| own == name) {
            Some((_, own)) => value.clone_into(own),
            None => tags.push((name.to_owned(), value.to_owned())),
        }
        let tags: Vec<String> = tags
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        tags.join("; ")
    }

    /// Whether one of the words of a tag, which stand between colons, is this.
    pub fn has_word(&self, name: &str, word: &str) -> bool {
        let value = self.get(name).unwrap_or_default();
        let mut words = value.split(':').map(str::trim);
        words.any(|own| own.eq_ignore_ascii_case(word))
    }
}
