//! Memory for bodies of requests, and for long answers to them.
//!
//! It is charged for what arrives, not for what is announced, so that whoever
//! announces much and sends nothing occupies nothing. No tenant, and no token
//! without one, has more than half of it: a part of that size is needed by the
//! largest request. An eighth is kept for administrators, who are not bounded:
//! what is wrong must be mended by a request too.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use outflow_core::fair::Shares;

use crate::auth::Caller;
use crate::grant::Scope;
use crate::problem::{Code, Problem};

/// The part of one party, and the part that is kept for administrators.
const EACH: usize = 2;
const KEPT: usize = 8;
/// An answer is handed on in pieces of this size, so that it counts until its
/// reader has taken it.
const PIECE_BYTES: usize = 64 << 10;

/// The memory that all bodies share.
#[derive(Debug)]
pub struct BodyMemory {
    bytes_max: usize,
    /// The largest request: whoever may send it must find room for it.
    request_max: usize,
    used: Mutex<Shares>,
}

/// What one request has of it.
#[derive(Debug)]
pub struct Share {
    memory: Arc<BodyMemory>,
    holder: String,
    is_admin: bool,
    bytes: usize,
}

impl BodyMemory {
    /// So many bytes, for requests of which the largest has `request_max`.
    pub fn new(bytes_max: usize, request_max: usize) -> Arc<Self> {
        Arc::new(Self {
            bytes_max,
            request_max: request_max.min(bytes_max),
            used: Mutex::new(Shares::of(bytes_max as u64)),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Shares> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How much a party has, and how much more it may have now.
    pub fn of_party(&self, party: &str) -> (u64, u64) {
        let used = self.lock();
        (used.own(party), self.room(&used, party, false))
    }

    fn room(&self, used: &Shares, party: &str, is_admin: bool) -> u64 {
        let (max, least) = (self.bytes_max, self.request_max);
        let (all_max, own_max) = match is_admin {
            true => (max, max),
            false => ((max - max / KEPT).max(least), (max / EACH).max(least)),
        };
        let free = (all_max as u64).saturating_sub(used.all());
        free.min((own_max as u64).saturating_sub(used.own(party)))
    }

    /// Nothing yet, for a request of this caller.
    pub fn share(self: &Arc<Self>, caller: Option<&Caller>) -> Share {
        let is_admin = |caller: &Caller| caller.scope == Scope::Admin && caller.tenant.is_none();
        Share {
            memory: Arc::clone(self),
            holder: caller.map_or_else(String::new, |caller| caller.party().to_owned()),
            is_admin: caller.is_some_and(is_admin),
            bytes: 0,
        }
    }
}

impl Share {
    /// Takes so many bytes more, if there is room.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Problem> {
        let mut used = self.memory.lock();
        if bytes as u64 > self.memory.room(&used, &self.holder, self.is_admin) {
            let detail = "too much is being read at once";
            return Err(Problem::later(Code::Busy, 1, detail));
        }
        used.force(self.holder.as_str(), bytes as u64);
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut used = self.memory.lock();
        used.give_back(self.holder.as_str(), self.bytes as u64);
    }
}

/// An answer that counts until it is read.
struct Charged {
    rest: Bytes,
    _share: Share,
}

/// A body of these bytes that keeps a share until its reader has it.
pub fn charged(bytes: Vec<u8>, share: Share) -> Body {
    if bytes.len() <= PIECE_BYTES {
        return Body::new(Full::from(bytes));
    }
    Body::new(Charged {
        rest: bytes.into(),
        _share: share,
    })
}

impl HttpBody for Charged {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let bytes = self.rest.len().min(PIECE_BYTES);
        let piece = self.rest.split_to(bytes);
        Poll::Ready((!piece.is_empty()).then(|| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(memory: &Arc<BodyMemory>, name: &str, is_admin: bool) -> Share {
        let mut share = memory.share(None);
        share.holder = name.to_owned();
        share.is_admin = is_admin;
        share
    }

    #[test]
    fn nobody_takes_all_and_administrators_find_room() {
        let memory = BodyMemory::new(800, 100);
        let (mut one, mut two) = (share(&memory, "a", false), share(&memory, "a", false));
        let (mut other, mut admin) = (share(&memory, "b", false), share(&memory, "root", true));
        assert!(one.grow(300).is_ok());
        assert!(two.grow(101).is_err(), "of the same token");
        assert!(two.grow(100).is_ok());
        assert!(other.grow(301).is_err(), "kept for administrators");
        assert!(other.grow(300).is_ok());
        assert!(admin.grow(101).is_err());
        assert!(admin.grow(100).is_ok());
        drop(one);
        assert!(two.grow(200).is_ok(), "what was given back is there again");
        drop((two, other, admin));
        assert_eq!(memory.of_party("a"), (0, 400));
        assert_eq!(memory.lock().all(), 0);
    }
}
