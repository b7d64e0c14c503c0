//! What a client of the throttle says: within bounds, the same in whatever pieces
//! it comes, and nothing but a greeting without a token.

use std::sync::Mutex;

use outflow_core::policy::key::LimitKey;
use outflow_core::throttle::cell::{Answer, Cell};
use outflow_core::throttle::look::Look;
use outflow_core::throttle::{Permit, Ticket};
use outflow_core::time::Nanos;
use outflow_intake_resp::session::{Next, Peers, Session};
use outflow_intake_resp::{Doorkeeper, Pass};
use outflow_ports::throttle::{
    Acquire, Acquired, CellReply, ReleasedBy, Reply, ThenAcquired, ThrottleError, ThrottleUsage,
    Throttling,
};

const TOKEN: &str = "t";

/// Grants everything and counts what it is asked.
#[derive(Default)]
struct Generous(Mutex<usize>);

impl Generous {
    fn count(&self) {
        *self.0.lock().expect("nobody panicked") += 1;
    }
}

impl Throttling for Generous {
    fn cell(&self, cell: &Cell<'_>, _: &mut dyn FnMut() -> ThenAcquired) -> CellReply {
        self.count();
        assert!(cell.burst > 0 && cell.rate.count > 0 && cell.rate.per > Nanos::ZERO);
        CellReply::Now(Ok(Answer {
            limited: false,
            limit: cell.burst,
            remaining: 0,
            retry_after: -1,
            reset_after: 0,
        }))
    }

    fn acquire(&self, acquire: &Acquire<'_>, _: &mut dyn FnMut() -> ThenAcquired) -> Reply {
        self.count();
        assert!((1..=16).contains(&acquire.limits.len()));
        Reply::Now(Ok(Acquired::Granted(None)))
    }

    fn cancel(&self, _: Ticket) {}

    fn release(&self, _: ReleasedBy<'_>, _: Permit) -> bool {
        self.count();
        true
    }

    fn pause(&self, _: Option<&str>, _: &str, _: Nanos) -> Result<(), ThrottleError> {
        self.count();
        Ok(())
    }

    fn of_policies(&self, _: Option<&str>, _: &str) -> Option<LimitKey> {
        None
    }

    fn pause_limit(&self, _: &LimitKey, _: Nanos) -> Result<(), ThrottleError> {
        self.count();
        Ok(())
    }

    fn resume_limit(&self, _: &LimitKey) {}

    fn usage_of(&self, _: &str) -> ThrottleUsage {
        ThrottleUsage::default()
    }

    fn look(&self, _: &Acquire<'_>) -> Vec<(usize, Look)> {
        Vec::new()
    }
}

struct Door;

impl Doorkeeper for Door {
    fn admit(&self, token: &str) -> Option<Pass> {
        (token == TOKEN).then(Pass::default)
    }
}

/// What is said in pieces of this size; how often the throttle was asked, and
/// whether a token was shown at all.
fn feed(bytes: &[u8], piece: usize) -> (Vec<u8>, usize, bool) {
    let throttle = Generous::default();
    let peers = Peers {
        throttle: &throttle,
        doorkeeper: &Door,
    };
    let mut session = Session::new(1);
    let (mut buffer, mut out, mut all) = (Vec::new(), Vec::new(), Vec::new());
    let mut was_known = false;
    'pieces: for piece in bytes.chunks(piece.max(1)) {
        buffer.extend_from_slice(piece);
        loop {
            let (used, next) = session.run(&buffer, &mut out, &peers, &mut || Box::new(|_| ()));
            buffer.drain(..used);
            all.append(&mut out);
            was_known |= session.is_known();
            match next {
                Next::Read => break,
                Next::Write => {}
                Next::Wait(_) => unreachable!("everything is granted"),
                Next::Close => break 'pieces,
            }
        }
    }
    let asked = *throttle.0.lock().expect("nobody panicked");
    (all, asked, was_known)
}

pub fn run(bytes: &[u8]) {
    let whole = feed(bytes, bytes.len());
    for piece in [1, 7] {
        assert_eq!(feed(bytes, piece), whole);
    }
    let (said, asked, was_known) = whole;
    assert!(was_known || asked == 0, "the throttle answered a stranger");
    assert!(said.is_empty() || said.ends_with(b"\r\n"));
}
