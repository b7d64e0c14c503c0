//! The demonstration holds what it shows.

use std::process::Command;

use serde_json::Value;

use crate::process::Place;

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
fn an_incident_is_shown_and_told() {
    let place = Place::new("incident");
    let out = place.dir.join("report");
    let output = Command::new(env!("CARGO_BIN_EXE_outflow"))
        .args(["demo", "--incident", "--json", "--out"])
        .arg(&out)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said} {stderr}");
    let told: Value = serde_json::from_str(said.trim()).unwrap_or_default();
    let case = &told["cases"][0];
    assert_eq!(case["destination"], "isp:google", "{told}");
    assert_eq!(case["mitigated_by"], "rule:control", "{told}");
    assert!(case["recovered_at"].is_string(), "{told}");
    assert!(case["lowest_limit"].as_f64().unwrap() < 8.0, "{told}");
    assert_eq!(case["limit_before"], 40.0, "{told}");
    for file in ["report.md", "report-1-isp-google.svg"] {
        assert!(out.join(file).is_file(), "{file}");
    }
}
