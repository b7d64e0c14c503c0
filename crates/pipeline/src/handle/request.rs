//! What can be asked of a node.

use std::fmt;

use outflow_core::class::Class;
use outflow_core::engine::event::Event;
use outflow_core::engine::explain::Explanation;
use outflow_core::engine::lend::{Lent, Want};
use outflow_core::engine::standing::Standing;
use outflow_core::flow::FlowKey;
use outflow_core::message::Seq;
use outflow_core::name::Name;
use outflow_core::policy::key::LimitKey;
use outflow_core::policy::matcher::Match;
use outflow_core::reply::Reply;
use outflow_core::time::Nanos;
use outflow_ports::control::{Bulk, Touched};
use outflow_ports::intake::{Refused, Submission, Taken, Then};
use outflow_ports::query::{Depth, Filter, LaneView, LimitView, LiveMessage, Page, TallyView};

use super::load::Share;
use crate::questions::Meters;

/// One request, with the way back for its answer.
pub(crate) enum Request {
    Submit {
        batch: Vec<Submission>,
        /// Whether all of it is taken or nothing.
        whole: bool,
        waiting: Waiting,
    },
    Message {
        seq: Seq,
        then: Then<Option<LiveMessage>>,
    },
    Explain {
        seq: Seq,
        then: Then<Option<(LiveMessage, Explanation)>>,
    },
    Messages {
        filter: Box<Filter>,
        from: Seq,
        max: usize,
        then: Then<Page<LiveMessage>>,
    },
    Standings {
        then: Then<Vec<Standing>>,
    },
    Lanes {
        then: Then<Vec<LaneView>>,
    },
    Limits {
        then: Then<Vec<LimitView>>,
    },
    Tallies {
        then: Then<Vec<TallyView>>,
    },
    Depth {
        then: Then<Depth>,
    },
    FlowsOf {
        tenant: Name,
        then: Then<(u64, u64)>,
    },
    Meters {
        then: Then<Meters>,
    },
    Cancel {
        seq: Seq,
        then: Then<Touched>,
    },
    Retry {
        seq: Seq,
        then: Then<Touched>,
    },
    Bulk {
        bulk: Bulk,
        matches: Match,
        dry_run: bool,
        then: Then<u64>,
    },
    Feedback {
        key: Box<FlowKey>,
        seq: Seq,
        reply: Reply,
    },
    Forget {
        seqs: Vec<Seq>,
    },
    Lend {
        wants: Vec<Want>,
        class: Class,
        then: Then<Lent>,
    },
    GiveBack {
        slots: Vec<(LimitKey, u32)>,
    },
    Post(Box<Event>),
    ShutDown {
        within: Nanos,
    },
    Wake,
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Request")
    }
}

/// A caller that waits for a batch. It is answered whatever happens.
pub(crate) struct Waiting {
    /// How many messages are its.
    pub count: usize,
    then: Option<Then<Result<Vec<Taken>, Refused>>>,
    /// What it hears if nobody answers.
    otherwise: Refused,
    share: Option<Share>,
}

impl Waiting {
    pub fn new(count: usize, then: Then<Result<Vec<Taken>, Refused>>) -> Self {
        Self {
            count,
            then: Some(then),
            otherwise: Refused::Closing,
            share: None,
        }
    }

    pub fn with_load(mut self, share: Share) -> Self {
        self.share = Some(share);
        self
    }

    /// Its messages are on their way to the disk: from now on nobody knows.
    pub fn submitted(&mut self) {
        self.otherwise = Refused::NotStored;
    }

    pub fn answer(mut self, answer: Result<Vec<Taken>, Refused>) {
        self.say(answer);
    }

    fn say(&mut self, answer: Result<Vec<Taken>, Refused>) {
        // Whoever hears the answer may submit again: there is room by then.
        self.share = None;
        if let Some(then) = self.then.take() {
            then(answer);
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.say(Err(self.otherwise));
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Waiting({})", self.count)
    }
}
