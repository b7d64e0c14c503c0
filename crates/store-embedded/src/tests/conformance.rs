use outflow_ports::conformance::store;

use super::harness::Rig;

#[test]
fn a_real_directory() {
    store::exercise(Rig::on_directory);
}

#[test]
fn a_disk_that_loses_power() {
    for seed in 0..2 {
        store::exercise(|| Rig::on_memory(seed));
    }
}
