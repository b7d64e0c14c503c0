//! A place where flows can wait: a limit, or the gate of a lane's pool.
//!
//! A place knows who waits here by class (in tag order), who is booked and
//! needs this place next (by age of ticket), and how much of what becomes
//! available is spoken for. It decides nothing by itself; see `turn`.

use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};

use super::node::NodeId;
use super::waits::PlaceWaits;
use crate::class::Class;
use crate::handle::{FlowId, LaneId};
use crate::limit::need::Need;
use crate::limit::token_bucket::TokenBucket;
use crate::limit::{Fill, Kind, Limit, Shape, Until};
use crate::time::{Mono, Nanos, Now};

/// A place's index. Limits and gates share one numbering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlaceId(pub u32);

/// What holds flows at a place.
#[derive(Debug)]
pub enum Holder {
    /// A limit that flows pass by themselves.
    Limit(Box<Limit>),
    /// A lane's gate: opens when an account is ready and has an idle session.
    Gate(LaneId),
}

/// The age of a booking. Older ones collect first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(pub u64);

/// Tokens of a costly place that a booked flow holds. The most urgent and
/// oldest comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Claim {
    pub class: Class,
    pub ticket: Ticket,
    pub flow: FlowId,
    pub cost: u32,
}

/// What must be there before a flow may pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    /// What it takes, and what is spoken for before it.
    pub need: Need,
    /// The tokens kept for higher classes now, which must be left.
    pub floor: Option<Need>,
}

impl Ask {
    /// Whole tokens, whatever is kept for others.
    pub(super) fn bare(tokens: u64) -> Self {
        Self {
            need: Need(tokens.saturating_mul(1_000)),
            floor: None,
        }
    }
}

/// What is spoken for at a place before somebody's turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spoken {
    /// Held by booked flows, or earned by a lower class.
    pub claimed: u64,
    /// Wanted by booked flows that come first.
    pub ahead: u64,
    /// Left to flows that come from another place.
    pub reserve: Need,
}

/// The waiters of one class.
#[derive(Debug)]
pub(super) struct ClassQueue {
    /// Nodes with waiting flows, by tag and then by arrival.
    pub nodes: BTreeSet<(u64, u64, NodeId)>,
    /// The sum of their weights.
    pub weight: u64,
    /// `v`: the start tag last served.
    pub virtual_time: u64,
    /// What this class may take out of turn, in thousandths of a token.
    pub credit: u64,
    /// Costs of all booked flows of this class that need this place.
    pub soft: u64,
    /// What `soft` was when the place last got other numbers: it may exceed the
    /// new depth for as long as it takes to work that off.
    pub soft_before: u64,
    /// Costs of those that stand in this place's own book.
    pub booked: u64,
    /// Flows that wait or are booked here, and how many came since the pool
    /// was last told.
    pub standing: u32,
    pub came: u32,
}

impl ClassQueue {
    const EMPTY: Self = Self {
        nodes: BTreeSet::new(),
        weight: 0,
        virtual_time: 0,
        credit: 0,
        soft: 0,
        soft_before: 0,
        booked: 0,
        standing: 0,
        came: 0,
    };
}

/// The waiters of all classes. There are many lanes, and most are quiet: room
/// is made when somebody first comes.
#[derive(Debug, Default)]
pub(super) struct ClassQueues(Option<Box<[ClassQueue; Class::COUNT]>>);

static NOBODY: [ClassQueue; Class::COUNT] = [const { ClassQueue::EMPTY }; Class::COUNT];

impl Deref for ClassQueues {
    type Target = [ClassQueue; Class::COUNT];
    fn deref(&self) -> &Self::Target {
        self.0.as_deref().unwrap_or(&NOBODY)
    }
}

impl DerefMut for ClassQueues {
    fn deref_mut(&mut self) -> &mut Self::Target {
        let new = || Box::new([const { ClassQueue::EMPTY }; Class::COUNT]);
        self.0.get_or_insert_with(new)
    }
}

