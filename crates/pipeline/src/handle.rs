//! How other threads speak to a node.
//!
//! A [`Handle`] puts requests into the node's inbox and returns at once; the
//! node answers on its own thread. What callers hand over and is not durable
//! yet is bounded, in messages and in bytes: beyond that they hear "busy" on
//! their own thread. A callback to intake is always called, also if the node
//! dies; one to a question is dropped if the node is gone.

mod load;
mod request;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use outflow_core::account::AccountSpec;
use outflow_core::class::Class;
use outflow_core::engine::command::{Command, PauseId, Tune};
use outflow_core::engine::event::Event;
use outflow_core::engine::explain::Explanation;
use outflow_core::engine::lend::{Lent, Want};
use outflow_core::engine::standing::Standing;
use outflow_core::flow::FlowKey;
use outflow_core::message::Seq;
use outflow_core::name::Name;
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::set::Policies;
use outflow_core::reply::Reply;
use outflow_core::tally::{Counter, Teller};
use outflow_core::time::{Nanos, Wall};
use outflow_ports::control::{Bulk, Control, Touched};
use outflow_ports::intake::{Intake, Refused, Submission, Taken, Then};
use outflow_ports::lender::Lender;
use outflow_ports::query::{
    Depth, Filter, LaneView, LimitView, LiveMessage, Page, Query, TallyView,
};

use self::load::Load;
pub(crate) use self::request::{Request, Waiting};
use crate::questions::Meters;

/// Speaks to a node from any thread. Clones speak to the same one.
#[derive(Clone, Debug)]
pub struct Handle {
    requests: Sender<Request>,
    state: Arc<State>,
}

/// Tells a node that one of its ports has something for it.
#[derive(Clone, Debug)]
pub struct Waker(Handle);

/// What a node's thread reads from.
#[derive(Debug)]
pub struct Inbox {
    pub(crate) requests: Receiver<Request>,
    pub(crate) state: Arc<State>,
}

/// What handles and the node's thread share.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// A wake-up is in the inbox already.
    woken: AtomicBool,
    closing: AtomicBool,
    load: Load,
}

impl State {
    /// The node looks at its ports now: later wake-ups are new ones.
    pub fn awake(&self) {
        self.woken.store(false, Ordering::Release);
    }
}

/// A handle, and the inbox of the node that it will speak to.
pub fn open() -> (Handle, Inbox) {
    let (sender, requests) = channel();
    let state = Arc::new(State::default());
    let handle = Handle {
        requests: sender,
        state: Arc::clone(&state),
    };
    (handle, Inbox { requests, state })
}

impl Handle {
    /// For ports whose work is done on other threads.
    pub fn waker(&self) -> Waker {
        Waker(self.clone())
    }

    /// Puts an event before the engine: feedback from a provider.
    pub fn post(&self, event: Event) {
        self.ask(Request::Post(Box::new(event)));
    }

    /// What limits have held up so far, for metrics.
    pub fn meters(&self, then: Then<Meters>) {
        self.ask(Request::Meters { then });
    }

    /// Stops intake and new sends; the thread ends once all that is in flight
    /// is settled, or when this much time has passed. Whatever is not settled
    /// then is found again at the next start.
    pub fn shut_down(&self, within: Nanos) {
        self.state.closing.store(true, Ordering::Release);
        self.ask(Request::ShutDown { within });
    }

    /// A request to a node that is gone is dropped, and with it its callback.
    fn ask(&self, request: Request) {
        let _ = self.requests.send(request);
    }
}

impl Waker {
    /// The node looks at its ports soon.
    pub fn wake(&self) {
        if !self.0.state.woken.swap(true, Ordering::AcqRel) {
            self.0.ask(Request::Wake);
        }
    }
}

impl Intake for Handle {
    fn submit(&self, batch: Vec<Submission>, then: Then<Result<Vec<Taken>, Refused>>) {
        self.hand_over(batch, false, then);
    }

    fn submit_whole(&self, batch: Vec<Submission>, then: Then<Result<Vec<Taken>, Refused>>) {
        self.hand_over(batch, true, then);
    }
}

