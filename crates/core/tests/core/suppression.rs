//! Who is not sent to, and when bounces are not believed.

use outflow_core::class::Class;
use outflow_core::suppression::surge::{SurgeCounts, SurgeRule};
use outflow_core::suppression::{Reason, Reasons};

#[test]
fn a_complaint_never_stops_urgent_mail() {
    let complained = Reasons::of(Reason::Complaint);
    for (class, stops) in Class::ALL.into_iter().zip([false, false, true, true]) {
        assert_eq!(complained.stopping(class).is_some(), stops, "{class}");
        for reason in [Reason::HardBounce, Reason::OptOut, Reason::Manual] {
            assert_eq!(Reasons::of(reason).stopping(class), Some(reason));
        }
    }
}

#[test]
fn each_reason_stands_by_itself() {
    let both = Reasons::of(Reason::HardBounce).with(Reason::Complaint);
    assert_eq!(both.stopping(Class::Critical), Some(Reason::HardBounce));
    let left = both.without(Reason::HardBounce);
    assert_eq!(left.stopping(Class::Critical), None);
    assert_eq!(left.stopping(Class::Low), Some(Reason::Complaint));
    assert!(left.without(Reason::Complaint).is_empty());
}

#[test]
fn reasons_are_read_as_they_are_written() {
    for reason in Reason::ALL {
        assert_eq!(reason.as_str().parse::<Reason>(), Ok(reason));
    }
    assert!("bounce".parse::<Reason>().is_err());
}

fn counts(hard: u64, attempts: u64, day_bounced: u64, day_attempts: u64) -> SurgeCounts {
    SurgeCounts {
        hard,
        attempts,
        day_bounced,
        day_attempts,
    }
}

#[test]
fn a_surge_is_many_and_a_large_share_and_unusual() {
    let rule = SurgeRule::default();
    // 60 of 500 are 12 %, against 1 % before.
    assert!(rule.is_surge(&counts(60, 500, 160, 10_500)));
    // Too few.
    assert!(!rule.is_surge(&counts(49, 100, 149, 10_100)));
    // Exactly a tenth.
    assert!(!rule.is_surge(&counts(60, 600, 160, 10_600)));
    // It always bounces so much: 12 % now, 3 % before.
    assert!(!rule.is_surge(&counts(60, 500, 360, 10_500)));
    // A destination that nobody wrote to before.
    assert!(rule.is_surge(&counts(60, 500, 60, 500)));
    // Counted here and not yet there.
    assert!(rule.is_surge(&counts(50, 0, 0, 0)));
}