/// A place and everything that waits at it.
#[derive(Debug)]
pub struct Place {
    pub(super) holder: Holder,
    pub(super) shape: Shape,
    pub(super) classes: ClassQueues,
    /// Booked flows that need this place next, most urgent class and oldest
    /// ticket first.
    pub(super) book: BTreeSet<(Class, Ticket, FlowId)>,
    /// Tokens held by booked flows, costly places only: a few.
    pub(super) claims: Vec<Claim>,
    /// A sliding window admits in lumps, and a flow that needs nothing else
    /// would take each lump whole while others collect what they lack. So while
    /// others may come, those who wait here go at the window's mean rate.
    pub(super) pacer: Option<Box<TokenBucket>>,
    /// How many flows that need this place have something to send.
    pub(super) active: u32,
    /// How many of them wait here.
    pub(super) waiting: u32,
    /// Costs of all booked flows that need this place, of all classes.
    pub(super) soft_all: u64,
    /// The largest cost seen here.
    pub(super) cost_max: u32,
    /// When the place wants to be looked at again.
    pub(super) timer: Mono,
    /// Whether it stands in the list of places to be served.
    pub(super) marked: bool,
    /// Whether it stands in the list of gates that the pool must hear of.
    pub(super) gate_changed: bool,
    /// Whether it spends tokens that a ledger granted or the journal reserved.
    pub(super) is_fed: bool,
    pub(super) fed_noted: bool,
    /// Tokens taken since the feeder last asked, and when it wants a look.
    pub(super) spent: u32,
    pub(super) look_at: Mono,
    /// The mean time between grants, for places without a rate.
    pub(super) pace: Nanos,
    pub(super) granted_at: Mono,
    /// Where and how waits here are counted.
    pub(super) wait_group: u8,
    pub(super) waits: PlaceWaits,
    /// Nothing is here: the number can be given again.
    pub(super) is_free: bool,
}

impl Place {
    pub(super) fn new(holder: Holder) -> Self {
        let shape = match &holder {
            Holder::Limit(limit) => limit.shape(),
            Holder::Gate(_) => Shape {
                kind: Kind::Concurrency,
                capacity: u32::MAX,
                rate: None,
            },
        };
        let is_fed = match &holder {
            Holder::Limit(limit) => limit.is_leased() || limit.needs_reserve(),
            Holder::Gate(_) => false,
        };
        Self {
            holder,
            shape,
            classes: ClassQueues::default(),
            book: BTreeSet::new(),
            claims: Vec::new(),
            pacer: pacer_of(shape),
            active: 0,
            waiting: 0,
            soft_all: 0,
            cost_max: 1,
            timer: Mono::NEVER,
            marked: false,
            gate_changed: false,
            is_fed,
            fed_noted: false,
            spent: 0,
            look_at: Mono::NEVER,
            pace: Nanos::from_millis(100),
            granted_at: Mono(0),
            wait_group: 0,
            waits: PlaceWaits::default(),
            is_free: false,
        }
    }

    /// No place: its number is free.
    pub(super) fn nowhere() -> Self {
        Self {
            is_free: true,
            ..Self::new(Holder::Gate(LaneId(u32::MAX)))
        }
    }

    /// The limit here has other numbers, and perhaps spends other tokens.
    pub(super) fn reshape(&mut self, shape: Shape, is_fed: bool) {
        self.shape = shape;
        self.pacer = pacer_of(shape);
        self.is_fed = is_fed;
        for queue in self.classes.iter_mut() {
            queue.soft_before = queue.soft;
        }
    }

    pub(super) fn class(&self, class: Class) -> &ClassQueue {
        self.classes
            .get(class.index())
            .expect("one queue per class")
    }

    pub(super) fn class_mut(&mut self, class: Class) -> &mut ClassQueue {
        self.classes
            .get_mut(class.index())
            .expect("one queue per class")
    }

    pub(super) fn is_gate(&self) -> bool {
        matches!(self.holder, Holder::Gate(_))
    }

    /// A bucket with room for two of this cost: it can be kept above zero at no
    /// loss, so nobody needs to hold its tokens while collecting others.
    pub(super) fn is_cheap(&self, cost: u32) -> bool {
        self.shape.kind == Kind::TokenBucket && self.shape.capacity >= cost.saturating_mul(2).max(2)
    }

