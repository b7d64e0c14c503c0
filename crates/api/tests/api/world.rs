//! A world for the API: ports in memory, a clock that is set, tokens of every
//! scope, and a client.

use std::collections::BTreeMap;
use std::hash::RandomState;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode, header};
use http_body_util::BodyExt;
use outflow_api::{
    AccountSink, ApiState, Bounds, Clock, Metrics, Parts, Readiness, StartValues, router,
};
use outflow_config::Account;
use outflow_core::account::AccountSpec;
use outflow_core::classify::Rules;
use outflow_core::engine::admission::TooManyFlows;
use outflow_core::engine::command::{PauseId, Tune};
use outflow_core::engine::explain::Explanation;
use outflow_core::engine::standing::Standing;
use outflow_core::flow::FlowKey;
use outflow_core::message::{Seq, State};
use outflow_core::name::Name;
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::set::Policies;
use outflow_core::reply::Reply;
use outflow_core::suppression::surge::{Surge, SurgeRule};
use outflow_core::tally::{Counter, Teller};
use outflow_core::time::{Mono, Nanos, Wall};
use outflow_feedback::{Desk, Learner, Once, ReturnPaths, SuppressionList};
use outflow_ports::control::{Bulk, Control, Touched};
use outflow_ports::fleet::Fleet;
use outflow_ports::intake::{Given, Intake, Refused, Submission, Taken, Then};
use outflow_ports::parcel::{Parcel, ParcelError, ParcelRef, ParcelSource};
use outflow_ports::query::{
    Depth, Filter, LaneView, LimitView, LiveMessage, Page, Query, TallyView,
};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::history::Chronicle;
use crate::memory::Disk;
use crate::shelves::{Papers, Shelf};

/// Noon of some day.
pub const START: Wall = Wall(1_790_000_000_000_000_000);

pub struct SetClock(AtomicI64);

impl SetClock {
    pub fn advance(&self, by: Nanos) {
        self.0.fetch_add(by.0 as i64, Ordering::SeqCst);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Wall {
        Wall(self.0.load(Ordering::SeqCst))
    }
}

#[derive(Default)]
struct Parcels(Mutex<Vec<Parcel>>);

impl ParcelSource for Parcels {
    fn read(&self, at: u64, _: u64) -> Result<Parcel, ParcelError> {
        let parcels = self.0.lock().unwrap();
        parcels
            .get(at as usize)
            .cloned()
            .ok_or_else(|| ParcelError::Unread("there is none".to_owned()))
    }
}

/// What the node was told and keeps.
#[derive(Default)]
pub struct NodeState {
    pub messages: BTreeMap<Seq, LiveMessage>,
    pub keys: BTreeMap<String, Given>,
    pub refuse: Option<Refused>,
    /// Campaigns for which there is no room, and why.
    pub crowded: BTreeMap<String, TooManyFlows>,
    pub hangs: bool,
    pub explanation: Option<Explanation>,
    pub lanes: Vec<LaneView>,
    pub limits: Vec<LimitView>,
    pub tallies: Vec<TallyView>,
    pub policies: Policies,
    /// What was heard of messages later.
    /// Rates that were taken in hand.
    pub tuned: Vec<(LimitKey, Tune)>,
    pub heard: Vec<(FlowKey, Option<Name>, Counter)>,
    pub feedback: Vec<(Seq, Reply)>,
    pub accounts: BTreeMap<String, AccountSpec>,
    pub pauses: BTreeMap<u64, (Match, Option<Wall>)>,
    pub bulks: Vec<(String, String, bool)>,
    pub forgotten: Vec<Seq>,
    held: Vec<Box<dyn Send>>,
}

/// A node in memory.
pub struct Node {
    pub state: Mutex<NodeState>,
    parcels: Arc<Parcels>,
    clock: Arc<SetClock>,
}

impl Node {
    pub fn new(clock: &Arc<SetClock>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            parcels: Arc::default(),
            clock: Arc::clone(clock),
        })
    }

    pub fn parcel(&self, parcel: Parcel) -> ParcelRef {
        let mut parcels = self.parcels.0.lock().unwrap();
        parcels.push(parcel);
        let source: Arc<dyn ParcelSource> = Arc::clone(&self.parcels) as _;
        ParcelRef::new(source, parcels.len() as u64 - 1, 0)
    }

    pub fn messages(&self) -> Vec<LiveMessage> {
        let state = self.state.lock().unwrap();
        state.messages.values().cloned().collect()
    }
}

impl Intake for Node {
    fn submit_whole(&self, batch: Vec<Submission>, then: Then<Result<Vec<Taken>, Refused>>) {
        self.submit(batch, then);
    }

