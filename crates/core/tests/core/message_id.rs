//! Ids say which message they are, and tell a typing error from an id.

use outflow_core::message::Seq;
use outflow_core::message_id::MessageId;
use outflow_core::time::Wall;
use proptest::prelude::*;

proptest! {
    #[test]
    fn an_id_is_read_as_it_was_written(millis in 0_i64..1 << 42, seq in 0_u64..1 << 48) {
        let id = MessageId::new(Wall(millis * 1_000_000), Seq(seq));
        let text = id.to_string();
        prop_assert_eq!(text.parse::<MessageId>(), Ok(id));
        prop_assert_eq!(id.seq(), Seq(seq));
        prop_assert_eq!(id.accepted_ms(), millis as u64);
        prop_assert_eq!(text.as_bytes().get(14), Some(&b'7'), "version 7");
        prop_assert!(matches!(text.as_bytes().get(19), Some(b'8'..=b'b')), "its variant");
    }

    #[test]
    fn another_place_is_not_an_id(seq in 0_u64..1 << 40, other in 1_u64..16) {
        let text = MessageId::new(Wall(1_700_000_000_000_000_000), Seq(seq)).to_string();
        let wrong = format!("{}{:012x}", text.get(..24).unwrap_or_default(), seq ^ other);
        // The bits in between agree by chance once in 2^26.
        prop_assert!(wrong.parse::<MessageId>().is_err());
    }
}

#[test]
fn nonsense_is_not_an_id() {
    for text in [
        "",
        "1",
        "019a8b2e-5c00-7abc-8def-00000000000g",
        "019a8b2e5c007abc8def000000000001----",
    ] {
        assert!(text.parse::<MessageId>().is_err(), "{text:?}");
    }
}