    /// The oldest booked flow of a class in this place's book.
    pub(super) fn first_booked(&self, class: Class) -> Option<FlowId> {
        let from = (class, Ticket(0), FlowId(0));
        let &(of, _, flow) = self.book.range(from..).next()?;
        (of == class).then_some(flow)
    }

    /// What flows of this class or a higher one hold here. A less urgent claim
    /// gives way.
    pub(super) fn claimed_from(&self, class: Class) -> u64 {
        let claims = self.claims.iter().filter(|claim| claim.class <= class);
        claims.map(|claim| u64::from(claim.cost)).sum()
    }

    /// Whether nobody waits here, is booked for it or holds any of it.
    pub(super) fn is_quiet(&self) -> bool {
        self.waiting == 0 && self.soft_all == 0 && self.claims.is_empty()
    }

    /// Whether anybody waits or is booked here.
    pub(super) fn is_wanted(&self) -> bool {
        !self.book.is_empty() || self.classes.iter().any(|queue| !queue.nodes.is_empty())
    }

    /// The most urgent class that waits or is booked here.
    pub(super) fn most_urgent(&self) -> Option<Class> {
        let booked = self.book.first().map(|&(class, ..)| class);
        let waits = |class: &Class| !self.class(*class).nodes.is_empty();
        let waiting = Class::ALL.into_iter().find(waits);
        booked.into_iter().chain(waiting).min()
    }

    /// Whether anybody of this class or a higher one waits here.
    pub(super) fn has_waiters_from(&self, class: Class) -> bool {
        self.classes
            .iter()
            .take(class.index() + 1)
            .any(|queue| !queue.nodes.is_empty())
    }

    /// Whether anybody of a class above this one waits here.
    pub(super) fn has_waiters_above(&self, class: Class) -> bool {
        self.classes
            .iter()
            .take(class.index())
            .any(|queue| !queue.nodes.is_empty())
    }

    /// Whether anybody of a class below this one waits or is booked here.
    pub(super) fn has_demand_below(&self, class: Class) -> bool {
        self.classes
            .iter()
            .skip(class.index() + 1)
            .any(|queue| !queue.nodes.is_empty() || queue.soft > 0)
    }

    /// What higher classes are booked for here, wherever they stand.
    pub(super) fn soft_above(&self, class: Class) -> u64 {
        self.classes
            .iter()
            .take(class.index())
            .map(|queue| queue.soft)
            .sum()
    }

    /// What the booked flows of a class that need this place may cost in all:
    /// half of what it holds, within bounds, and always one message. Whoever
    /// finds no room waits in a queue instead. Else tickets would pile up at
    /// places that open rarely, ahead of all who wait and of all lower classes.
    pub(super) fn book_depth(&self) -> u64 {
        let half = match self.is_gate() {
            true => 0,
            false => u64::from(self.shape.capacity / 2),
        };
        half.clamp(BOOK_DEPTH_MIN, BOOK_DEPTH_MAX)
            .max(u64::from(self.cost_max))
    }

    /// Tokens spoken for before a newcomer of this class.
    pub(super) fn ahead(&self, class: Class) -> u64 {
        self.soft_above(class) + self.class(class).booked
    }

    /// The tokens kept for higher classes.
    pub(super) fn floor(&self, now: &Now, class: Class) -> Need {
        match &self.holder {
            Holder::Limit(limit) => limit.floor(now, class, self.cost_max),
            Holder::Gate(_) => Need::ZERO,
        }
    }

    /// What must be available so that a flow of this cost takes nothing from
    /// those that come `before` it, and leaves the `floor` of its class. A full place is asked for no more than it holds: what
    /// accrues there is lost, and who is booked for it stands elsewhere.
    pub(super) fn ask(&self, cost: u32, before: Spoken, floor: Need) -> Ask {
        let least = before.claimed + u64::from(cost);
        let wanted =
            Need(least.saturating_add(before.ahead).saturating_mul(1_000)) + before.reserve;
        let most = Need::whole(self.shape.capacity).minus(floor);
        Ask {
            need: wanted.min(most.max(Need(least.saturating_mul(1_000)))),
            floor: Some(floor),
        }
    }

