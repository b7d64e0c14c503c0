//! The report as Markdown.

use super::case::Case;
use super::change::Change;
use super::escape;
use super::figures;
use super::marks;
use super::story::Story;
use super::table::Table;
use crate::cli::plain::{count, counted};

/// Destinations in the table of all.
const TOTALS_MAX: usize = 20;

/// The report. `drawings` are the files of the cases' drawings, in order.
pub fn report(story: &Story, drawings: &[String]) -> String {
    let mut out = String::from("# Post-mortem\n\n");
    out.push_str(&format!("**{}**\n\n", escape::markdown(&story.headline())));
    out.push_str(&format!(
        "From {} to {}; told at {}. All times are UTC.\n",
        figures::minute(story.period.since),
        figures::minute(story.period.until),
        figures::minute(story.now),
    ));
    if let Some(before) = story.missing_before {
        out.push_str(&format!(
            "\n**Changes before {} are missing here**: there were too many to read. Tell of a \
             shorter time with `--since` and `--until`.\n",
            figures::clock(before, story.now)
        ));
    }
    for (index, case) in story.cases.iter().enumerate() {
        let drawing = drawings.get(index).map_or("", String::as_str);
        tell(&mut out, story, case, drawing);
    }
    if story.untold > 0 {
        let more = counted(story.untold as u64, "more destination", "more destinations");
        out.push_str(&format!(
            "\n{more} had trouble as well: ask for each with `--destination`.\n"
        ));
    }
    totals(&mut out, story);
    others(&mut out, story);
    out.push_str(
        "\nCounts are by ten seconds. \"Refused\" means put off because of our rate or our \
         standing; such messages are tried again.\n",
    );
    out
}

fn tell(out: &mut String, story: &Story, case: &Case, drawing: &str) {
    let name = escape::markdown(&case.destination);
    out.push_str(&format!("\n## {name}\n\n"));
    if story.cases.len() > 1 {
        out.push_str(&format!(
            "{}\n\n",
            escape::markdown(&case.headline(story.now))
        ));
    }
    let alt = "attempts, refusals and the limit over time, with the changes below as letters";
    out.push_str(&format!("![{name}: {alt}]({drawing})\n\n"));
    out.push_str(facts(case, story.now).text());
    out.push_str("\n### What was done\n\n");
    match case.changes.is_empty() {
        true => out.push_str("Nobody and no rule changed anything here.\n"),
        false => out.push_str(changes(case, story.now).text()),
    }
    if case.untold > 0 {
        let more = counted(case.untold as u64, "more change", "more changes");
        out.push_str(&format!("\nAnd {more}: see `outflow audit`.\n"));
    }
}

