use super::*;

fn now() -> Timestamp {
    "2026-01-31T12:00:00Z".parse().expect("a time")
}

fn message() -> Message {
    serde_json::from_str(
        r#"{"id":"0198","state":"queued","tenant":"acme","class":"high","campaign":"q4",
            "pool":"default","destination":"isp:google","from":"News <news@acme.example>",
            "accepted_at":"2026-01-31T11:59:00.000Z","attempts":2,
            "last_error":{"code":"rate_limited","smtp_status":421,"enhanced":"4.7.28",
                          "provider_message":"Too\u001b[2Jfast"}}"#,
    )
    .expect("a message")
}

#[test]
fn an_operator_understands_it() {
    let explanation: Explanation = serde_json::from_str(
        r#"{"id":"0198","state":"queued","summary":"","ahead_in_flow":1204,"flows_waiting":3,
            "waiting_on":[
              {"reason":"limit","limit":"account:ses-1","until":"2026-01-31T12:00:03Z"},
              {"reason":"paused","limit":null,"until":null}],
            "eta":"2026-01-31T12:00:41Z"}"#,
    )
    .expect("an explanation");
    let pauses: Pauses = serde_json::from_str(
        r#"{"pauses":[
            {"id":"7","match":{"isp":"google","tenant":"acme"},"reason":"they block us",
             "until":null,"since":"2026-01-31T11:58:00Z","by":"ops"},
            {"id":"8","match":{"isp":"microsoft"},"since":"2026-01-31T11:58:00Z","by":"ops"},
            {"id":"9","match":{"sender_domain":"acme.example"},
             "since":"2026-01-31T11:58:00Z","by":"dns"}]}"#,
    )
    .expect("pauses");
    let message = message();
    let held = pauses
        .pauses
        .into_iter()
        .filter(|pause| pause.holds(&message));
    let around = Around {
        limits: BTreeMap::from([("account:ses-1".to_owned(), "600/min".to_owned())]),
        pauses: held.collect(),
        message,
    };
    let wanted = "\
0198 is queued: it waits for its turn.
  high message of tenant acme, campaign q4 in lane default/isp:google; accepted 11:59:00Z (1 min ago).
It waits for account:ses-1 (600/min) until 12:00:03Z (in 3 s)
         and a pause to be lifted
  paused by ops since 11:58:00Z (2 min ago), until it is lifted: they block us (isp:google tenant:acme); to lift it: outflow pauses remove 7
  paused by dns since 11:58:00Z (2 min ago), until it is lifted (sender_domain:acme.example); to lift it: outflow pauses remove 9
1,204 messages of its flow are ahead; 3 flows wait for the same limit.
It can go at 12:00:41Z (in 41 s) at the earliest.
It was tried 2 times; the last answer was rate_limited: 421 4.7.28 Too\u{fffd}[2Jfast.
";
    assert_eq!(text(&explanation, &around, now()), wanted);
}

#[test]
fn what_does_not_wait_says_so() {
    let explanation = Explanation {
        id: "0198".to_owned(),
        state: "delivered".to_owned(),
        summary: "It does not wait: it is delivered since 2026-01-31T11:59:01.000Z.".to_owned(),
        ..Explanation::default()
    };
    let wanted = "0198 is delivered: it was accepted by the far end.\n\
        It does not wait: it is delivered since 2026-01-31T11:59:01.000Z.\n";
    assert_eq!(text(&explanation, &Around::default(), now()), wanted);
}

#[test]
fn a_session_that_does_not_open_says_what_it_was_told() {
    let on = WaitingOn {
        reason: "no_session".to_owned(),
        account: Some("relay".to_owned()),
        detail: Some("535 5.7.8 wrong\u{1b} password".to_owned()),
        ..WaitingOn::default()
    };
    assert_eq!(
        waits_for(&on, &Around::default(), now()),
        "a session, which cannot be opened (account relay): 535 5.7.8 wrong\u{fffd} password"
    );
}
