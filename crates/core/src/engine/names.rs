//! Flows share the names that they have in common.
//!
//! Every submission brings names of its own. A flow that is made of one keeps
//! them for as long as it lives, so it takes the copies that others have.

use std::sync::Arc;

use super::Engine;
use crate::flow::FlowKey;
use crate::name::Name;

impl Engine {
    /// Has a new flow use the names of its tenant and pool as they are known
    /// already, and what else the flow before it has too.
    pub(super) fn share_names(&self, key: &mut FlowKey) {
        if let Some(tenant) = self.tenants.name(&key.tenant) {
            key.tenant = tenant.clone();
        }
        if let Some(pool) = self.counter.desk.pool_name(&key.pool) {
            key.pool = pool.clone();
        }
        if let Some(before) = &self.counter.last_opened {
            share(&mut key.campaign, &before.campaign);
            share(&mut key.sender_domain, &before.sender_domain);
        }
    }

    /// The next flow may share the names of this one.
    pub(super) fn note_opened(&mut self, key: &Arc<FlowKey>) {
        self.counter.last_opened = Some(Arc::clone(key));
    }
}

fn share(name: &mut Option<Name>, before: &Option<Name>) {
    if name == before {
        name.clone_from(before);
    }
}