    /// The same for a flow with nobody before it.
    pub(super) fn ask_alone(&self, now: &Now, class: Class, cost: u32) -> Ask {
        Ask {
            need: Need(u64::from(cost) * 1_000),
            floor: Some(self.floor(now, class)),
        }
    }

    /// `R`: what waiters of this place leave for flows that come from another.
    pub(super) fn reserve(&self, class: Class, floor: Need) -> Need {
        let queue = self.class(class);
        if self.is_leased() || (queue.nodes.len() == 1 && self.has_demand_below(class)) {
            return Need::ZERO;
        }
        let burst = Need::whole(self.shape.capacity).minus(floor);
        let cost = Need::whole(self.cost_max);
        let spare = burst.minus(cost).0;
        if burst.0 >= 3 * cost.0 {
            Need((spare * 2 / 5).max(cost.0))
        } else {
            Need(spare / 2)
        }
    }

    /// When the pacer lets a waiter go; at once if there is none, or while much
    /// of the window is left.
    pub(super) fn paced_until(&self, now: &Now, class: Class, cost: u32) -> Mono {
        let Some(pacer) = &self.pacer else {
            return now.mono;
        };
        let plenty = Ask {
            need: Need(u64::from(self.shape.capacity) * 1_000 / PACED_BELOW),
            floor: None,
        };
        match pacer.until(now.mono, Need::whole(cost)) {
            Until::At(at) => match self.until(now, class, plenty) {
                Until::Now => now.mono,
                Until::At(plenty_at) => at.min(plenty_at),
                Until::Released | Until::Granted | Until::Never => at,
            },
            _ => now.mono,
        }
    }

    pub(super) fn is_leased(&self) -> bool {
        matches!(&self.holder, Holder::Limit(limit) if limit.is_leased())
    }

    /// Whether what is asked for is there: [`Place::until`] says when.
    pub(super) fn fits(&self, now: &Now, class: Class, ask: Ask) -> bool {
        let floor = ask.floor.unwrap_or(Need::ZERO);
        match &self.holder {
            Holder::Limit(limit) => limit.fits_above(now, class, ask.need, floor),
            Holder::Gate(_) => false,
        }
    }

    /// When what is asked for is there. The floor may sink meanwhile.
    pub(super) fn until(&self, now: &Now, class: Class, ask: Ask) -> Until {
        match &self.holder {
            Holder::Limit(limit) if ask.floor.is_some() => {
                limit.until_above_floor(now, class, ask.need, self.cost_max)
            }
            Holder::Limit(limit) => limit.until(now, class, ask.need),
            Holder::Gate(_) => Until::Released,
        }
    }

    /// The time in which this place gives out `amount`, as far as it knows.
    pub(super) fn time_for(&self, amount: Need) -> Nanos {
        match self.shape.rate {
            Some(rate) => Nanos(rate.time_for(amount.0).0 / 1_000),
            None => Nanos(self.pace.0.saturating_mul(amount.0) / 1_000),
        }
    }

    /// Notes a grant, for the pace of places without a rate.
    pub(super) fn note_grant(&mut self, now: Mono, cost: u32) {
        if let Some(pacer) = &mut self.pacer
            && pacer.fits(now, Need::whole(cost))
        {
            pacer.take(now, cost);
        }
        let gap = now.since(self.granted_at);
        self.granted_at = now;
        // An idle stretch says nothing about the pace under demand.
        let gap = gap.0.min(self.pace.0.saturating_mul(4).max(1_000));
        self.pace = Nanos((self.pace.0 * 7 + gap) / 8);
    }
}

/// The bounds of [`Place::book_depth`].
const BOOK_DEPTH_MIN: u64 = 8;
const BOOK_DEPTH_MAX: u64 = 256;
/// The share of a window that may be taken in one go while others may come.
const PACER_SHARE: u32 = 32;
/// A window is paced when less than one part in so many of it is left.
const PACED_BELOW: u64 = 4;

fn pacer_of(shape: Shape) -> Option<Box<TokenBucket>> {
    let rate = shape.rate.filter(|_| shape.kind == Kind::SlidingWindow)?;
    let burst = (shape.capacity / PACER_SHARE).max(2);
    let pacer = TokenBucket::new(rate, burst, Mono(0), Fill::Full);
    Some(Box::new(pacer))
}