    fn submit(&self, batch: Vec<Submission>, then: Then<Result<Vec<Taken>, Refused>>) {
        let mut given = Vec::new();
        {
            let mut state = self.state.lock().unwrap();
            if state.hangs {
                state.held.push(Box::new(then));
                return;
            }
            if let Some(refused) = state.refuse {
                drop(state);
                then(Err(refused));
                return;
            }
            for submission in batch {
                let key = submission.idempotency_key.as_deref().map(str::to_owned);
                if let Some(before) = key.as_ref().and_then(|key| state.keys.get(key)) {
                    given.push(Ok(Given {
                        known: true,
                        ..*before
                    }));
                    continue;
                }
                let campaign = submission.key.campaign.as_ref().map(Name::as_str);
                if let Some(why) = campaign.and_then(|it| state.crowded.get(it)) {
                    given.push(Err(*why));
                    continue;
                }
                let seq = Seq(state.messages.keys().next_back().map_or(1, |seq| seq.0 + 1));
                let one = Given {
                    seq,
                    accepted_at: self.clock.now(),
                    known: false,
                };
                let parcel = self.parcel(Parcel {
                    envelope: submission.envelope,
                    body: submission.body,
                });
                let live = LiveMessage {
                    seq,
                    key: Arc::new(submission.key),
                    state: match submission.not_before {
                        Some(_) => State::Deferred,
                        None => State::Queued,
                    },
                    accepted_at: one.accepted_at,
                    due_at: submission.not_before,
                    expires_at: submission.expires_at,
                    attempts: 0,
                    cost: submission.cost,
                    parcel: Some(parcel),
                };
                state.messages.insert(seq, live);
                state.keys.extend(key.map(|key| (key, one)));
                given.push(Ok(one));
            }
        }
        then(Ok(given));
    }
}

impl Query for Node {
    fn message(&self, seq: Seq, then: Then<Option<LiveMessage>>) {
        let found = self.state.lock().unwrap().messages.get(&seq).cloned();
        then(found);
    }

    fn explain(&self, seq: Seq, then: Then<Option<(LiveMessage, Explanation)>>) {
        let state = self.state.lock().unwrap();
        let live = state.messages.get(&seq).cloned();
        let explanation = state.explanation.clone();
        drop(state);
        then(live.zip(explanation));
    }

    fn messages(&self, filter: Filter, from: Seq, max: usize, then: Then<Page<LiveMessage>>) {
        let state = self.state.lock().unwrap();
        let found = state.messages.range(from..).map(|(_, live)| live);
        let found = found
            .filter(|live| filter.states.is_empty() || filter.states.contains(&live.state))
            .filter(|live| {
                let matches = filter.matches.as_ref();
                matches.is_none_or(|matches| matches.matches_flow(&live.key))
            });
        let mut items: Vec<LiveMessage> = found.take(max + 1).cloned().collect();
        let next = items.get(max).map(|live| live.seq);
        items.truncate(max);
        drop(state);
        then(Page { items, next });
    }

    fn lanes(&self, then: Then<Vec<LaneView>>) {
        let lanes = self.state.lock().unwrap().lanes.clone();
        then(lanes);
    }

    fn standings(&self, then: Then<Vec<Standing>>) {
        then(Vec::new());
    }

    fn limits(&self, then: Then<Vec<LimitView>>) {
        let limits = self.state.lock().unwrap().limits.clone();
        then(limits);
    }

    fn tallies(&self, then: Then<Vec<TallyView>>) {
        let tallies = self.state.lock().unwrap().tallies.clone();
        then(tallies);
    }

    fn depth(&self, then: Then<Depth>) {
        then(Depth::default());
    }

    fn flows_of(&self, _: Name, then: Then<(u64, u64)>) {
        then((3, 7));
    }
}

impl Control for Node {
    fn set_policies(&self, policies: Policies) {
        self.state.lock().unwrap().policies = policies;
    }

    fn set_account(&self, account: AccountSpec) {
        let mut state = self.state.lock().unwrap();
        state
            .accounts
            .insert(account.id.as_str().to_owned(), account);
    }

    fn remove_account(&self, account: Name) {
        self.state.lock().unwrap().accounts.remove(account.as_str());
    }

    fn pause(&self, id: PauseId, matches: Match, until: Option<Wall>) {
        let mut state = self.state.lock().unwrap();
        state.pauses.insert(id.0, (matches, until));
    }

    fn resume(&self, id: PauseId) {
        self.state.lock().unwrap().pauses.remove(&id.0);
    }

    fn cancel(&self, seq: Seq, then: Then<Touched>) {
        let mut state = self.state.lock().unwrap();
        let touched = match state.messages.get(&seq).map(|live| live.state) {
            Some(State::Sending) => Touched::Sending,
            Some(_) => {
                state.messages.remove(&seq);
                Touched::Done
            }
            None => Touched::Unknown,
        };
        drop(state);
        then(touched);
    }

