//! What was found, for people and for programs.

use outflow_doctor::{Finding, Status};
use serde_json::json;

use super::Report;
use crate::cli::plain::{counted, plain};

/// Where sentences begin.
const COLUMN: usize = 22;

/// For programs.
pub fn json(reports: &[Report]) -> String {
    let domains: Vec<_> = reports
        .iter()
        .map(|report| json!({ "domain": report.domain, "findings": report.findings }))
        .collect();
    let count = |status| count(reports, status);
    let value = json!({
        "domains": domains,
        "counts": {
            "ok": count(Status::Ok),
            "warn": count(Status::Warn),
            "fail": count(Status::Fail),
            "unknown": count(Status::Unknown),
        },
    });
    format!("{value}\n")
}

/// For people.
pub fn text(reports: &[Report]) -> String {
    let mut out = String::new();
    for report in reports {
        out.push_str(&format!("{}\n", plain(&report.domain)));
        for finding in &report.findings {
            row(finding, &mut out);
        }
        out.push('\n');
    }
    let counts = [
        counted(count(reports, Status::Fail), "failure", "failures"),
        counted(count(reports, Status::Warn), "warning", "warnings"),
        format!("{} unknown", count(reports, Status::Unknown)),
        format!("{} ok", count(reports, Status::Ok)),
    ];
    out.push_str(&format!("{}\n", counts.join(", ")));
    out
}

fn row(finding: &Finding, out: &mut String) {
    let mark = match finding.status {
        Status::Ok => "ok",
        Status::Warn => "warn",
        Status::Fail => "FAIL",
        Status::Unknown => "?",
    };
    let check = finding.check.as_str();
    let start = format!("  {mark:<6}{check:<13}");
    out.push_str(&format!("{start:<COLUMN$}{}\n", plain(&finding.what)));
    let mut more = |text: &str| {
        out.push_str(&format!("{:COLUMN$}{}\n", "", plain(text)));
    };
    if !finding.action.is_empty() {
        more(&format!("-> {}", finding.action));
    }
    if let Some(record) = &finding.record {
        let value = match record.kind {
            "TXT" => format!("\"{}\"", record.value),
            _ => record.value.clone(),
        };
        more(&format!("   {} {} {value}", record.name, record.kind));
    }
}

fn count(reports: &[Report], status: Status) -> u64 {
    let findings = reports.iter().flat_map(|report| &report.findings);
    let found = findings.filter(|finding| finding.status == status);
    u64::try_from(found.count()).unwrap_or(u64::MAX)
}
