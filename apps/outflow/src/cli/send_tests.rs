use super::*;

fn now() -> Timestamp {
    "2026-01-31T12:00:00Z".parse().expect("a time")
}

fn to(address: &str) -> Arguments {
    Arguments {
        to: vec![address.to_owned()],
        from: Some("me@example.com".to_owned()),
        ..Arguments::default()
    }
}

#[test]
fn what_was_not_said_is_not_sent() {
    let arguments = Arguments {
        text: Some("Hello".to_owned()),
        not_before: Some("2h".to_owned()),
        tag: vec!["order=7".to_owned()],
        header: vec!["List-Id: news".to_owned()],
        ..to("you@example.com")
    };
    let wanted = json!({
        "to": "you@example.com",
        "from": "me@example.com",
        "text": "Hello",
        "not_before": "2026-01-31T14:00:00.000Z",
        "tags": { "order": "7" },
        "headers": { "List-Id": "news" },
    });
    assert_eq!(body(&arguments, now()).expect("a message"), wanted);
}

#[test]
fn a_whole_message_says_who_sends_it() {
    let path = std::env::temp_dir().join(format!("outflow-send-{}.eml", std::process::id()));
    let message = "Subject: Hi\r\nFROM: Me\r\n <me@example.com>\r\n\r\nFrom: not@this.one\r\n";
    std::fs::write(&path, message).expect("written");
    let arguments = Arguments {
        file: Some(path.clone()),
        from: None,
        ..to("you@example.com")
    };
    let body = body(&arguments, now()).expect("a message");
    std::fs::remove_file(path).expect("removed");
    assert_eq!(body["from"], "Me <me@example.com>");
    assert_eq!(body["raw"], STANDARD.encode(message));
}

#[test]
fn stdin_is_read_once() {
    let arguments = Arguments {
        text: Some("-".to_owned()),
        html: Some("-".to_owned()),
        ..to("you@example.com")
    };
    assert!(matches!(body(&arguments, now()), Err(Failure::WrongUse(_))));
}

#[test]
fn quiet_is_the_id_alone() {
    let sent = Sent {
        id: Some("0198".to_owned()),
        state: Some("queued".to_owned()),
        ..Sent::default()
    };
    assert_eq!(text(&sent, true), "0198\n");
    assert!(text(&sent, false).starts_with("0198 is queued.\n"));
}
