//! How often the limits of an account made messages wait.
//!
//! Flows do not wait at an account's limits but at the gates of its pool. So
//! what an account's limits hold up is counted there: each head that stands at
//! a gate of the pool when the limits shut for its class, or comes to one
//! before they open again, counts once for each time they shut. That is when
//! a sender with this one account would have put the message off.
//!
//! Nothing is done per account and message: a pool counts heads as they come,
//! an account remembers that count when it shuts.

use crate::class::Class;
use crate::pool::ClassMask;

/// One number for each class.
pub(super) type ByClass = [u64; Class::COUNT];

/// The heads at the gates of one pool.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AtGates {
    /// Those that ever came.
    came: ByClass,
    /// Those that are there now.
    standing: ByClass,
}

impl AtGates {
    /// So many came to a gate, and where `before` stood there now `standing` do.
    pub fn tell(&mut self, came: &ByClass, before: &ByClass, standing: &ByClass) {
        for (mine, came) in self.came.iter_mut().zip(came) {
            *mine += came;
        }
        let changes = before.iter().zip(standing);
        for (mine, (before, standing)) in self.standing.iter_mut().zip(changes) {
            *mine = (*mine + standing).saturating_sub(*before);
        }
    }

    /// Heads that came and did not stand there when somebody began to count.
    fn begin(&self, class: Class) -> u64 {
        let came = of(&self.came, class);
        came.saturating_sub(of(&self.standing, class))
    }

    fn since(&self, class: Class, begin: u64) -> u64 {
        of(&self.came, class).saturating_sub(begin)
    }
}

/// What the limits of one account held up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Holdups {
    /// Classes for which its limits are shut.
    shut: ClassMask,
    /// Those of them from which on heads are counted.
    counting: ClassMask,
    begin: ByClass,
    held: u64,
}

impl Holdups {
    /// The limits are open for these classes now; whether [`Holdups::begin`]
    /// is to be called once the gates are told.
    pub fn set_open(&mut self, open: ClassMask, gates: &AtGates) -> bool {
        let shut = ClassMask::ALL.minus(open);
        if shut == self.shut {
            return false;
        }
        let opened = self.counting.and(open);
        self.held += self.counted(opened, gates);
        self.counting = self.counting.minus(opened);
        self.shut = shut;
        self.counting != shut
    }

    /// Begins to count for classes that were shut since this was last called.
    pub fn begin(&mut self, gates: &AtGates) {
        for class in Class::ALL {
            if self.shut.contains(class)
                && !self.counting.contains(class)
                && let Some(begin) = self.begin.get_mut(class.index())
            {
                *begin = gates.begin(class);
            }
        }
        self.counting = self.shut;
    }

    /// Classes for which the limits are shut.
    pub const fn shut(&self) -> ClassMask {
        self.shut
    }

    /// How many heads the limits held up so far.
    pub fn held(&self, gates: &AtGates) -> u64 {
        self.held + self.counted(self.counting, gates)
    }

    fn counted(&self, classes: ClassMask, gates: &AtGates) -> u64 {
        Class::ALL
            .into_iter()
            .filter(|&class| classes.contains(class))
            .map(|class| gates.since(class, of(&self.begin, class)))
            .sum()
    }
}

fn of(counts: &ByClass, class: Class) -> u64 {
    counts.get(class.index()).copied().unwrap_or(0)
}
