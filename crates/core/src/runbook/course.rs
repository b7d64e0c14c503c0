//! How one incident goes on.

use super::incident::{Evidence, Incident, Measures, State, WHOLE};
use super::settings::{Response, Settings, Watch};
use super::{Answered, Said, Step};
use crate::tally::{Finding, Window};
use crate::time::{Nanos, Wall};

/// Cuts of one incident: then a person must decide.
const CUTS_MAX: u32 = 3;
/// No rate is cut below so many thousandths.
const RATE_MIN: u16 = 10;
/// Evidence that has not changed for so long is written down again.
const NOTE_EVERY: Nanos = Nanos::from_secs(60);

/// What to do about an incident now; its state is what it will be then.
pub(super) fn go_on(
    incident: &mut Incident,
    settings: &Settings,
    now: Wall,
    said: &Said,
    canary: Option<Answered>,
) -> Vec<Step> {
    let mut steps = Vec::new();
    if incident.evidence.is_empty() {
        incident.measured = said.measured;
        steps.push(Step::Open);
    }
    let is_noted = note(incident, now, said);
    listen(incident, now, said.noisy);
    let before = (incident.state, incident.rate_permille);
    match incident.state {
        State::Open | State::Mitigating => {
            begin(incident, settings, now, said, &mut steps);
            match incident.state {
                State::Open if is_calm(incident, settings, now) => {
                    steps.extend(end(incident, now, "all is quiet again".to_owned()));
                }
                State::Mitigating => wait(incident, settings, now, said, &mut steps),
                _ => {}
            }
        }
        State::Recovering => recover(incident, settings, now, said, canary, &mut steps),
        State::Closed => {}
    }
    hold(incident, settings, now, before, &mut steps);
    if is_noted && steps.is_empty() {
        steps.push(Step::Note);
    }
    steps
}

/// Writes down what rules say. Whether that is worth keeping.
fn note(incident: &mut Incident, now: Wall, said: &Said) -> bool {
    let mut is_noted = false;
    for (watch, finding) in &said.loud {
        let name = watch.rule.name;
        let known = incident.evidence.iter_mut().find(|it| it.rule == name);
        let Some(known) = known else {
            incident.evidence.push(evidence(watch, finding, now));
            is_noted = true;
            continue;
        };
        if known.is_worse(finding) {
            (known.part, known.whole) = (finding.part, finding.whole);
        }
        if now.since(known.last) >= NOTE_EVERY {
            known.last = now;
            is_noted = true;
        }
    }
    is_noted
}

fn evidence(watch: &Watch, finding: &Finding, now: Wall) -> Evidence {
    Evidence {
        rule: watch.rule.name.to_owned(),
        part: finding.part,
        whole: finding.whole,
        counted: watch.rule.part.as_str().to_owned(),
        window: watch.rule.window.as_str().to_owned(),
        since: now,
        last: now,
    }
}

/// Since when it is quiet.
fn listen(incident: &mut Incident, now: Wall, noisy: bool) {
    incident.calm_since = match (noisy, incident.calm_since) {
        (true, _) => None,
        (false, None) => Some(now),
        (false, since) => since,
    };
}

fn is_calm(incident: &Incident, settings: &Settings, now: Wall) -> bool {
    let since = incident.calm_since;
    since.is_some_and(|since| now.since(since) >= settings.calm)
}

/// Puts in force what the rules that speak ask for and is not in force yet.
fn begin(
    incident: &mut Incident,
    settings: &Settings,
    now: Wall,
    said: &Said,
    steps: &mut Vec<Step>,
) {
    if !settings.act {
        return;
    }
    let wanted = said.loud.iter().map(|(watch, _)| watch.response);
    let mut wanted = wanted.fold(Response::default(), Response::and);
    wanted.slow &= said.has_rate || incident.measured.is_some();
    wanted.pause &= settings.can_pause;
    wanted.detour &= settings.can_detour;
    let lacking = incident.measures.lacking(wanted);
    if lacking == Response::default() {
        return;
    }
    if lacking.slow {
        cut(incident, settings, now, said);
    }
    put_aside(incident, lacking, steps);
    if incident.state == State::Open {
        let before = (incident.state, incident.rate_permille);
        incident.state = State::Mitigating;
        let until = now + settings.cooldown;
        incident.cooldown_until.get_or_insert(until);
        if !lacking.slow {
            incident.note(now, before, reason(said));
        }
    }
}

