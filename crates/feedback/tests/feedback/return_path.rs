//! Return addresses.

use outflow_core::message::Seq;
use outflow_core::message_id::MessageId;
use outflow_core::time::Wall;
use outflow_feedback::{ReturnPathError, ReturnPaths};
use proptest::prelude::*;

use super::{KEY, id, paths};

const OTHER: &[u8] = b"a key that was used last year";

#[test]
fn an_address_carries_its_message() {
    let address = paths().address(id());
    assert_eq!(paths().verify(&address), Some(id()));
    let (left, domain) = address.split_once('@').unwrap();
    assert_eq!(domain, "mail.example.com");
    assert!(left.starts_with("bounce+") && left.len() <= 64, "{left}");
    // Some mail systems change the case.
    assert_eq!(paths().verify(&address.to_ascii_uppercase()), Some(id()));
}

/// Whoever is shown a mail sees its header.
#[test]
fn what_stands_in_the_header_is_no_return_address() {
    let field = paths().field(id());
    let (left, domain) = field.split_once('@').unwrap();
    assert_eq!(domain, "mail.example.com");
    assert!(left.starts_with("report+") && left.len() <= 64, "{left}");
    assert_eq!(paths().verify(&field), None);
    let renamed = field.replace("report+", "bounce+");
    assert_eq!(paths().verify(&renamed), None);
}

#[test]
fn an_address_that_was_guessed_is_nobodys() {
    let address = paths().address(id());
    for at in 0..address.len() {
        for letter in ["a", "b", "7", "@", "+", ""] {
            let mut other = address.clone();
            other.replace_range(at..=at, letter);
            if !other.eq_ignore_ascii_case(&address) {
                assert_eq!(paths().verify(&other), None, "{other}");
            }
        }
    }
    for wrong in [
        "",
        "@",
        "bounce+@mail.example.com",
        "bounce@mail.example.com",
        "a@b",
    ] {
        assert_eq!(paths().verify(wrong), None, "{wrong}");
    }
    let long = format!("bounce+{}@mail.example.com", "a".repeat(1 << 20));
    assert_eq!(paths().verify(&long), None);
    let elsewhere = address.replace("mail.example.com", "example.org");
    assert_eq!(paths().verify(&elsewhere), None);
    let stranger = ReturnPaths::new("mail.example.com", &[OTHER]).unwrap();
    assert_eq!(stranger.verify(&address), None);
}

#[test]
fn keys_change() {
    let old = ReturnPaths::new("mail.example.com", &[OTHER]).unwrap();
    let both = ReturnPaths::new("Mail.Example.com", &[KEY, OTHER]).unwrap();
    assert_eq!(both.verify(&old.address(id())), Some(id()));
    assert_eq!(
        both.address(id()),
        paths().address(id()),
        "the first key signs"
    );
    assert!(!format!("{both:?}").contains("key that"));
}

#[test]
fn a_weak_set_up_is_refused() {
    let error = |domain: &str, keys: &[&[u8]]| ReturnPaths::new(domain, keys).unwrap_err();
    assert_eq!(error("a.example", &[]), ReturnPathError::Keys);
    assert_eq!(error("a.example", &[KEY; 9]), ReturnPathError::Keys);
    assert_eq!(
        error("a.example", &[KEY, b"short"]),
        ReturnPathError::ShortKey
    );
    for domain in ["", "a b", "a@b", "a\r\nb"] {
        assert!(matches!(error(domain, &[KEY]), ReturnPathError::Domain(_)));
    }
}

proptest! {
    #[test]
    fn every_id_comes_back(ms in 0_i64..1 << 42, seq in 0_u64..1 << 48) {
        let id = MessageId::new(Wall(ms * 1_000_000), Seq(seq));
        prop_assert_eq!(paths().verify(&paths().address(id)), Some(id));
    }

    #[test]
    fn any_address_is_read_or_refused(address in "\\PC{0,90}") {
        prop_assert_eq!(paths().verify(&address), None);
        let tagged = format!("bounce+{address}@mail.example.com");
        prop_assert_eq!(paths().verify(&tagged), None);
    }
}
