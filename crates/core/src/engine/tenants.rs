//! Tenants with flows: the numbers by which they share limits, and how many
//! flows each has. A tenant without flows is forgotten.

use std::collections::BTreeMap;

use crate::free_numbers::FreeNumbers;
use crate::name::Name;
use crate::schedule::TenantId;

/// One tenant.
#[derive(Clone, Copy, Debug)]
struct Tenant {
    id: TenantId,
    flows: usize,
}

/// All tenants that have flows.
#[derive(Debug, Default)]
pub(super) struct Tenants {
    by_name: BTreeMap<Name, Tenant>,
    free: FreeNumbers,
    end: u32,
}

impl Tenants {
    /// A tenant has one flow more.
    pub fn join(&mut self, name: &Name) {
        if let Some(tenant) = self.by_name.get_mut(name) {
            tenant.flows += 1;
            return;
        }
        let number = self.free.take(self.end as usize).unwrap_or_else(|| {
            self.end += 1;
            self.end - 1
        });
        let id = TenantId(number);
        self.by_name.insert(name.clone(), Tenant { id, flows: 1 });
    }

    /// A tenant has one flow less.
    pub fn leave(&mut self, name: &Name) {
        if let Some(tenant) = self.by_name.get_mut(name) {
            tenant.flows -= 1;
            if tenant.flows == 0 {
                self.free.give(tenant.id.0);
                self.by_name.remove(name);
            }
        }
    }

    /// The number of a tenant that has flows.
    pub fn id(&self, name: &Name) -> TenantId {
        let tenant = self.by_name.get(name);
        tenant.expect("a tenant of a flow is known").id
    }

    /// The name of a tenant that has flows, as it is kept here.
    pub fn name(&self, name: &Name) -> Option<&Name> {
        self.by_name.get_key_value(name).map(|(known, _)| known)
    }

    /// How many flows a tenant has.
    pub fn flows(&self, name: &Name) -> usize {
        self.by_name.get(name).map_or(0, |tenant| tenant.flows)
    }

    /// How many tenants have flows.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }
}
