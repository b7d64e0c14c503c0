//! Limits that are counted here.

use outflow_core::limit::spec::Rate;
use outflow_core::policy::matcher::Match;
use outflow_core::policy::policy::{Policy, RateOrShare};
use outflow_core::policy::set::Policies;
use outflow_core::time::Nanos;
use outflow_ports::throttle::{ThrottleError, Throttling};
use outflow_throttle::{Service, Settings};

use crate::{ask, begin, is_granted, refused_by};

#[test]
fn who_waits_is_woken_by_the_thread() {
    let service = Service::start(Settings::default()).unwrap();
    let want = [("a", "20/s burst 1", 1)];
    assert!(is_granted(&ask(&service, 0, &want)));
    assert_eq!(refused_by(&ask(&service, 0, &want)), 0);
    assert!(is_granted(&ask(&service, 10_000, &want)));
    assert_eq!(service.counts().waited, 1);
    service.close();
}

#[test]
fn whoever_waits_at_the_end_hears_so() {
    let service = Service::start(Settings::default()).unwrap();
    let want = [("a", "1 concurrent", 1)];
    assert!(is_granted(&ask(&service, 0, &want)));
    let later = begin(&service, None, 60_000, &want).unwrap_err();
    service.close();
    assert_eq!(later.recv().unwrap(), Err(ThrottleError::Closing));
    assert_eq!(ask(&service, 0, &want), Err(ThrottleError::Closing));
}

#[test]
fn a_key_of_policies_stands_for_all_their_limits() {
    let service = Service::start(Settings::default()).unwrap();
    let unknown = ask(&service, 0, &[("isp:google", "", 1)]);
    assert!(matches!(unknown, Err(ThrottleError::UnknownLimit { .. })));
    let mut policies = Policies::default();
    let mut policy = Policy::new(Match::from_pairs([("isp", "google")]).unwrap());
    policy.rate = Some(RateOrShare::Rate(Rate::per_second(1)));
    policy.burst = Some(5);
    policy.concurrency = Some(2);
    policies.insert(policy).unwrap();
    let mut policy = Policy::new(Match::from_pairs([("tenant", "*")]).unwrap());
    policy.rate = Some(RateOrShare::Rate(Rate::per_second(1)));
    policies.insert(policy).unwrap();
    service.set_policies(policies);
    // The alias is the same limit, and slots are the tighter one here.
    assert!(is_granted(&ask(&service, 0, &[("isp:google", "", 1)])));
    assert!(is_granted(&ask(&service, 0, &[("isp:gmail", "", 1)])));
    let both = [("other", "1/s burst 9", 1), ("isp:Google", "", 1)];
    assert_eq!(refused_by(&ask(&service, 0, &both)), 1);
    // Numbers of one's own under the same name are another thing.
    assert!(is_granted(&ask(
        &service,
        0,
        &[("isp:google", "1/s burst 1", 1)]
    )));
    // A tenant reaches its own limits and no others.
    let own = begin(&service, Some("acme"), 0, &[("tenant:acme", "", 1)]).unwrap();
    assert!(is_granted(&own));
    for key in ["tenant:other", "isp:google", "nonsense"] {
        let others = begin(&service, Some("acme"), 0, &[(key, "", 1)]).unwrap();
        assert!(
            matches!(others, Err(ThrottleError::NotYours { .. })),
            "{key}"
        );
    }
    service.close();
}

#[test]
fn what_makes_no_sense_is_said_so() {
    let service = Service::start(Settings::default()).unwrap();
    let long = "k".repeat(257);
    let cases = [
        (vec![], ThrottleError::Count),
        (vec![("a", "1/s", 1); 17], ThrottleError::Count),
        (vec![(long.as_str(), "1/s", 1)], ThrottleError::BadKey),
        (vec![("a\nb", "1/s", 1)], ThrottleError::BadKey),
        (vec![("a", "1/s", 0)], ThrottleError::NoCost),
    ];
    for (limits, error) in cases {
        assert_eq!(ask(&service, 0, &limits), Err(error));
    }
    assert_eq!(service.counts().failed, 5);
    service.close();
}

#[test]
fn a_pause_of_a_tenant_is_its_own() {
    let service = Service::start(Settings::default()).unwrap();
    let want = [("a", "10/s burst 5", 1)];
    service
        .pause(Some("acme"), "a", Nanos::from_secs(60))
        .unwrap();
    assert!(is_granted(&ask(&service, 0, &want)));
    let own = begin(&service, Some("acme"), 0, &want).unwrap();
    assert_eq!(refused_by(&own), 0);
    service.close();
}

#[test]
fn a_pause_of_what_policies_limit_ends_when_it_is_lifted() {
    let service = Service::start(Settings::default()).unwrap();
    let mut policies = Policies::default();
    let mut policy = Policy::new(Match::from_pairs([("isp", "google")]).unwrap());
    policy.rate = Some(RateOrShare::Rate(Rate::per_second(100)));
    policies.insert(policy).unwrap();
    service.set_policies(policies);
    let want = [("isp:gmail", "", 1)];
    let hour = Nanos::from_secs(3_600);
    let refused = service.pause(None, "isp:gmail", hour);
    assert!(matches!(refused, Err(ThrottleError::OfPolicies { .. })));
    assert!(is_granted(&ask(&service, 0, &want)));
    let name = service.of_policies(None, "isp:gmail").unwrap();
    assert_eq!(name.to_string(), "isp:google");
    service.pause_limit(&name, hour).unwrap();
    assert_eq!(refused_by(&ask(&service, 0, &want)), 0);
    let waits = begin(&service, None, 60_000, &want);
    assert!(waits.is_ok(), "nobody waits for what takes an hour");
    service.resume_limit(&name);
    assert!(is_granted(&ask(&service, 0, &want)));
    service.close();
}
