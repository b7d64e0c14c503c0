//! The demonstration holds what it shows.

use std::process::Command;

use serde_json::Value;

#[test]
fn the_demo_ends_by_itself_and_its_checks_hold() {
    let output = Command::new(env!("CARGO_BIN_EXE_outflow"))
        .args(["demo", "--seconds", "4", "--json"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let summary: Value = serde_json::from_str(said.trim()).unwrap_or_default();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said} {stderr}");
    assert_eq!(summary["checks"]["limits_held"], true, "{summary}");
    assert_eq!(summary["checks"]["nothing_lost"], true, "{summary}");
    assert!(summary["delivered"].as_u64().unwrap() > 100, "{summary}");
    assert!(
        summary["critical"]["count"].as_u64().unwrap() > 0,
        "{summary}"
    );
}

#[test]
fn what_comes_later_is_said_so() {
    let output = Command::new(env!("CARGO_BIN_EXE_outflow"))
        .args(["demo", "--incident"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("later"));
}
