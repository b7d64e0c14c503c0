//! The keys of an account.

use outflow_core::time::Nanos;

use crate::account::sandbox::FAILURE_KINDS;
use crate::account::transport::{TLS, TRANSPORTS};
use crate::key::{Form, Key};

const COUNT: Form = Form::Whole(0, u32::MAX as u64);
const SESSIONS: Form = Form::Whole(1, 100_000);
const LATENCY: Form = Form::Span(Nanos::ZERO, Nanos::from_secs(3_600));
const PATH: Form = Form::Path;
const HEADER: Form = Form::Text(300);

/// The keys of an account.
pub const ACCOUNT: &[Key] = &[
    Key::new(
        "id",
        Form::Id,
        "The account's name, by which policies, metrics and people know it.",
    )
    .example("\"primary\""),
    Key::new(
        "pool",
        Form::Name,
        "Accounts of one pool stand in for one another.",
    )
    .default("\"default\""),
    Key::new(
        "transport",
        Form::Word(TRANSPORTS),
        "How messages leave: `smtp` through a provider or relay, `mx` to each domain's own \
         servers, `sandbox` not at all (they are kept for a while and shown).",
    )
    .default("\"smtp\""),
    Key::new(
        "tenant",
        Form::Name,
        "The only tenant that the account serves. Without it, all.",
    )
    .example("\"acme\"")
    .aside(),
    Key::new(
        "brand",
        Form::Name,
        "The registered brand it sends for, which policies can match.",
    )
    .example("\"acme-us\"")
    .aside(),
    Key::new(
        "ip",
        Form::Name,
        "The sending address, which policies can match. Without it, `source_ip`; for `mx` \
         without either, `default`.",
    )
    .example("\"192.0.2.10\"")
    .aside(),
    Key::new(
        "host",
        Form::Host,
        "The server of the provider or relay (`smtp`).",
    )
    .example("\"smtp.example.com\""),
    Key::new(
        "port",
        Form::Whole(1, 65_535),
        "Its port. Without it, 587, or 465 with implicit TLS, or 25 for `mx`.",
    )
    .example("587"),
    Key::new(
        "tls",
        Form::Word(TLS),
        "How connections are protected. `starttls` and `implicit` are required and verified; \
         `opportunistic` takes what is offered. Without it, `starttls` (`implicit` on port 465), \
         for `mx` `opportunistic`.",
    )
    .example("\"starttls\""),
    Key::new(
        "use_tls",
        Form::Flag,
        "Another way to write `tls`: true is implicit TLS on port 465 and STARTTLS on others; \
         false is STARTTLS, required and verified.",
    )
    .example("true")
    .aside(),
    Key::new("user", Form::Text(256), "The name to log in with.").example("\"sender\""),
    Key::new(
        "password",
        Form::Secret,
        "The password, over the API only, where it can be written and never read. In a file use \
         `password_env` or `password_file`.",
    ),
    Key::new(
        "password_env",
        Form::Variable,
        "The environment variable that holds the password. Over the API its name begins with \
         `OUTFLOW_SECRET_`.",
    )
    .example("\"SMTP_PASSWORD\""),
    Key::new("password_file", PATH, "The file that holds the password.")
        .example("\"/run/secrets/smtp\"")
        .aside(),
    Key::new("source_ip", Form::Ip, "The local address of connections.")
        .example("\"192.0.2.10\"")
        .aside(),
    Key::new(
        "helo",
        Form::Host,
        "What we call ourselves. Without it, the machine's name.",
    )
    .example("\"mail.example.com\"")
    .aside(),
    Key::new(
        "ca_file",
        PATH,
        "Certificates (PEM) that are trusted besides the usual ones.",
    )
    .example("\"/etc/outflow/relay-ca.pem\"")
    .aside(),
    Key::new(
        "insecure",
        Form::Flag,
        "Takes any certificate, and sends a password also over an open line. For tests, and for \
         servers on the same machine.",
    )
    .example("false")
    .aside(),
    Key::new("dkim", Form::Table(DKIM), "How mail is signed.")
        .example(
            "{ domain = \"example.com\", selector = \"s1\", key_file = \"/etc/outflow/dkim.pem\" }",
        )
        .aside(),
    Key::new(
        "max_connections",
        SESSIONS,
        "How many connections (for a sandbox: request slots) may be open at once. Without it, 8; \
         for `mx` 100, for a sandbox 256.",
    )
    .example("8"),
    Key::new(
        "max_connections_per_destination",
        SESSIONS,
        "How many of them to one destination. Connections to a relay (`smtp`) carry mail for any \
         destination: there it is how many carry mail for one at the same time. Without it, 5 \
         for `mx`, all for `smtp`.",
    )
    .example("5")
    .aside(),
    Key::new(
        "max_messages_per_connection",
        Form::Whole(1, 1_000_000),
        "How many messages a connection carries before it is closed. Without it, 100.",
    )
    .example("100"),
    Key::new(
        "connect_rate",
        Form::PlainRate,
        "How fast new connections are opened. Without it, no limit.",
    )
    .example("\"5/s\"")
    .aside(),
    Key::new(
        "idle_timeout",
        Form::Span(Nanos::from_millis(100), Nanos::from_secs(3_600)),
        "How long a connection is kept without work. Without it, 30 seconds.",
    )
    .example("\"30s\"")
    .aside(),
    Key::new(
        "limits",
        Form::List(&Form::Limit, 16),
        "The provider's caps. A rate per second is a token bucket (`burst N` says how much at \
         once, `spaced` evens it out); a rate per minute, hour or day is a sliding window, and \
         with a zone a window of that calendar.",
    )
    .example("[\"14/s burst 28\", \"600/min\", \"50k/day@America/Los_Angeles\"]"),
    Key::new(
        "limit_per_minute",
        COUNT,
        "Another way to write a sliding window of a minute; 0 is none.",
    )
    .example("600")
    .aside(),
    Key::new("limit_per_hour", COUNT, "The same of an hour.")
        .example("10000")
        .aside(),
    Key::new("limit_per_day", COUNT, "The same of 24 hours.")
        .example("50000")
        .aside(),
    Key::new(
        "sandbox",
        Form::Table(SANDBOX),
        "How a sandbox behaves (`transport = \"sandbox\"`).",
    )
    .example(
        "{ latency = \"20ms\", hidden_rate = \"50/s burst 10\", over = 429, retry_after = \"5s\" }",
    )
    .aside(),
];

