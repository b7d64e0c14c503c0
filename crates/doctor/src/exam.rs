//! All checks, and what they still want to know.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::known::{Known, Question};
use crate::subject::Subject;
use crate::{bulk, dkim, dmarc, limits, mx, registration, reverse, spf, tls, warmup};

/// After so many rounds of questions it is judged by what is known.
pub const ROUNDS_MAX: usize = 24;
/// No more questions are asked about one domain.
pub const QUESTIONS_MAX: usize = 400;

/// What came of one look.
#[derive(Debug)]
pub struct Exam {
    /// What was found. Holds when nothing is missing, or nothing more is asked.
    pub findings: Vec<Finding>,
    /// What must be asked first.
    pub missing: BTreeSet<Question>,
}

/// Judges a subject by what is known.
pub fn examine(subject: &Subject, known: &mut Known) -> Exam {
    known.take_missed();
    let checks = [
        spf::judge(subject, known),
        dkim::judge(subject, known),
        dmarc::judge(subject, known),
        mx::judge(subject, known),
        mx::judge_bounces(subject, known),
        reverse::judge(subject, known),
        reverse::judge_helo(subject, known),
        tls::judge(subject, known),
        bulk::judge(),
        limits::judge(subject),
        warmup::judge(subject),
        registration::judge(subject),
    ];
    Exam {
        findings: checks.into_iter().flatten().collect(),
        missing: known.take_missed(),
    }
}
