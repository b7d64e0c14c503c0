//! The protocol without sockets: honest clients, hostile bytes, and the same
//! answers however the bytes come.

use std::sync::Mutex;

use outflow_core::class::Class;
use outflow_core::name::Name;
use outflow_core::policy::key::LimitKey;
use outflow_core::throttle::cell::{Answer, Cell};
use outflow_core::throttle::look::Look;
use outflow_core::throttle::{Permit, Ticket, Why};
use outflow_core::time::Nanos;
use outflow_ports::throttle::{
    Acquire, Acquired, CellReply, ReleasedBy, Reply, ThenAcquired, ThrottleError, ThrottleUsage,
    Throttling,
};
use proptest::prelude::*;

use crate::doorkeeper::{Doorkeeper, Pass};
use crate::session::{Next, Peers, Session};

/// Grants what costs less than 10 and notes all that it is asked.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

const PERMIT: Permit = Permit {
    index: 0x1f,
    generation: 3,
};
const TICKET: Ticket = Ticket {
    index: 1,
    generation: 1,
};

impl Notes {
    fn note(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }
}

impl Throttling for Notes {
    fn cell(&self, cell: &Cell<'_>, later: &mut dyn FnMut() -> ThenAcquired) -> CellReply {
        let Cell {
            space,
            name,
            burst,
            rate,
            quantity,
        } = cell;
        let (count, per) = (rate.count, rate.per);
        self.note(format!(
            "cell {space}/{name} {burst} {count}/{per} {quantity}"
        ));
        if *name == "late" && *quantity > 0 {
            drop(later());
            return CellReply::Later(TICKET);
        }
        CellReply::Now(Ok(Answer {
            limited: false,
            limit: *burst,
            remaining: 7,
            retry_after: -1,
            reset_after: 12,
        }))
    }

    fn acquire(&self, acquire: &Acquire<'_>, later: &mut dyn FnMut() -> ThenAcquired) -> Reply {
        let limits = acquire.limits.iter().map(|it| {
            let numbers = it
                .limits
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>();
            format!("{} {} [{}]", it.key, it.cost, numbers.join(", "))
        });
        let limits = limits.collect::<Vec<_>>().join(" & ");
        let (class, wait, ttl) = (acquire.class, acquire.wait, acquire.ttl);
        self.note(format!("acquire {limits} {class} {wait} {ttl}"));
        if wait > Nanos::ZERO {
            drop(later());
            return Reply::Later(TICKET);
        }
        let granted = acquire.limits.iter().all(|it| it.cost < 10);
        Reply::Now(Ok(match granted {
            true => Acquired::Granted(Some(PERMIT)),
            false => Acquired::Refused {
                by: acquire.limits.len() - 1,
                why: Why::Limited,
                retry_after: Some(Nanos(1_000_001)),
            },
        }))
    }

    fn cancel(&self, _: Ticket) {}

    fn release(&self, by: ReleasedBy<'_>, permit: Permit) -> bool {
        self.note(format!("release {by:?} {permit}"));
        permit == PERMIT
    }

    fn pause(&self, _: Option<&str>, key: &str, lasts: Nanos) -> Result<(), ThrottleError> {
        self.note(format!("pause {key} {lasts}"));
        Ok(())
    }

    fn of_policies(&self, _: Option<&str>, _: &str) -> Option<LimitKey> {
        None
    }

    fn pause_limit(&self, _: &LimitKey, _: Nanos) -> Result<(), ThrottleError> {
        Ok(())
    }

    fn resume_limit(&self, _: &LimitKey) {}

    fn usage_of(&self, _: &str) -> ThrottleUsage {
        ThrottleUsage::default()
    }

    fn look(&self, _: &Acquire<'_>) -> Vec<(usize, Look)> {
        Vec::new()
    }
}

struct Door;

impl Doorkeeper for Door {
    fn admit(&self, token: &str) -> Option<Pass> {
        match token {
            "good" => Some(Pass::default()),
            "acme" => Some(Pass {
                tenant: Some(Name::from("acme")),
                classes: vec![Class::Low],
                ..Pass::default()
            }),
            _ => None,
        }
    }
}

