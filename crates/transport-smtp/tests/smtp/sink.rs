//! Every awkward letter goes to Postfix's `smtp-sink`, which offers little: as
//! much as it says, without 8-bit text, and without ESMTP.

use outflow_core::reply::Stage;
use outflow_transport_smtp::{Login, Relay, Tls};

use crate::letters::letters;
use crate::peer::{Courier, failed};
use crate::smtp_sink::SmtpSink;
use crate::world::relay;

#[test]
fn a_sink_takes_every_letter_that_needs_no_utf8() {
    // All that it offers; one command at a time and 7-bit text; no EHLO at all.
    for (way, options) in [
        ("-d", &[][..]),
        ("-d", &["-8", "-p"][..]),
        ("-D", &["-e"][..]),
    ] {
        let sink = SmtpSink::start(way, options);
        let mut courier = Courier::new();
        // CHUNKING is wanted, and not offered: it goes by DATA.
        let relay = relay(sink.port, Tls::None);
        assert!(relay.chunking);
        let taken = courier.send_all(&relay, false);
        assert_eq!(taken, letters().len() - 1, "{options:?}");
        let (place, files) = match way {
            "-d" => (sink.folder.join("came"), taken),
            _ => (sink.folder.join("came/mail"), 1),
        };
        assert_eq!(sink.came().len(), files, "{options:?}");
        courier.read(&sink.folder, &place);
    }
}

#[test]
fn what_a_sink_does_not_offer_is_said() {
    let sink = SmtpSink::start("-d", &[]);
    let mut courier = Courier::new();
    let mut refused = |tls, login| {
        let relay = Relay {
            login,
            insecure: true,
            ..relay(sink.port, tls)
        };
        failed(&courier.refused(&relay))
    };
    let (stage, text) = refused(Tls::Starttls, None);
    assert_eq!(stage, Stage::Greeting);
    assert!(text.contains("does not offer STARTTLS"), "{text}");
    let (_, text) = refused(Tls::Implicit, None);
    assert!(text.contains("TLS"), "{text}");
    // It offers AUTH, and answers like to any other command.
    let login = Login {
        user: "outflow".to_owned(),
        password: "secret".to_owned(),
    };
    let (stage, text) = refused(Tls::None, Some(login));
    assert_eq!(stage, Stage::Auth);
    assert!(text.contains("answered 250 out of turn"), "{text}");
    // Where TLS is a wish, it goes in the open.
    let wishes = relay(sink.port, Tls::Opportunistic);
    let taken = courier.send_all(&wishes, false);
    assert_eq!((taken, sink.came().len()), (letters().len() - 1, taken));
    courier.read(&sink.folder, &sink.folder.join("came"));
}
