//! What settings may say and this version cannot do. Refused at the start: a
//! setting that is silently ignored is worse than one that is missing.

use outflow_config::Settings;

/// Everything that is asked for and cannot be done yet, in words.
pub fn unbuilt(settings: &Settings) -> Vec<String> {
    let sections = [
        (
            settings.store.url.is_some(),
            "store.url: only the embedded store is built yet; leave it out",
        ),
        (
            settings.ledger.url.is_some(),
            "ledger.url: sharing limits over a fleet is not built yet; leave it out",
        ),
    ];
    let sections = sections.into_iter().filter(|(is_set, _)| *is_set);
    sections.map(|(_, text)| text.to_owned()).collect()
}
