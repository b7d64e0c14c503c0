//! The incident runbook at work: it reads what was counted, asks the machine
//! what to do, and does it by the same calls that people make.
//!
//! Each incident is a document of the registry, written before anything is done
//! about it; after a restart all that is in force is put in force again.
//!
//! In reading order: this file (when it looks), `evidence` (what it finds out),
//! `acts` (what it does), [`canaries`] (what it sends first), `undone` (what it
//! could not do yet).

mod acts;
pub mod canaries;
mod evidence;
mod undone;

use std::collections::BTreeMap;
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
use undone::{Undone, Unsaved};

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
    /// What could not be done, by incident: tried again before each look.
    undone: BTreeMap<u64, Undone>,
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
    pub fn of(start: &StartValues, documents: &[Document], now: Wall) -> Self {
        let course = start.runbook.course.clone();
        let saved = documents.iter().filter_map(incident_of);
        Self {
            at_work: Mutex::new(AtWork {
                book: Runbook::new(course, saved, now),
                canaries: Canaries::default(),
                undone: BTreeMap::new(),
                has_begun: false,
            }),
        }
    }

    async fn lock(&self) -> MutexGuard<'_, AtWork> {
        self.at_work.lock().await
    }
}

impl AtWork {
    /// This is to be done, beside or instead of what was.
    fn add(&mut self, undone: Undone) {
        let id = undone.due.incident.id;
        match self.undone.remove(&id) {
            Some(before) => self.undone.insert(id, before.then(undone)),
            None => self.undone.insert(id, undone),
        };
    }

    /// Ends an incident once that is written down.
    async fn end(
        &mut self,
        state: &ApiState,
        actor: &str,
        id: u64,
        why: String,
        now: Wall,
    ) -> Result<Option<Incident>, Problem> {
        let mut book = self.book.clone();
        let Some(due) = book.close(id, now, why) else {
            return Ok(None);
        };
        save(state, actor, &due, Unsaved::Audited, now).await?;
        self.book = book;
        let incident = due.incident.clone();
        self.add(Undone::saved(due));
        attend(state, self, id, now).await;
        Ok(Some(incident))
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
            at_work.add(Undone::saved(due));
        }
        if let Err(problem) = acts::resume_left(state, &at_work.book).await {
            told(state, "what was paused could not be resumed", &problem);
        }
        at_work.has_begun = true;
    }
    let left: Vec<u64> = at_work.undone.keys().copied().collect();
    for id in left {
        attend(state, &mut at_work, id, now).await;
    }
    if !state.book.start().runbook.course.enabled {
        return switch_off(state, &mut at_work, now).await;
    }
    let views = ask(|then| state.query.tallies(then)).await?;
    let rated = Rated::of(state);
    let readings = views.iter().filter_map(|it| counted(&rated, it));
    let readings: Vec<Counted<'_>> = readings.collect();
    for (place, pool) in at_work.canaries.look(state) {
        let text = format!(
            "canaries of {place} go through the pool {pool}, which has no account: \
             steps up go without them"
        );
        warn(state, &text);
    }
    let answered = at_work.canaries.answered(state).await?;
    let dues = at_work.book.step(now, &readings, &answered);
    let AtWork { canaries, book, .. } = &mut *at_work;
    canaries.forget(book);
    for mut due in dues {
        // Receipts come a moment after the messages: what was not there yet is
        // looked for again.
        let is_known = !due.incident.replies.is_empty() || due.incident.state == State::Closed;
        if due.steps.contains(&Step::Open) || !is_known {
            describe(state, &mut at_work, &mut due, &views).await;
        }
        let id = due.incident.id;
        at_work.add(Undone::new(due, now));
        attend(state, &mut at_work, id, now).await;
    }
    Ok(())
}

/// Writes down what is to be done about an incident, and does it. What fails is
/// told, and tried again at the next look.
async fn attend(state: &ApiState, at_work: &mut AtWork, id: u64, now: Wall) {
    let Some(mut undone) = at_work.undone.remove(&id) else {
        return;
    };
    if let Some(unsaved) = undone.unsaved {
        if let Err(problem) = save(state, ACTOR, &undone.due, unsaved, now).await {
            let what = format!("incident {id} could not be written down");
            told(state, &what, &problem);
            // Canaries are of no use later: they count as not answered.
            undone.due.steps.retain(|step| *step != Step::Canary);
            at_work.add(undone);
            return;
        }
        undone.unsaved = None;
    }
    undone.due.steps = carry_out(state, at_work, &undone.due, now).await;
    if !undone.due.steps.is_empty() {
        at_work.add(undone);
    }
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
        at_work.end(state, ACTOR, id, why, now).await?;
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
    at_work.end(state, actor, id, why, now).await
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
async fn save(
    state: &ApiState,
    actor: &str,
    due: &Due,
    unsaved: Unsaved,
    now: Wall,
) -> Result<(), Problem> {
    let incident = &due.incident;
    let (id, value) = (incident.id.to_string(), json!(incident).to_string());
    if unsaved == Unsaved::Quiet {
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
    if incident.state == State::Closed
        && let Err(problem) = forget(state).await
    {
        told(state, "old incidents could not be forgotten", &problem);
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

/// Does what is to be done about an incident. What fails is told, and returned
/// if it is still of use later.
async fn carry_out(state: &ApiState, at_work: &mut AtWork, due: &Due, now: Wall) -> Vec<Step> {
    let incident = &due.incident;
    let mut failed = Vec::new();
    for step in &due.steps {
        let done = match *step {
            Step::Open | Step::Close => {
                alert(state, incident);
                Ok(())
            }
            Step::Note => Ok(()),
            Step::Slow { permille, until } => {
                acts::slow(state, &at_work.book, incident, permille, until).await
            }
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
            if *step != Step::Canary {
                failed.push(*step);
            }
        }
    }
    failed
}

/// Somebody should look.
fn alert(state: &ApiState, incident: &Incident) {
    let text = format!("incident {}: {}", incident.id, incident.sentence());
    warn(state, &text);
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

fn warn(state: &ApiState, text: &str) {
    state.telemetry.emit(&Event::Noted {
        level: Level::Warn,
        part: "runbook",
        text,
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
