//! The reference is what the declarations say.

use std::fs;

use super::workspace;

#[test]
fn the_reference_is_up_to_date() {
    let path = workspace().join("docs/metrics.md");
    let page = outflow_telemetry::reference::markdown();
    if std::env::var_os("OUTFLOW_BLESS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/metrics.md is not what the declarations say: OUTFLOW_BLESS=1 writes it anew"
    );
}