/// Pauses what can wait, and sends a share another way.
fn put_aside(incident: &mut Incident, lacking: Response, steps: &mut Vec<Step>) {
    if lacking.pause {
        incident.measures.paused = true;
        steps.push(Step::Pause);
    }
    if lacking.detour {
        incident.measures.detoured = true;
        steps.push(Step::Detour);
    }
}

/// Lowers the rate and begins a cooldown.
fn cut(incident: &mut Incident, settings: &Settings, now: Wall, said: &Said) {
    let before = (incident.state, incident.rate_permille);
    let rate = u32::from(incident.rate_permille) * u32::from(settings.cut_permille) / 1_000;
    let rate = u16::try_from(rate).unwrap_or(WHOLE);
    incident.rate_permille = rate.clamp(RATE_MIN, WHOLE);
    incident.measures.slowed = true;
    incident.state = State::Mitigating;
    incident.cuts += 1;
    incident.changed_at = now;
    incident.cooldown_until = Some(now + settings.cooldown);
    incident.next_step_at = None;
    incident.canary_at = None;
    incident.calm_since = None;
    incident.note(now, before, reason(said));
}

/// What spoke, in words.
fn reason(said: &Said) -> String {
    let parts = said.loud.iter().map(|(watch, finding)| {
        let (rule, window) = (watch.rule.name, watch.rule.window);
        format!("{rule}: {} of {} in {window}", finding.part, finding.whole)
    });
    let parts: Vec<String> = parts.collect();
    parts.join("; ")
}

/// During the cooldown, and after it until all is quiet.
fn wait(
    incident: &mut Incident,
    settings: &Settings,
    now: Wall,
    said: &Said,
    steps: &mut Vec<Step>,
) {
    let cooled = incident.cooldown_until.is_none_or(|until| now >= until);
    if !cooled {
        return;
    }
    if is_calm(incident, settings, now) {
        let before = (incident.state, incident.rate_permille);
        incident.state = State::Recovering;
        incident.next_step_at = Some(now);
        incident.note(
            now,
            before,
            "the cooldown is over and all is quiet".to_owned(),
        );
        steps.push(Step::Note);
        return;
    }
    // What was counted before the last cut says nothing of the rate now.
    let fresh = |(watch, _): &&(Watch, Finding)| {
        let window = watch.rule.window.length().min(Window::Hour.length());
        watch.response.slow && now.since(incident.changed_at) >= window
    };
    let may_cut = settings.act && incident.cuts < CUTS_MAX && incident.measures.slowed;
    if may_cut && said.loud.iter().any(|it| fresh(&it)) {
        cut(incident, settings, now, said);
    }
}

/// Steps up while all is quiet; back into a cooldown when it is not.
fn recover(
    incident: &mut Incident,
    settings: &Settings,
    now: Wall,
    said: &Said,
    canary: Option<Answered>,
    steps: &mut Vec<Step>,
) {
    if !said.loud.is_empty() {
        if settings.act && incident.measures.slowed {
            cut(incident, settings, now, said);
        } else {
            wait_again(incident, settings, now, said, steps);
        }
        // Measures that were taken back are asked for again.
        begin(incident, settings, now, said, steps);
        return;
    }
    let is_due = incident.next_step_at.is_none_or(|at| now >= at);
    if said.noisy || !is_due || !may_go_on(incident, settings, now, canary, steps) {
        return;
    }
    let before = (incident.state, incident.rate_permille);
    let rate = incident
        .rate_permille
        .saturating_add(settings.ramp.step_permille.max(1));
    incident.rate_permille = rate.min(WHOLE);
    incident.changed_at = now;
    take_back(incident, steps);
    if incident.rate_permille >= WHOLE {
        steps.extend(end(incident, now, "the rate is back".to_owned()));
        return;
    }
    incident.next_step_at = Some(now + settings.ramp.every);
    incident.note(now, before, "all is quiet".to_owned());
}