impl Handle {
    fn hand_over(
        &self,
        batch: Vec<Submission>,
        whole: bool,
        then: Then<Result<Vec<Taken>, Refused>>,
    ) {
        let waiting = Waiting::new(batch.len(), then);
        if self.state.closing.load(Ordering::Acquire) {
            waiting.answer(Err(Refused::Closing));
            return;
        }
        let Some(share) = self.state.load.take(&self.state, &batch) else {
            waiting.answer(Err(Refused::Busy));
            return;
        };
        let waiting = waiting.with_load(share);
        self.ask(Request::Submit {
            batch,
            whole,
            waiting,
        });
    }
}

impl Query for Handle {
    fn message(&self, seq: Seq, then: Then<Option<LiveMessage>>) {
        self.ask(Request::Message { seq, then });
    }

    fn explain(&self, seq: Seq, then: Then<Option<(LiveMessage, Explanation)>>) {
        self.ask(Request::Explain { seq, then });
    }

    fn messages(&self, filter: Filter, from: Seq, max: usize, then: Then<Page<LiveMessage>>) {
        let filter = Box::new(filter);
        self.ask(Request::Messages {
            filter,
            from,
            max,
            then,
        });
    }

    fn lanes(&self, then: Then<Vec<LaneView>>) {
        self.ask(Request::Lanes { then });
    }

    fn limits(&self, then: Then<Vec<LimitView>>) {
        self.ask(Request::Limits { then });
    }

    fn standings(&self, then: Then<Vec<Standing>>) {
        self.ask(Request::Standings { then });
    }

    fn tallies(&self, then: Then<Vec<TallyView>>) {
        self.ask(Request::Tallies { then });
    }

    fn depth(&self, then: Then<Depth>) {
        self.ask(Request::Depth { then });
    }

    fn flows_of(&self, tenant: Name, then: Then<(u64, u64)>) {
        self.ask(Request::FlowsOf { tenant, then });
    }
}

impl Lender for Handle {
    fn lend(&self, wants: Vec<Want>, class: Class, then: Then<Lent>) {
        self.ask(Request::Lend { wants, class, then });
    }

    fn give_back(&self, slots: Vec<(LimitKey, u32)>) {
        self.ask(Request::GiveBack { slots });
    }

    fn pause(&self, key: LimitKey, lasts: Nanos) {
        let key = Arc::new(key);
        self.post(Event::Paused { key, lasts });
    }
}

impl Control for Handle {
    fn set_policies(&self, policies: Policies) {
        let policies = Box::new(policies);
        self.post(Event::PolicyChanged { policies });
    }

    fn set_account(&self, account: AccountSpec) {
        let account = Box::new(account);
        self.post(Event::AccountChanged { account });
    }

    fn remove_account(&self, account: Name) {
        self.post(Event::AccountRemoved { account });
    }

    fn pause(&self, id: PauseId, matches: Match, until: Option<Wall>) {
        self.post(Event::Command(Command::Pause { id, matches, until }));
    }

    fn resume(&self, id: PauseId) {
        self.post(Event::Command(Command::Resume { id }));
    }

    fn cancel(&self, seq: Seq, then: Then<Touched>) {
        self.ask(Request::Cancel { seq, then });
    }

    fn retry(&self, seq: Seq, then: Then<Touched>) {
        self.ask(Request::Retry { seq, then });
    }

    fn bulk(&self, bulk: Bulk, matches: Match, dry_run: bool, then: Then<u64>) {
        self.ask(Request::Bulk {
            bulk,
            matches,
            dry_run,
            then,
        });
    }

    fn heard(&self, key: FlowKey, account: Option<Name>, counter: Counter, teller: Teller) {
        let key = Box::new(key);
        self.post(Event::Heard {
            key,
            account,
            counter,
            teller,
        });
    }

    fn feedback(&self, key: FlowKey, seq: Seq, reply: Reply) {
        let key = Box::new(key);
        self.ask(Request::Feedback { key, seq, reply });
    }

    fn tune(&self, key: LimitKey, tune: Tune) {
        let key = Arc::new(key);
        self.post(Event::Command(Command::Tune { key, tune }));
    }

    fn forget(&self, seqs: Vec<Seq>) {
        self.ask(Request::Forget { seqs });
    }
}