/// What is said to all of this input at once, and what comes next.
fn say(input: &[u8], notes: &Notes) -> (String, Next) {
    let mut session = Session::new(5);
    let mut out = Vec::new();
    let peers = Peers {
        throttle: notes,
        doorkeeper: &Door,
    };
    let (_, next) = session.run(input, &mut out, &peers, &mut || Box::new(|_| ()));
    (String::from_utf8_lossy(&out).into_owned(), next)
}

fn known(input: &str) -> (String, Vec<String>) {
    let notes = Notes::default();
    let (said, _) = say(format!("AUTH good\r\n{input}").as_bytes(), &notes);
    let said = said.strip_prefix("+OK\r\n").unwrap().to_owned();
    (said, notes.0.into_inner().unwrap())
}

#[test]
fn a_buffer_of_commands_is_answered_at_once() {
    let (said, asked) = known(
        "*5\r\n$11\r\nCL.THROTTLE\r\n$1\r\na\r\n$2\r\n15\r\n$2\r\n30\r\n$2\r\n60\r\n\
         *1\r\n$4\r\nping\r\n\
         throttle b 0 1 1 0\r\n",
    );
    assert_eq!(
        said,
        "*5\r\n:0\r\n:16\r\n:7\r\n:-1\r\n:12\r\n+PONG\r\n*5\r\n:0\r\n:1\r\n:7\r\n:-1\r\n:12\r\n"
    );
    assert_eq!(asked, ["cell /a 16 30/60.0s 1", "cell /b 1 1/1.0s 0"]);
}

#[test]
fn bad_arguments_hear_what_redis_cell_says() {
    let cases = [
        (
            "CL.THROTTLE",
            "Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]",
        ),
        ("CL.THROTTLE a 1 2", "Usage: cl.throttle"),
        ("CL.THROTTLE a 1 2 3 4 5", "Usage: cl.throttle"),
        ("CL.THROTTLE a x 2 3", "Couldn't parse as integer: x"),
        ("CL.THROTTLE a 1 2 3 y", "Couldn't parse as integer: y"),
        ("CL.THROTTLE a -1 2 3", "max_burst must be from 0"),
        ("CL.THROTTLE a 1 0 3", "count must be from 1"),
        ("CL.THROTTLE a 1 2 0", "period must be from 1"),
        ("CL.THROTTLE a 1 2 3 -1", "quantity must be from 0"),
    ];
    for (line, wanted) in cases {
        let (said, asked) = known(&format!("{line}\r\n"));
        assert!(
            said.starts_with("-Cell error: Store error: "),
            "{line}: {said}"
        );
        assert!(said.contains(wanted), "{line}: {said}");
        assert!(asked.is_empty(), "{line}");
    }
}

#[test]
fn acquire_reads_its_words() {
    let (said, asked) = known(
        "ACQUIRE a\r\n\
         acquire b 3 rate \"14/s burst 28\" RATE 50k/day AND c CONCURRENCY 4 class high ttl 500\r\n\
         ACQUIRE d AND e 12\r\n\
         RELEASE 1f-3\r\nRELEASE 0\r\nRELEASE 2-2\r\nPAUSE a 1500\r\n",
    );
    assert_eq!(
        said,
        "*2\r\n:1\r\n$4\r\n1f-3\r\n*2\r\n:1\r\n$4\r\n1f-3\r\n*3\r\n:0\r\n$1\r\ne\r\n:2\r\n\
         :1\r\n:0\r\n:0\r\n+OK\r\n"
    );
    assert_eq!(
        asked,
        [
            "acquire a 1 [] normal 0ns 60.0s",
            "acquire b 3 [14/s burst 28, 50k/day] & c 1 [4 concurrent] high 0ns 500ms",
            "acquire d 1 [] & e 12 [] normal 0ns 60.0s",
            "release Holder(None) 1f-3",
            "release Holder(None) 2-2",
            "pause a 1.5s",
        ]
    );
    for line in [
        "ACQUIRE",
        "ACQUIRE a RATE",
        "ACQUIRE a RATE x",
        "ACQUIRE a AND",
        "ACQUIRE a WAIT x",
        "ACQUIRE a CLASS urgent",
        "ACQUIRE a TTL 99999999",
        "ACQUIRE a FOO",
        "RELEASE",
        "RELEASE x",
        "PAUSE a",
    ] {
        let (said, asked) = known(&format!("{line}\r\n"));
        assert!(said.starts_with("-ERR "), "{line}: {said}");
        assert_eq!(said.matches("\r\n").count(), 1, "{line}: {said}");
        assert!(asked.is_empty(), "{line}");
    }
}