fn facts(case: &Case, now: i64) -> Table {
    let mut table = Table::new(["", ""]);
    let clock = |at: i64| figures::clock(at, now);
    let (start, end) = (case.start(), case.last_refused());
    match &case.first {
        Some(first) => {
            table.row(["first refusal", &clock(first.at)]);
            let code = first.code.map_or(String::new(), |code| format!("{code} "));
            let said = match first.said.is_empty() {
                true => "(not known)",
                false => &first.said,
            };
            table.row(["it said", &format!("{code}{said}")]);
            table.row(["class", &first.class]);
        }
        None => table.row(["first refusal", "none"]),
    }
    if start.is_some() {
        let before = &case.before;
        let sent = match before.length {
            0 => "nothing was sent".to_owned(),
            length => {
                format!(
                    "{} on average, {} in the busiest ten seconds",
                    figures::rate(before.rate),
                    figures::rate(before.peak)
                ) + &format!(" (over {})", figures::length(length))
            }
        };
        table.row(["sent before", &sent]);
        let limit = case
            .limit_before
            .map_or_else(|| "not known".to_owned(), figures::rate);
        table.row(["limit before", &limit]);
        table.row([
            "refused",
            &format!(
                "{} of {} ({}), {} in the worst {}",
                count(case.refused),
                counted(case.attempts, "attempt", "attempts"),
                figures::share(case.refused, case.attempts),
                figures::share(case.worst.0, case.worst.1),
                figures::length(case.series.step),
            ),
        ]);
        if case.series.accounts.len() > 1 {
            table.row(["most refused accounts", &accounts(case)]);
        }
    }
    if let Some((start, end)) = start.zip(end) {
        let length = figures::length(end - start);
        let until = match case.is_ongoing {
            true => format!("still going on after {length}"),
            false => format!("{} (after {length})", clock(end)),
        };
        table.row(["refused until", &until]);
        let mitigation = match &case.mitigation {
            Some(change) => format!("{} ({})", figures::length(change.at - start), change.who),
            None => "nobody slowed down".to_owned(),
        };
        table.row(["time to mitigation", &mitigation]);
        if let Some((at, rate)) = case.lowest {
            let lowest = format!("{} at {}", figures::rate(rate), clock(at));
            table.row(["lowest rate", &lowest]);
        }
        let recovery = match case.recovered {
            Some(at) => format!("{} (at {})", figures::length(at - start), clock(at)),
            None => "not yet".to_owned(),
        };
        table.row(["time to recovery", &recovery]);
        let mut delayed = counted(case.refused, "attempt", "attempts") + " put off and tried again";
        if case.later > 0 {
            let later = counted(case.later, "message", "messages");
            delayed.push_str(&format!(
                "; about {later} fewer taken until then than at the rate before"
            ));
        }
        table.row(["delayed", &delayed]);
        let lost = match case.lost {
            Some(0) => "0".to_owned(),
            Some(lost) => format!("{} given up: see `outflow dead-letters`", count(lost)),
            None => "not known".to_owned(),
        };
        table.row(["lost", &lost]);
    }
    table
}

fn accounts(case: &Case) -> String {
    let mut accounts: Vec<(&String, &u64)> = case.series.accounts.iter().collect();
    accounts.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
    let most = accounts.into_iter().take(5);
    let most = most.map(|(name, refused)| format!("{name} ({})", count(*refused)));
    most.collect::<Vec<_>>().join(", ")
}

fn changes(case: &Case, now: i64) -> Table {
    let mut table = Table::new(["", "when", "who", "what", "from", "to", "why", "evidence"]);
    for (index, change) in case.changes.iter().enumerate() {
        let what = match change.target == case.destination {
            true => change.what.clone(),
            false => format!("{} ({})", change.what, change.target),
        };
        table.row([
            marks::letter(index),
            figures::clock(change.at, now),
            change.who.clone(),
            what,
            Change::rate_text(change.from),
            Change::rate_text(change.to),
            change.why.clone(),
            change.evidence.clone(),
        ]);
    }
    table
}

fn totals(out: &mut String, story: &Story) {
    if story.totals.is_empty() {
        return;
    }
    out.push_str("\n## All destinations\n\n");
    let mut table = Table::new([
        "destination",
        "attempts",
        "accepted",
        "refused",
        "other deferrals",
        "bounced",
    ]);
    for total in story.totals.iter().take(TOTALS_MAX) {
        table.row([
            total.destination.clone(),
            count(total.attempts),
            count(total.accepted),
            count(total.refused),
            count(total.deferred),
            count(total.bounced),
        ]);
    }
    out.push_str(table.text());
    let more = story.totals.len().saturating_sub(TOTALS_MAX);
    if more > 0 {
        let more = counted(more as u64, "more destination", "more destinations");
        out.push_str(&format!("\nAnd {more}.\n"));
    }
}

fn others(out: &mut String, story: &Story) {
    if story.others.is_empty() {
        return;
    }
    out.push_str("\n## Other changes in that time\n\n");
    let mut table = Table::new(["when", "who", "what", "to", "why"]);
    for change in &story.others {
        table.row([
            figures::clock(change.at, story.now),
            change.who.clone(),
            change.what.clone(),
            change.target.clone(),
            change.why.clone(),
        ]);
    }
    out.push_str(table.text());
    if story.others_untold > 0 {
        let more = counted(story.others_untold as u64, "more change", "more changes");
        out.push_str(&format!("\nAnd {more} after these: see `outflow audit`.\n"));
    }
}