/// Goes no further up for another cooldown.
fn wait_again(
    incident: &mut Incident,
    settings: &Settings,
    now: Wall,
    said: &Said,
    steps: &mut Vec<Step>,
) {
    let before = (incident.state, incident.rate_permille);
    incident.state = State::Mitigating;
    incident.cooldown_until = Some(now + settings.cooldown);
    incident.next_step_at = None;
    incident.canary_at = None;
    incident.note(now, before, reason(said));
    steps.push(Step::Note);
}

/// Whether canaries went well before this step, where there are any.
fn may_go_on(
    incident: &mut Incident,
    settings: &Settings,
    now: Wall,
    canary: Option<Answered>,
    steps: &mut Vec<Step>,
) -> bool {
    if !settings.canaries.contains(&incident.destination) || canary == Some(Answered::Absent) {
        incident.canary_at = None;
        return true;
    }
    let Some(sent_at) = incident.canary_at else {
        incident.canary_at = Some(now);
        steps.push(Step::Canary);
        return false;
    };
    let is_late = now.since(sent_at) >= settings.canary_within;
    let why = match canary {
        Some(Answered::Taken | Answered::Absent) => {
            incident.canary_at = None;
            return true;
        }
        Some(Answered::Refused) => "a canary was refused: the next step waits",
        None if is_late => "canaries were not answered in time: the next step waits",
        None => return false,
    };
    incident.canary_at = None;
    incident.next_step_at = Some(now + settings.ramp.every);
    incident.note(
        now,
        (incident.state, incident.rate_permille),
        why.to_owned(),
    );
    steps.push(Step::Note);
    false
}

/// What was put aside comes back with the first step up.
fn take_back(incident: &mut Incident, steps: &mut Vec<Step>) {
    if incident.measures.paused {
        incident.measures.paused = false;
        steps.push(Step::Resume);
    }
    if incident.measures.detoured {
        incident.measures.detoured = false;
        steps.push(Step::Return);
    }
}

/// Nothing is in force any more.
pub(super) fn end(incident: &mut Incident, now: Wall, why: String) -> Vec<Step> {
    let before = (incident.state, incident.rate_permille);
    let mut steps = Vec::new();
    take_back(incident, &mut steps);
    if incident.measures.slowed {
        steps.push(Step::Lift);
    }
    incident.measures = Measures::default();
    incident.rate_permille = WHOLE;
    incident.state = State::Closed;
    incident.closed_at = Some(now);
    incident.cooldown_until = None;
    incident.next_step_at = None;
    incident.held_until = None;
    incident.canary_at = None;
    incident.note(now, before, why);
    steps.push(Step::Close);
    steps
}

/// The slower rate holds for a while by itself, should nobody look any more,
/// and is held on for as long as somebody does.
fn hold(
    incident: &mut Incident,
    settings: &Settings,
    now: Wall,
    before: (State, u16),
    steps: &mut Vec<Step>,
) {
    if !incident.measures.slowed {
        return;
    }
    let every = settings.ramp.every;
    let runs_out = incident
        .held_until
        .is_none_or(|until| until.since(now) <= Nanos(every.0 / 2));
    if !runs_out && before.1 == incident.rate_permille {
        return;
    }
    let cooldown = incident.cooldown_until.unwrap_or(now).max(now);
    let until = cooldown.max(incident.next_step_at.unwrap_or(now)) + every;
    incident.held_until = Some(until);
    let permille = incident.rate_permille;
    steps.push(Step::Slow { permille, until });
}