#[test]
fn a_request_that_waits_holds_the_later_ones_back() {
    let notes = Notes::default();
    let (said, next) = say(b"AUTH good\r\nACQUIRE a WAIT 100\r\nPING\r\n", &notes);
    assert_eq!((said.as_str(), next), ("+OK\r\n", Next::Wait(TICKET)));
}

#[test]
fn a_call_of_redis_cell_that_waits_for_the_fleet_has_the_same_answer() {
    let notes = Notes::default();
    let peers = Peers {
        throttle: &notes,
        doorkeeper: &Door,
    };
    let answers = [
        (
            Ok(Acquired::Granted(None)),
            "*5\r\n:0\r\n:2\r\n:7\r\n:-1\r\n:12\r\n",
        ),
        (
            Ok(Acquired::Refused {
                by: 0,
                why: Why::Limited,
                retry_after: Some(Nanos::from_millis(1_200)),
            }),
            "*5\r\n:1\r\n:2\r\n:7\r\n:2\r\n:12\r\n",
        ),
        (
            Err(ThrottleError::Closing),
            "-Cell error: Store error: the server is shutting down\r\n",
        ),
    ];
    for (answer, wanted) in answers {
        let mut session = Session::new(5);
        let mut out = Vec::new();
        let input = b"AUTH good\r\nCL.THROTTLE late 1 1 1\r\n";
        let (_, next) = session.run(input, &mut out, &peers, &mut || Box::new(|_| ()));
        assert_eq!(next, Next::Wait(TICKET));
        out.clear();
        session.answered(&answer, &mut out, &peers);
        assert_eq!(String::from_utf8_lossy(&out), wanted);
    }
}

#[test]
fn a_tenant_has_keys_and_classes_of_its_own() {
    let notes = Notes::default();
    let input = b"AUTH any acme\r\nCL.THROTTLE k 1 1 1\r\nACQUIRE k\r\nACQUIRE k CLASS low\r\nRELEASE 1f-3\r\n";
    let (said, _) = say(input, &notes);
    assert!(
        said.contains("-NOPERM this token does not cover class normal"),
        "{said}"
    );
    let asked = notes.0.into_inner().unwrap();
    assert_eq!(
        asked,
        [
            "cell acme/k 2 1/1.0s 1",
            "acquire k 1 [] low 0ns 60.0s",
            "release Holder(Some(\"acme\")) 1f-3"
        ]
    );
}

#[test]
fn hello_logs_in_and_changes_the_version() {
    let notes = Notes::default();
    let (said, _) = say(b"HELLO 3\r\nHELLO 3 AUTH me good SETNAME x\r\n", &notes);
    let (refused, greeted) = said.split_once("\r\n").unwrap();
    assert!(refused.starts_with("-NOAUTH"), "{refused}");
    assert!(
        greeted.starts_with("%7\r\n$6\r\nserver\r\n$7\r\noutflow\r\n"),
        "{greeted}"
    );
    let (said, _) = say(b"HELLO 2 AUTH me good\r\nHELLO 4\r\n", &notes);
    assert!(said.starts_with("*14\r\n"), "{said}");
    assert!(
        said.ends_with("-NOPROTO unsupported protocol version\r\n"),
        "{said}"
    );
}