    fn retry(&self, seq: Seq, then: Then<Touched>) {
        let mut state = self.state.lock().unwrap();
        let touched = match state.messages.get_mut(&seq) {
            Some(live) => {
                live.state = State::Queued;
                Touched::Done
            }
            None => Touched::Unknown,
        };
        drop(state);
        then(touched);
    }

    fn bulk(&self, bulk: Bulk, matches: Match, dry_run: bool, then: Then<u64>) {
        let mut state = self.state.lock().unwrap();
        let messages = state.messages.values();
        let count = messages
            .filter(|live| matches.matches_flow(&live.key))
            .count();
        let entry = (format!("{bulk:?}"), matches.to_string(), dry_run);
        state.bulks.push(entry);
        drop(state);
        then(count as u64);
    }

    fn heard(&self, key: FlowKey, account: Option<Name>, counter: Counter, _: Teller) {
        let mut state = self.state.lock().unwrap();
        state.heard.push((key, account, counter));
    }

    fn feedback(&self, _key: FlowKey, seq: Seq, reply: Reply) {
        self.state.lock().unwrap().feedback.push((seq, reply));
    }

    fn tune(&self, key: LimitKey, tune: Tune) {
        self.state.lock().unwrap().tuned.push((key, tune));
    }

    fn forget(&self, seqs: Vec<Seq>) {
        let mut state = self.state.lock().unwrap();
        for seq in &seqs {
            state.messages.remove(seq);
        }
        state.forgotten.extend(seqs);
    }
}

#[derive(Default)]
pub struct Sink(pub Mutex<Vec<String>>);

impl AccountSink for Sink {
    fn put(&self, account: &Account) {
        self.0
            .lock()
            .unwrap()
            .push(format!("put {}", account.spec.id));
    }

    fn remove(&self, id: &str) {
        self.0.lock().unwrap().push(format!("remove {id}"));
    }
}

/// What the API tells of requests.
#[derive(Debug, Default)]
pub struct Told(pub Mutex<Vec<String>>);

impl outflow_telemetry::Sink for Told {
    fn emit(&self, event: &outflow_telemetry::Event<'_>) {
        if let outflow_telemetry::Event::Requested(request) = event {
            let line = format!("{} {} {}", request.method, request.route, request.status);
            self.0.lock().unwrap().push(line);
        }
    }
}

struct Fixed;

impl Metrics for Fixed {
    fn render(&self, then: Then<String>) {
        then("outflow_build_info 1\n".to_owned());
    }
}

impl Readiness for Fixed {
    fn reasons(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Everything that a test needs.
pub struct World {
    pub clock: Arc<SetClock>,
    pub node: Arc<Node>,
    pub shelf: Arc<Shelf>,
    pub papers: Arc<Papers>,
    pub list: Arc<SuppressionList>,
    pub chronicle: Arc<Chronicle>,
    pub throttle: Arc<outflow_throttle::Service>,
    pub sink: Arc<Sink>,
    pub told: Arc<Told>,
    pub state: ApiState,
    pub router: Router,
    pub admin: String,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {}", self.text))
    }

    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    /// The pointers of what is refused.
    pub fn pointers(&self) -> Vec<String> {
        let json = self.json();
        let errors = json["errors"].as_array().cloned().unwrap_or_default();
        let pointer = |error: &Value| error["pointer"].as_str().unwrap_or_default().to_owned();
        errors.iter().map(pointer).collect()
    }
}

impl World {
    pub fn new() -> Self {
        Self::with(StartValues::default(), Bounds::default())
    }

    pub fn with(start: StartValues, bounds: Bounds) -> Self {
        let clock = Arc::new(SetClock(AtomicI64::new(START.0)));
        let node = Node::new(&clock);
        let disk = (Arc::default(), Arc::default());
        Self::on(clock, node, disk, start, bounds, None)
    }

    /// A node of a fleet.
    pub fn of_fleet(fleet: Arc<dyn Fleet>, start: StartValues) -> Self {
        let clock = Arc::new(SetClock(AtomicI64::new(START.0)));
        let node = Node::new(&clock);
        let disk = (Arc::default(), Arc::default());
        Self::on(clock, node, disk, start, Bounds::default(), Some(fleet))
    }

    /// The same disk under a new process, which belongs to a fleet.
    pub fn join(&self, fleet: Arc<dyn Fleet>) -> Self {
        let node = Node::new(&self.clock);
        let clock = Arc::clone(&self.clock);
        let disk = (Arc::clone(&self.shelf), Arc::clone(&self.papers));
        let start = StartValues::default();
        let mut world = Self::on(clock, node, disk, start, Bounds::default(), Some(fleet));
        world.admin.clone_from(&self.admin);
        world
    }

