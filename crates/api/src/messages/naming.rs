//! Message-IDs: fixed at acceptance, so that a duplicate can be recognised.

pub use outflow_ports::naming::Naming;

use crate::grant::NoEntropy;

/// Names messages for this process.
pub fn of_this_process() -> Result<Naming, NoEntropy> {
    let mut process = [0; 8];
    getrandom::fill(&mut process).map_err(|_| NoEntropy)?;
    Ok(Naming::of(u64::from_le_bytes(process)))
}
