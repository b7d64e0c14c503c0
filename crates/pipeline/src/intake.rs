//! New messages on their way to the disk.
//!
//! What is not yet durable is bounded: beyond that the caller hears "later"
//! instead of a promise that memory would have to keep. So are the flows that
//! messages open: one that would open too many is told so by itself, and what is
//! said of a batch is put together again when the rest of it is durable.

use std::collections::VecDeque;

use outflow_core::engine::Engine;
use outflow_core::engine::action::Action;
use outflow_core::engine::admission::{FlowCap, TooManyFlows};
use outflow_core::flow::FlowKey;
use outflow_core::handle::FlowId;
use outflow_core::name::Name;
use outflow_core::time::Now;
use outflow_ports::intake::{Given, Submission, Taken};
use outflow_ports::store::BatchId;

/// Messages that may be on their way to the disk at once.
pub(crate) const PENDING_MAX: usize = 100_000;

/// What a batch is let in with.
#[derive(Debug, Default)]
pub(crate) struct Admitted {
    /// The flows of the messages that are let in, in order.
    pub flows: Vec<FlowId>,
    /// The places of those that are not.
    pub refused: Vec<(usize, TooManyFlows)>,
}

/// Opens the flows of a batch, and takes those messages out of it for which
/// there is no room.
pub(crate) fn admit(
    engine: &mut Engine,
    now: &Now,
    batch: &mut Vec<Submission>,
    actions: &mut Vec<Action>,
) -> Admitted {
    let mut admitted = Admitted {
        flows: Vec::with_capacity(batch.len()),
        refused: Vec::new(),
    };
    let mut told = Told::default();
    let mut place = 0;
    batch.retain(|submission| {
        let key = &submission.key;
        let flow = engine.admit_flow(now, key, actions);
        match flow {
            Ok(flow) => admitted.flows.push(flow),
            Err(cap) => admitted.refused.push((place, told.of(engine, key, cap))),
        }
        place += 1;
        flow.is_ok()
    });
    admitted
}

/// Whether all messages of a batch can be let in: else why none is.
pub(crate) fn admits_all(engine: &Engine, batch: &[Submission]) -> Result<(), TooManyFlows> {
    let keys = batch.iter().map(|submission| &submission.key);
    let all = engine.admits_all(keys);
    all.map_err(|(key, cap)| Told::default().of(engine, key, cap))
}

/// What the last one refused was told: the next one, as a rule, is told the same.
#[derive(Default)]
struct Told(Option<(Name, TooManyFlows)>);

impl Told {
    fn of(&mut self, engine: &Engine, key: &FlowKey, cap: FlowCap) -> TooManyFlows {
        match &self.0 {
            Some((tenant, told)) if told.cap == cap && *tenant == key.tenant => *told,
            _ => {
                let field = engine.crowded_field(key, cap);
                let told = TooManyFlows { cap, field };
                self.0 = Some((key.tenant.clone(), told));
                told
            }
        }
    }
}

/// Messages that were not let in, until the rest of their batch is answered for.
#[derive(Debug, Default)]
pub(crate) struct RefusedPlaces {
    batches: VecDeque<(BatchId, Vec<(usize, TooManyFlows)>)>,
}

impl RefusedPlaces {
    pub fn keep(&mut self, batch: BatchId, refused: Vec<(usize, TooManyFlows)>) {
        if !refused.is_empty() {
            self.batches.push_back((batch, refused));
        }
    }

    /// What became of each message of a batch, those that were not let in
    /// included.
    pub fn together(&mut self, batch: BatchId, given: Vec<Given>) -> Vec<Taken> {
        let at = self.batches.iter().position(|&(id, _)| id == batch);
        let refused = at.and_then(|at| self.batches.remove(at));
        let Some((_, refused)) = refused else {
            return given.into_iter().map(Ok).collect();
        };
        let mut all = Vec::with_capacity(given.len() + refused.len());
        let mut given = given.into_iter();
        for (place, why) in refused {
            let before = place.saturating_sub(all.len());
            all.extend(given.by_ref().take(before).map(Ok));
            all.push(Err(why));
        }
        all.extend(given.map(Ok));
        all
    }

    /// Nothing of the batch was stored.
    pub fn forget(&mut self, batch: BatchId) {
        self.batches.retain(|&(id, _)| id != batch);
    }
}
