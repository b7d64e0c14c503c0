//! A settings file: read, or refused with a reason.

use outflow_config::Settings;

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match Settings::parse(text) {
        Ok(settings) => assert!(!settings.show().is_empty()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
