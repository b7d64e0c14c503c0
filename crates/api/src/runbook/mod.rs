//! The incident runbook at work: it reads what was counted, asks the machine
//! what to do, and does it by the same calls that people make.
//!
//! Each incident is a document of the registry, written before anything is done
//! about it; after a restart all that is in force is put in force again.
//!
//! In reading order: this file (when it looks), `evidence` (what it finds out),
//! `acts` (what it does), [`canaries`] (what it sends first).

mod acts;
pub mod canaries;
mod evidence;

use std::time::Duration;

use outflow_core::policy::scope::Scope;
use outflow_core::runbook::{Due, Incident, Reading, Runbook, State, Step};
use outflow_core::tally::{Counter, Window};
use outflow_core::time::Wall;
use outflow_ports::query::TallyView;
use outflow_ports::registry::{Change, Document, Kind};
use outflow_telemetry::Event;
use outflow_telemetry::catalogue::Level;
use serde_json::json;
use tokio::sync::{Mutex, MutexGuard};

use crate::ask::{ask, on_disk};
use crate::book::StartValues;
use crate::changes::Edit;
use crate::events::{Notice, NoticeKind};
use crate::problem::{Code, Problem};
use crate::state::ApiState;
use crate::warm_ups;
use acts::Rated;
use canaries::Canaries;

/// Who acts, in the audit.
pub const ACTOR: &str = "rule:runbook";
/// Incidents that are kept.
const KEPT_MAX: usize = 1_000;

/// Scopes of destinations.
const PLACES: [Scope; 4] = [Scope::Isp, Scope::Carrier, Scope::Push, Scope::Host];

/// The runbook and what it waits for.
pub struct Runbooks {
    at_work: Mutex<AtWork>,
}

struct AtWork {
    book: Runbook,
    canaries: Canaries,
    /// Whether what is in force was put in force by this process.
    has_begun: bool,
}

/// What was counted at one destination.
struct Counted<'a> {
    place: String,
    view: &'a TallyView,
    has_rate: bool,
}

impl Reading for Counted<'_> {
    fn destination(&self) -> &str {
        &self.place
    }

    fn count(&self, window: Window, counter: Counter) -> u64 {
        self.view.count(window, counter)
    }

    fn has_rate(&self) -> bool {
        self.has_rate
    }
}

/// The incident of a document.
pub fn incident_of(document: &Document) -> Option<Incident> {
    serde_json::from_str(document.value.as_deref()?).ok()
}

impl Runbooks {
    /// Goes on where the last process was.
    pub fn of(start: &StartValues, documents: &[Document]) -> Self {
        let course = start.runbook.course.clone();
        let saved = documents.iter().filter_map(incident_of);
        Self {
            at_work: Mutex::new(AtWork {
                book: Runbook::new(course, saved),
                canaries: Canaries::default(),
                has_begun: false,
            }),
        }
    }

    async fn lock(&self) -> MutexGuard<'_, AtWork> {
        self.at_work.lock().await
    }
}

/// Looks, until `shutdown` comes.
pub async fn run(state: ApiState, shutdown: impl Future<Output = ()>) {
    tokio::pin!(shutdown);
    let every = Duration::from_nanos(state.book.start().runbook.look_every.0);
    loop {
        if let Err(problem) = turn(&state, state.clock.now()).await {
            told(&state, "the runbook could not look", &problem);
        }
        if let Err(problem) = warm_ups::turn(&state, state.clock.now()).await {
            told(&state, "warm-ups could not be looked at", &problem);
        }
        tokio::select! {
            () = &mut shutdown => return,
            () = tokio::time::sleep(every) => {}
        }
    }
}

/// Looks once, and does what is to be done.
pub async fn turn(state: &ApiState, now: Wall) -> Result<(), Problem> {
    let mut at_work = state.runbooks.lock().await;
    if !at_work.has_begun {
        for due in at_work.book.standing(now) {
            carry_out(state, &mut at_work, &due, now).await;
        }
        at_work.has_begun = true;
    }
    if !state.book.start().runbook.course.enabled {
        return switch_off(state, &mut at_work, now).await;
    }
    let views = ask(|then| state.query.tallies(then)).await?;
    let rated = Rated::of(state);
    let readings = views.iter().filter_map(|it| counted(&rated, it));
    let readings: Vec<Counted<'_>> = readings.collect();
    let answered = at_work.canaries.answered(state).await?;
    for mut due in at_work.book.step(now, &readings, &answered) {
        // Receipts come a moment after the messages: what was not there yet is
        // looked for again.
        let is_known = !due.incident.replies.is_empty() || due.incident.state == State::Closed;
        if due.steps.contains(&Step::Open) || !is_known {
            describe(state, &mut at_work, &mut due, &views).await;
        }
        save(state, ACTOR, &due, now).await?;
        carry_out(state, &mut at_work, &due, now).await;
    }
    Ok(())
}

/// What somebody switched off leaves nothing in force.
async fn switch_off(state: &ApiState, at_work: &mut AtWork, now: Wall) -> Result<(), Problem> {
    let open: Vec<u64> = at_work
        .book
        .incidents()
        .map(|incident| incident.id)
        .collect();
    for id in open {
        let why = "the runbook is switched off".to_owned();
        if let Some(due) = at_work.book.close(id, now, why) {
            save(state, ACTOR, &due, now).await?;
            carry_out(state, at_work, &due, now).await;
        }
    }
    Ok(())
}

