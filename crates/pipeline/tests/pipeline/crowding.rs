//! More flows than may live at once.

use std::collections::BTreeSet;

use outflow_core::engine::Settings;
use outflow_core::engine::admission::{FlowCap, FlowCaps, FlowField, TooManyFlows};
use outflow_core::entropy::Entropy;
use outflow_core::name::Name;
use outflow_core::policy::matcher::Match;
use outflow_core::time::{Mono, Nanos, Now, Wall};
use outflow_pipeline::handle::Handle;
use outflow_ports::control::{Bulk, Control};
use outflow_ports::intake::{Intake, Submission, Taken};
use outflow_ports::query::Query;
use outflow_ports::store::Store;
use outflow_simulator::memory::store::Faults;
use outflow_transport_sandbox::{Sandbox, Settings as SandboxSettings};

use super::seat::{End, account, ask, start_with, submission};

fn of(tenant: &str, campaign: &str) -> Submission {
    let mut submission = submission();
    submission.key.tenant = Name::from(tenant);
    submission.key.campaign = Some(Name::from(campaign));
    submission
}

/// A node that takes `tenant_max` flows of a tenant and `total_max` in all, and
/// sends nothing.
fn crowded(tenant_max: usize, total_max: usize, work: impl FnOnce(&Handle)) -> End<Sandbox> {
    let settings = Settings {
        flow_caps: FlowCaps {
            tenant_max,
            total_max,
        },
        ..Settings::default()
    };
    let sandbox = Sandbox::new(SandboxSettings::default());
    let (handle, thread) = start_with(sandbox, Faults::default(), settings);
    work(&handle);
    handle.shut_down(Nanos::from_millis(10));
    thread.join().unwrap()
}

fn submit(handle: &Handle, batch: Vec<Submission>) -> Vec<Taken> {
    ask(|then| handle.submit(batch, then)).unwrap()
}

fn refused(taken: &[Taken]) -> Vec<usize> {
    let all = taken.iter().enumerate();
    let refused = all.filter(|(_, taken)| taken.is_err());
    refused.map(|(place, _)| place).collect()
}

#[test]
fn only_messages_that_need_another_flow_are_refused() {
    crowded(2, 100, |handle| {
        let batch = ["a", "b", "c", "a", "d", "b"].map(|it| of("one", it));
        let taken = submit(handle, batch.to_vec());
        assert_eq!(refused(&taken), [2, 4]);
        let expected = TooManyFlows {
            cap: FlowCap::Tenant(2),
            field: FlowField::Campaign,
        };
        assert_eq!(taken[2], Err(expected));
        let seqs: BTreeSet<_> = taken.iter().flatten().map(|given| given.seq).collect();
        assert_eq!(seqs.len(), 4);
        // Others have room of their own.
        assert!(submit(handle, vec![of("two", "c")])[0].is_ok());
        let all_new = submit(handle, vec![of("one", "e"), of("one", "f")]);
        assert_eq!(refused(&all_new), [0, 1]);
        let depth = ask(|then| handle.depth(then));
        assert_eq!(depth.queued.iter().sum::<u64>(), 5, "nothing else is there");
    });
}

#[test]
fn what_is_refused_leaves_no_flow_behind() {
    let mut end = crowded(2, 100, |handle| {
        for no in 0..50 {
            submit(handle, vec![of("one", &format!("c{no}"))]);
        }
    });
    let now = Now {
        mono: Mono(1),
        wall: Wall(1),
        entropy: Entropy(1),
    };
    let recovered = end.ports.store.recover(&now);
    assert_eq!(recovered.flows.len(), 2);
}

#[test]
fn all_tenants_together_are_bounded_too() {
    crowded(100, 3, |handle| {
        let batch = (0..5).map(|no| of(&format!("t{no}"), "same")).collect();
        let taken = submit(handle, batch);
        assert_eq!(refused(&taken), [3, 4]);
        let expected = TooManyFlows {
            cap: FlowCap::Total(3),
            field: FlowField::Tenant,
        };
        assert_eq!(taken[4], Err(expected));
    });
}

#[test]
fn a_whole_batch_is_taken_or_nothing_of_it() {
    crowded(3, 100, |handle| {
        let whole = |names: &[&str]| {
            let batch: Vec<_> = names.iter().map(|it| of("one", it)).collect();
            let taken = ask(|then| handle.submit_whole(batch, then)).unwrap();
            refused(&taken).len()
        };
        assert_eq!(whole(&["a", "b", "a"]), 0);
        assert_eq!(whole(&["c", "d"]), 2);
        assert_eq!(whole(&["a", "c", "c"]), 0, "two of one flow need it once");
        assert_eq!(whole(&["a", "b", "d"]), 3);
        let depth = ask(|then| handle.depth(then));
        assert_eq!(depth.queued.iter().sum::<u64>(), 6);
    });
}

#[test]
fn what_was_accepted_is_moved_although_there_is_no_room() {
    crowded(1, 1, |handle| {
        handle.set_account(account(&["1/h"]));
        submit(handle, vec![of("one", "a"), of("one", "a"), of("one", "a")]);
        let matches = Match::from_pairs([("tenant", "one")]);
        let to = Bulk::Move {
            pool: Name::from("other"),
        };
        let moved = ask(|then| handle.bulk(to, matches.unwrap(), false, then));
        assert!(moved >= 2, "{moved}");
    });
}
