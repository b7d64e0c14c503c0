//! What settings may say and this version cannot do. Refused at the start: a
//! setting that is silently ignored is worse than one that is missing.

use outflow_config::Settings;

/// Everything that is asked for and cannot be done yet, in words.
pub fn unbuilt(settings: &Settings) -> Vec<String> {
    let text = "store.url: only the embedded store is built yet; leave it out";
    let is_set = settings.store.url.is_some();
    is_set.then(|| text.to_owned()).into_iter().collect()
}