    /// The same disk under a new process.
    pub fn restart(&self, start: StartValues) -> Self {
        let node = Node::new(&self.clock);
        {
            let mut new = node.state.lock().unwrap();
            let old = self.node.state.lock().unwrap();
            new.messages.clone_from(&old.messages);
            new.keys.clone_from(&old.keys);
        }
        let clock = Arc::clone(&self.clock);
        let disk = (Arc::clone(&self.shelf), Arc::clone(&self.papers));
        let mut world = Self::on(clock, node, disk, start, Bounds::default(), None);
        world.admin.clone_from(&self.admin);
        world
    }

    fn on(
        clock: Arc<SetClock>,
        node: Arc<Node>,
        (shelf, papers): (Arc<Shelf>, Arc<Papers>),
        start: StartValues,
        bounds: Bounds,
        fleet: Option<Arc<dyn Fleet>>,
    ) -> Self {
        let admin = outflow_api::tokens::first_admin(&*shelf, clock.now()).unwrap();
        let (sink, told): (Arc<Sink>, Arc<Told>) = Default::default();
        let chronicle: Arc<Chronicle> = Arc::default();
        let throttle = outflow_throttle::Service::start(outflow_throttle::Settings {
            throttle: outflow_core::throttle::Settings {
                keys_max: 1_000,
                ..Default::default()
            },
            seed: 7,
            ..Default::default()
        })
        .unwrap();
        let disk: Arc<Disk> = Arc::default();
        let (list, _) = SuppressionList::open(disk, 10_000, RandomState::new()).unwrap();
        let list = Arc::new(list);
        let wall = Arc::clone(&clock);
        let learner = Learner::new(
            Arc::clone(&list) as _,
            Arc::clone(&node) as _,
            Arc::new(move || (Mono(wall.now().0.unsigned_abs()), wall.now())),
            Arc::new(|_: &Surge| ()),
            SurgeRule::default(),
        );
        let paths = ReturnPaths::new("bounces.example", &[b"a key that is long enough"]);
        let desk = Desk {
            paths: Some(Arc::new(paths.unwrap())),
            learner: Arc::new(learner),
            receipts: Arc::clone(&papers) as _,
            control: Arc::clone(&node) as _,
            rules: Rules::built_in(),
            once: Once::default(),
        };
        let state = ApiState::new(Parts {
            suppressions: Arc::clone(&list) as _,
            hearing: Arc::new(desk),
            intake: Arc::clone(&node) as _,
            query: Arc::clone(&node) as _,
            control: Arc::clone(&node) as _,
            registry: Arc::clone(&shelf) as _,
            receipts: Arc::clone(&papers) as _,
            history: Arc::clone(&chronicle) as _,
            metrics: Arc::new(Fixed),
            readiness: Arc::new(Fixed),
            clock: Arc::clone(&clock) as _,
            throttle: Arc::clone(&throttle) as _,
            start,
            account_sink: Arc::clone(&sink) as _,
            fleet,
            telemetry: Arc::clone(&told) as _,
            detours: Arc::default(),
            events: Arc::default(),
            bounds,
        });
        let state = state.unwrap();
        Self {
            clock,
            node,
            shelf,
            papers,
            list,
            chronicle,
            sink,
            told,
            throttle,
            router: router(state.clone()),
            state,
            admin: admin.unwrap_or_default(),
        }
    }

    /// Sends a request as it is.
    pub async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Answer {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    /// Sends JSON with a token.
    pub async fn call(&self, token: &str, method: &str, path: &str, body: Value) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        if !token.is_empty() {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let body = match body {
            Value::Null => Body::empty(),
            body => {
                request = request.header(header::CONTENT_TYPE, "application/json");
                Body::from(body.to_string())
            }
        };
        self.send(request.body(body).unwrap()).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.call(&self.admin, "GET", path, Value::Null).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.call(&self.admin, "POST", path, body).await
    }

    /// A token with these fields.
    pub async fn token(&self, fields: Value) -> String {
        let mut form = json!({ "name": "test" });
        form.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        let answer = self.post("/api/v1/tokens", form).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        answer.json()["token"].as_str().unwrap().to_owned()
    }
}

/// A message that can be sent, with some fields changed.
pub fn message(fields: Value) -> Value {
    let mut message = json!({
        "from": "Shop <orders@shop.example>",
        "to": "user@example.com",
        "subject": "Hello",
        "text": "Hello!",
    });
    let into = message.as_object_mut().unwrap();
    into.extend(fields.as_object().unwrap().clone());
    message
}
