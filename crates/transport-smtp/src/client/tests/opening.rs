//! Sessions that open, and those that do not.

use outflow_core::reply::{Reply, Stage};

use super::super::login::Login;
use super::super::{Output, Tls};
use super::{PLAIN, Talk, mail, network, settings};

#[test]
fn what_has_no_end_is_cut_short() {
    let endless = "220-more\r\n".repeat(10_001);
    let wide = format!("220-{}\r\n", "x".repeat(4_000)).repeat(270);
    let long = format!("220 {}", "x".repeat(1 << 20));
    for (said, words) in [
        (endless.as_str(), "10000 lines"),
        (&wide, "1048576 bytes"),
        (&long, "1048576 bytes"),
        (
            "HTTP/1.1 400 Bad Request\r\n\r\n",
            "HTTP/1.1 400 Bad Request",
        ),
        ("\r\n", "no SMTP reply"),
        ("\0\u{1}\r\n", "no SMTP reply"),
        ("22\r\n", "no SMTP reply"),
        ("2200 x\r\n", "no SMTP reply"),
    ] {
        let mut talk = Talk::new(settings(Tls::None));
        talk.hear(said);
        let reply = talk.failed();
        let told = matches!(&reply, Reply::Network { stage: Stage::Greeting, text } if text.contains(words));
        assert!(told, "{reply:?}");
    }
}

#[test]
fn tls_is_begun_or_nothing_is_sent() {
    let offered = "250-mx\r\n250-AUTH PLAIN\r\n250 STARTTLS\r\n";
    let mut talk = Talk::new(settings(Tls::Starttls));
    talk.hear("220 mx\r\n");
    talk.hear(offered);
    assert!(talk.written.ends_with("STARTTLS\r\n"));
    talk.hear("220 go\r\n");
    assert_eq!(talk.others.pop(), Some(Output::StartTls));
    talk.client.on_tls(Ok(()));
    talk.drain();
    assert!(
        talk.written
            .ends_with("STARTTLS\r\nEHLO client.example\r\n")
    );
    talk.hear(PLAIN);
    assert_eq!(talk.others.pop(), Some(Output::Ready));
    assert!(
        !talk.client.offers().plain,
        "what was offered in the open is forgotten"
    );

    let mut talk = Talk::new(settings(Tls::Starttls));
    talk.hear("220 mx\r\n");
    talk.hear(offered);
    talk.hear("220 go\r\n250 injected\r\n");
    assert!(matches!(talk.failed(), Reply::Network { text, .. } if text.starts_with("TLS:")));

    let mut talk = Talk::new(settings(Tls::Starttls));
    talk.hear("220 mx\r\n");
    talk.hear(PLAIN);
    assert!(
        matches!(talk.failed(), Reply::Network { text, .. } if text.starts_with("TLS is required"))
    );

    let mut talk = Talk::new(settings(Tls::Starttls));
    talk.hear("220 mx\r\n");
    talk.hear("502 what\r\n");
    assert!(talk.written.ends_with("HELO client.example\r\n"));
    talk.hear(PLAIN);
    assert!(
        matches!(talk.failed(), Reply::Network { text, .. } if text.starts_with("TLS is required"))
    );

    let mut talk = Talk::new(settings(Tls::Opportunistic));
    talk.hear("220 mx\r\n");
    talk.hear(offered);
    talk.hear("454 4.7.0 not now\r\n");
    assert_eq!(talk.others.pop(), Some(Output::Ready));
    assert!(!talk.client.lacks_tls());

    let mut talk = Talk::new(settings(Tls::Starttls));
    talk.hear("220 mx\r\n");
    talk.hear(offered);
    talk.hear("554 5.7.0 never\r\n");
    assert_eq!(
        talk.failed(),
        Reply::said(Stage::Greeting, 554, "5.7.0 never")
    );
    assert!(talk.client.lacks_tls());
}

