use outflow_ports::conformance::store;

use super::harness::Rig;

#[test]
fn a_real_directory() {
    for (name, case) in store::cases::<Rig>() {
        println!("{name}");
        case(&Rig::on_directory);
    }
}

#[test]
fn a_disk_that_loses_power() {
    for seed in 0..4 {
        store::exercise(|| Rig::on_memory(seed));
    }
}
