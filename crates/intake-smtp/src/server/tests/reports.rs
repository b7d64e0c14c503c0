//! Reports, which nobody shows a token for.

use super::super::Returns;
use super::{AUTH, Rules, local, small, told};

/// `bounce+good` is ours.
fn returning() -> Rules {
    let is_ours = |address: &str| address.to_ascii_lowercase().starts_with("bounce+good@");
    Rules {
        returns: Some(Returns::at("bounces.example.com", is_ours)),
        ..small()
    }
}

fn codes(rules: Rules, text: &str) -> Vec<u16> {
    told(rules, local(), [text.as_bytes()]).codes()
}

#[test]
fn a_report_to_a_signed_address_needs_no_token() {
    let text = "EHLO mx\r\nMAIL FROM:<>\r\nRCPT TO:<Bounce+good@BOUNCES.example.com>\r\n\
                DATA\r\nSubject: gone\r\n\r\nNo such user\r\n.\r\nQUIT\r\n";
    let pieces: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
    let told = told(returning(), local(), pieces);
    assert_eq!(told.codes(), [220, 250, 250, 250, 354, 250, 221]);
    let [handed] = told.handed.as_slice() else {
        panic!("{told:?}");
    };
    assert!(handed.is_report && handed.sender.is_none());
    assert_eq!(handed.bytes, b"Subject: gone\r\n\r\nNo such user\r\n");
    assert_eq!(told.shown, 0);
}

#[test]
fn nothing_else_is_taken_without_a_token() {
    let to = |address: &str| {
        let text = format!("EHLO mx\r\nMAIL FROM:<a@b.c>\r\nRCPT TO:<{address}>\r\nDATA\r\n");
        let told = told(returning(), local(), [text.as_bytes()]);
        assert!(told.handed.is_empty());
        told.codes()
    };
    // A signature that is wrong, another name there, another domain, one below.
    assert_eq!(
        to("bounce+bad@bounces.example.com"),
        [220, 250, 250, 550, 554]
    );
    assert_eq!(
        to("postmaster@bounces.example.com"),
        [220, 250, 250, 550, 554]
    );
    assert_eq!(to("bounce+good@example.com"), [220, 250, 250, 530, 554]);
    assert_eq!(
        to("bounce+good@x.bounces.example.com"),
        [220, 250, 250, 530, 554]
    );
    // A server without return addresses is as it was.
    let text = "EHLO mx\r\nMAIL FROM:<>\r\nRCPT TO:<bounce+good@bounces.example.com>\r\n";
    assert_eq!(codes(small(), text), [220, 250, 530, 503]);
}

#[test]
fn a_report_is_about_one_message() {
    let text = "EHLO mx\r\nMAIL FROM:<>\r\nRCPT TO:<bounce+good@bounces.example.com>\r\n\
                RCPT TO:<bounce+good@bounces.example.com>\r\nRCPT TO:<a@example.net>\r\n";
    assert_eq!(codes(returning(), text), [220, 250, 250, 250, 452, 452]);
}

/// Who logs in after MAIL would have his mail taken for a report, or the other
/// way round.
#[test]
fn a_token_is_shown_before_the_message() {
    let text = format!("EHLO mx\r\nMAIL FROM:<>\r\n{AUTH}RCPT TO:<a@example.net>\r\n");
    assert_eq!(codes(returning(), &text), [220, 250, 250, 503, 530]);
}

#[test]
fn a_report_is_as_long_as_a_message_at_most() {
    let text = format!(
        "EHLO mx\r\nMAIL FROM:<>\r\nRCPT TO:<bounce+good@bounces.example.com>\r\nDATA\r\n\
         {}\r\n.\r\n",
        "x".repeat(2_000)
    );
    assert_eq!(codes(returning(), &text), [220, 250, 250, 250, 354, 552]);
}