/// Finds out more about a new incident. It is opened also without.
async fn describe(state: &ApiState, at_work: &mut AtWork, due: &mut Due, views: &[TallyView]) {
    let incident = &mut due.incident;
    if incident.accounts.is_empty() {
        incident.accounts = evidence::accounts(incident, views);
    }
    match evidence::replies(state, incident).await {
        Ok(replies) => incident.replies = replies,
        Err(problem) => told(state, "evidence could not be collected", &problem),
    }
    let (accounts, replies) = (incident.accounts.clone(), incident.replies.clone());
    at_work
        .book
        .describe(&incident.destination, accounts, replies);
}

/// Ends an incident because somebody says so.
pub async fn close(state: &ApiState, actor: &str, id: u64) -> Result<Option<Incident>, Problem> {
    let mut at_work = state.runbooks.lock().await;
    let now = state.clock.now();
    let why = format!("closed by {actor}");
    let Some(due) = at_work.book.close(id, now, why) else {
        return Ok(None);
    };
    save(state, actor, &due, now).await?;
    carry_out(state, &mut at_work, &due, now).await;
    Ok(Some(due.incident))
}

fn counted<'a>(rated: &Rated, view: &'a TallyView) -> Option<Counted<'a>> {
    let [(scope, _)] = view.key.parts() else {
        return None;
    };
    if !PLACES.contains(scope) {
        return None;
    }
    let place = view.key.to_string();
    Some(Counted {
        has_rate: rated.has(&place),
        place,
        view,
    })
}

/// Writes an incident down; into the audit only if something is done.
async fn save(state: &ApiState, actor: &str, due: &Due, now: Wall) -> Result<(), Problem> {
    let incident = &due.incident;
    let (id, value) = (incident.id.to_string(), json!(incident).to_string());
    let is_said = |step: &Step| matches!(step, Step::Open | Step::Close | Step::Canary);
    let is_new = incident.lines.last().is_some_and(|line| line.at == now);
    if !is_new && !due.steps.iter().any(is_said) {
        let registry = state.registry.clone();
        on_disk(move || {
            let change = Change {
                kind: Kind::Incident,
                id: &id,
                value: Some(&value),
                expected: None,
            };
            registry.keep(change, now)
        })
        .await??;
        return Ok(());
    }
    let edit = Edit {
        kind: Kind::Incident,
        id,
        value: Some(value),
        expected: None,
        action: action(due),
        detail: json!({
            "destination": incident.destination,
            "state": incident.state,
            "rate_permille": incident.rate_permille,
            "why": incident.lines.last().map(|line| &line.why),
            "said": incident.sentence(),
        }),
    };
    state.change(actor, edit).await?;
    if incident.state == State::Closed {
        forget(state).await?;
    }
    Ok(())
}

fn action(due: &Due) -> &'static str {
    if due.steps.contains(&Step::Open) {
        return "incident.open";
    }
    if due.steps.contains(&Step::Canary) {
        return "incident.canary";
    }
    match due.incident.state {
        State::Open => "incident.open",
        State::Mitigating => "incident.mitigate",
        State::Recovering => "incident.recover",
        State::Closed => "incident.close",
    }
}

/// The oldest that are over make room.
async fn forget(state: &ApiState) -> Result<(), Problem> {
    let (registry, at) = (state.registry.clone(), state.clock.now());
    on_disk(move || {
        let documents = registry.list(Kind::Incident)?;
        let mut over: Vec<Incident> = documents.iter().filter_map(incident_of).collect();
        over.retain(|incident| incident.state == State::Closed);
        over.sort_by_key(|incident| incident.id);
        let surplus = over.len().saturating_sub(KEPT_MAX);
        for incident in over.iter().take(surplus) {
            let change = Change {
                kind: Kind::Incident,
                id: &incident.id.to_string(),
                value: None,
                expected: None,
            };
            registry.keep(change, at)?;
        }
        Ok::<_, Problem>(())
    })
    .await?
}

/// Does what is to be done about an incident. What fails is told, and tried
/// again at the next look.
async fn carry_out(state: &ApiState, at_work: &mut AtWork, due: &Due, now: Wall) {
    let incident = &due.incident;
    for step in &due.steps {
        let done = match *step {
            Step::Open | Step::Close => {
                alert(state, incident);
                Ok(())
            }
            Step::Note => Ok(()),
            Step::Slow { permille, until } => acts::slow(state, incident, permille, until).await,
            Step::Lift => acts::lift(state, incident).await,
            Step::Pause => acts::pause(state, incident).await,
            Step::Resume => acts::resume(state, incident).await,
            Step::Detour => {
                acts::detour(state, incident);
                Ok(())
            }
            Step::Return => {
                acts::go_back(state, incident);
                Ok(())
            }
            Step::Canary => {
                at_work
                    .canaries
                    .send(state, &incident.destination, now)
                    .await
            }
        };
        if let Err(problem) = done {
            let what = format!("incident {}: {step:?} failed", incident.id);
            told(state, &what, &problem);
            at_work.book.failed(&incident.destination);
        }
    }
}

/// Somebody should look.
fn alert(state: &ApiState, incident: &Incident) {
    let text = format!("incident {}: {}", incident.id, incident.sentence());
    state.telemetry.emit(&Event::Noted {
        level: Level::Warn,
        part: "runbook",
        text: &text,
    });
    let data = json!({
        "what": "incident",
        "incident": incident.id.to_string(),
        "destination": incident.destination,
        "state": incident.state,
        "detail": incident.sentence(),
    });
    state.events.publish(Notice {
        kind: NoticeKind::Alert,
        tenant: None,
        data: data.to_string().into(),
    });
}

fn told(state: &ApiState, what: &str, problem: &Problem) {
    // On the way down everybody hears so already.
    if problem.code() == Code::Closing {
        return;
    }
    let text = format!("{what}: {}", problem.clone().body().detail);
    state.telemetry.emit(&Event::Noted {
        level: Level::Error,
        part: "runbook",
        text: &text,
    });
}