#[test]
fn a_session_that_is_refused_says_why() {
    let mut talk = Talk::new(settings(Tls::None));
    talk.hear("554 5.7.1 go away\r\n");
    assert_eq!(
        talk.failed(),
        Reply::said(Stage::Greeting, 554, "5.7.1 go away")
    );
    let mut talk = Talk::new(settings(Tls::None));
    talk.hear("220 mx\r\n");
    talk.hear("421 busy\r\n");
    assert_eq!(talk.failed(), Reply::said(Stage::Greeting, 421, "busy"));
    let mut talk = Talk::new(settings(Tls::None));
    talk.client.on_timeout();
    talk.drain();
    assert_eq!(talk.failed(), network(Stage::Greeting, "timed out"));
}

fn logging_in(offers: &str, in_clear: bool) -> Talk {
    let mut settings = settings(Tls::None);
    settings.password_in_clear = in_clear;
    settings.login = Some(Login {
        user: "tim".to_owned(),
        password: "tanstaaftanstaaf".to_owned(),
    });
    let mut talk = Talk::new(settings);
    talk.hear("220 mx\r\n");
    talk.written.clear();
    talk.hear(&format!("250-mx\r\n250 {offers}\r\n"));
    talk
}

#[test]
fn it_logs_in_as_is_offered() {
    let mut talk = logging_in("AUTH CRAM-MD5 LOGIN PLAIN", true);
    assert_eq!(talk.written, "AUTH PLAIN AHRpbQB0YW5zdGFhZnRhbnN0YWFm\r\n");
    talk.hear("235 in\r\n");
    assert_eq!(talk.others.pop(), Some(Output::Ready));

    let mut talk = logging_in("AUTH LOGIN", true);
    talk.hear("334 VXNlcm5hbWU6\r\n");
    talk.hear("334 UGFzc3dvcmQ6\r\n");
    assert_eq!(
        talk.written,
        "AUTH LOGIN\r\ndGlt\r\ndGFuc3RhYWZ0YW5zdGFhZg==\r\n"
    );
    talk.hear("535 5.7.8 no\r\n");
    assert_eq!(talk.failed(), Reply::said(Stage::Auth, 535, "5.7.8 no"));

    let mut talk = logging_in("AUTH CRAM-MD5", false);
    talk.hear("334 PDE4OTYuNjk3MTcwOTUyQHBvc3RvZmZpY2UucmVzdG9uLm1jaS5uZXQ+\r\n");
    assert!(
        talk.written
            .ends_with("dGltIGI5MTNhNjAyYzdlZGE3YTQ5NWI0ZTZlNzMzNGQzODkw\r\n")
    );
    talk.hear("235 in\r\n");
    assert_eq!(talk.others.pop(), Some(Output::Ready));

    let mut talk = logging_in("AUTH PLAIN LOGIN", false);
    assert!(talk.written.is_empty(), "no password over an open line");
    assert!(matches!(
        talk.failed(),
        Reply::Network {
            stage: Stage::Auth,
            ..
        }
    ));
    let mut talk = logging_in("AUTH GSSAPI", true);
    assert!(matches!(
        talk.failed(),
        Reply::Network {
            stage: Stage::Auth,
            ..
        }
    ));
}

#[test]
fn goodbye_is_said_once() {
    let mut talk = Talk::ready(PLAIN);
    talk.client.quit();
    talk.drain();
    assert_eq!(talk.written, "QUIT\r\n");
    talk.hear("221 bye\r\n");
    assert_eq!(talk.others, [Output::Close]);
    talk.client.on_closed("eof");
    talk.client.quit();
    talk.drain();
    assert_eq!(talk.others, [Output::Close]);
}

#[test]
fn a_drip_does_not_renew_the_time() {
    let mut talk = Talk::ready(PLAIN);
    talk.send(mail("hello"));
    let before = talk.client.steps();
    talk.hear("250-a");
    assert_eq!(talk.client.steps(), before);
    talk.hear("\r\n250 b\r\n");
    assert_eq!(talk.client.steps(), before + 1);
    assert!(talk.client.timeout().is_some());
    assert!(
        Talk::ready(PLAIN).client.timeout().is_none(),
        "idle is idle"
    );
}