const DKIM: &[Key] = &[
    Key::new(
        "domain",
        Form::Host,
        "The domain that vouches for the mail.",
    ),
    Key::new("selector", Form::Host, "Which of its keys."),
    Key::new("key_file", PATH, "The private key, PEM."),
];

const SANDBOX: &[Key] = &[
    Key::new(
        "latency",
        Form::Either(&[LATENCY, Form::Table(SPREAD)]),
        "How long answers take: `\"20ms\"`, or `{ p50 = \"20ms\", p99 = \"2s\" }`.",
    )
    .default("\"0s\""),
    Key::new(
        "failures",
        Form::List(&Form::Table(FAILURE), 32),
        "What fails: a list of shares with an answer each.",
    )
    .default("[]"),
    Key::new(
        "hidden_rate",
        Form::Limit,
        "A limit that shows only when it is exceeded.",
    )
    .example("\"50/s burst 10\""),
    Key::new("over", Form::Reply, "What exceeds it is answered this.")
        .example("\"421 4.7.0 Too fast, slow down\""),
    Key::new(
        "retry_after",
        Form::Span(Nanos::ZERO, Nanos::from_secs(86_400)),
        "How long that answer asks to wait (`Retry-After`). Without it, it does not say.",
    )
    .example("\"5s\""),
    Key::new(
        "headers",
        Form::List(&HEADER, 16),
        "What all of its answers say of limits, as an API would in its headers: `RateLimit-Policy`, `RateLimit`, `X-RateLimit-Remaining` and the like.",
    )
    .default("[]")
    .example("[\"RateLimit-Policy: 5;w=1\"]"),
    Key::new(
        "keep",
        Form::Whole(0, 100_000),
        "How many of the last messages are kept to be shown.",
    )
    .default("1000"),
];

const SPREAD: &[Key] = &[
    Key::new("p50", LATENCY, "The median."),
    Key::new("p99", LATENCY, "What one in a hundred exceeds."),
];

const FAILURE: &[Key] = &[
    Key::new("share", Form::Share, "The share of messages."),
    Key::new("reply", Form::Reply, "What they are answered."),
    Key::new(
        "kind",
        Form::Word(FAILURE_KINDS),
        "Or a usual answer by its name.",
    ),
];