#[test]
fn what_tools_ask_before_they_begin() {
    let (said, _) = known(
        "CONFIG GET save\r\nCOMMAND DOCS\r\nCLIENT SETINFO LIB-NAME x\r\nCLIENT ID\r\nSELECT 0\r\n\
         SELECT 1\r\nECHO hi\r\nPING hi\r\nNONSENSE\r\n\r\n*0\r\nQUIT\r\nPING\r\n",
    );
    assert_eq!(
        said,
        "*0\r\n*0\r\n+OK\r\n:5\r\n+OK\r\n-ERR DB index is out of range\r\n$2\r\nhi\r\n$2\r\nhi\r\n\
         -ERR unknown command 'NONSENSE', or wrong number of arguments for it\r\n+OK\r\n"
    );
}

#[test]
fn bytes_that_are_no_commands_end_the_connection() {
    let long = format!("*1\r\n${}\r\n", 1 << 20);
    let line = "x".repeat(20_000);
    let cases: [(&str, &str); 10] = [
        ("*x\r\n", "invalid multibulk length"),
        ("*99999999999999\r\n", "invalid multibulk length"),
        ("*1000\r\n", "invalid multibulk length"),
        ("*1\r\n:1\r\n", "expected '$', got ':'"),
        ("*1\r\n$x\r\n", "invalid bulk length"),
        ("*1\r\n$-1\r\n", "invalid bulk length"),
        (&long, "invalid bulk length"),
        ("*1\r\n$1\r\nabc\r\n", "does not end where"),
        (&line, "too big inline request"),
        ("ECHO \"hi\r\n", "unbalanced quotes"),
    ];
    for (bytes, wanted) in cases {
        let notes = Notes::default();
        let (said, next) = say(format!("AUTH good\r\n{bytes}PING\r\n").as_bytes(), &notes);
        assert!(said.contains("-ERR Protocol error"), "{bytes:.40}: {said}");
        assert!(said.contains(wanted), "{bytes:.40}: {said}");
        assert_eq!(next, Next::Close, "{bytes:.40}");
    }
    // Strangers may say less.
    let notes = Notes::default();
    let (said, next) = say(b"*11\r\n", &notes);
    assert!(said.contains("unauthenticated multibulk length"), "{said}");
    assert_eq!(next, Next::Close);
    let (_, next) = say(b"AUTH a\r\nAUTH b\r\nAUTH c\r\nPING\r\n", &notes);
    assert_eq!(next, Next::Close);
}

proptest! {
    /// Whatever comes: no panic, and the same answers whether it comes at once
    /// or in two pieces.
    #[test]
    fn pieces_make_no_difference(
        words in prop::collection::vec("[ -~]{0,12}|ACQUIRE|CL.THROTTLE|PING|AUTH|good|1|RATE|10/s", 0..30),
        noise in prop::collection::vec(any::<u8>(), 0..40),
        cut in any::<prop::sample::Index>(),
        typed in any::<bool>(),
    ) {
        let mut input = b"AUTH good\r\n".to_vec();
        for line in words.chunks(6) {
            if typed {
                input.extend(line.join(" ").bytes());
                input.extend(b"\r\n");
            } else {
                input.extend(format!("*{}\r\n", line.len()).bytes());
                for word in line {
                    input.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
                }
            }
        }
        input.extend(noise);
        let whole = Notes::default();
        let (said, next) = say(&input, &whole);

        let notes = Notes::default();
        let peers = Peers { throttle: &notes, doorkeeper: &Door };
        let mut session = Session::new(5);
        let mut out = Vec::new();
        let cut = cut.index(input.len() + 1);
        let (used, first) = session.run(&input[..cut], &mut out, &peers, &mut || Box::new(|_| ()));
        let last = match first {
            Next::Read => session.run(&input[used..], &mut out, &peers, &mut || Box::new(|_| ())).1,
            other => other,
        };
        prop_assert_eq!(String::from_utf8_lossy(&out), said);
        prop_assert_eq!(last, next);
        prop_assert_eq!(notes.0.into_inner().unwrap(), whole.0.into_inner().unwrap());
    }
}
