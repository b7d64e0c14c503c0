//! The keys of the machine: listeners, store, retention, logs, metrics.

use outflow_core::time::Nanos;

use crate::key::{Form, Key};

const PATH: Form = Form::Path;
const DAY: u64 = 86_400;
const KEPT: Form = Form::Span(Nanos::from_secs(60), Nanos::from_secs(3_650 * DAY));
const LABELS: Form = Form::Whole(0, 10_000);
const MIB: u64 = 1 << 20;

const TLS_CERT: Key = Key::new(
    "tls_cert",
    PATH,
    "The certificate chain, PEM. A listener that is not on loopback needs it.",
)
.example("\"/etc/outflow/cert.pem\"");
const TLS_KEY: Key = Key::new("tls_key", PATH, "The private key of the certificate, PEM.")
    .example("\"/etc/outflow/key.pem\"");
const INSECURE: Key = Key::new(
    "insecure",
    Form::Flag,
    "Listen beyond loopback without TLS all the same, because something in front protects it.",
)
.default("false");

pub const SERVER: &[Key] = &[
    Key::new(
        "listen",
        Form::Listen,
        "Address and port of the API and the page.",
    )
    .default("\"127.0.0.1:8025\""),
    Key::new(
        "data_dir",
        PATH,
        "Where everything is kept that must survive a restart.",
    )
    .default("\"outflow-data\""),
    Key::new(
        "secrets_dir",
        PATH,
        "Where files must lie that accounts name over the API (`password_file`, `ca_file`, \
         `key_file`); `secrets` in the data directory unless it is set. Accounts in the settings \
         file may name any file.",
    ),
    TLS_CERT,
    TLS_KEY,
    INSECURE,
    Key::new(
        "node",
        Form::Id,
        "The name of this node, which `worker` in a policy matches.",
    )
    .default("\"local\""),
    Key::new(
        "shutdown_timeout",
        Form::Span(Nanos::ZERO, Nanos::from_secs(3_600)),
        "How long a stopping server waits for what is on its way.",
    )
    .default("\"30s\""),
    Key::new(
        "request_timeout",
        Form::Span(Nanos::from_millis(100), Nanos::from_secs(3_600)),
        "How long one request may take.",
    )
    .default("\"30s\""),
    Key::new(
        "request_size_max",
        Form::Size(1_024, 1_024 * MIB),
        "The largest request.",
    )
    .default("\"64MiB\""),
    Key::new(
        "message_size_max",
        Form::Size(1_024, 1_024 * MIB),
        "The largest message, as it comes in.",
    )
    .default("\"36MiB\""),
    Key::new(
        "held_size_max",
        Form::Size(MIB, 64 * 1_024 * MIB),
        "How much all requests that are being worked on may take together.",
    )
    .default("\"256MiB\""),
    Key::new(
        "requests_max",
        Form::Whole(1, 1_000_000),
        "How many requests are worked on at once.",
    )
    .default("4096"),
    Key::new(
        "flows_max",
        Form::Whole(1, 100_000_000),
        "How many flows may live at once: combinations of lane, class, tenant, campaign and \
         sender domain under which something is queued, each of about 2 KB. A message that would \
         open one more is refused with `too_many_flows`; one of a flow that lives never is.",
    )
    .default("1000000"),
    Key::new(
        "tenant_flows_max",
        Form::Whole(1, 100_000_000),
        "The same for each tenant.",
    )
    .default("100000"),
];

pub const STORE: &[Key] = &[
    Key::new(
        "url",
        Form::Url(&["postgres", "postgresql"]),
        "A Postgres database. Without it, the store is embedded in the data directory.",
    )
    .example("\"postgres://outflow@db.example.com/outflow\""),
    Key::new(
        "segment_size",
        Form::Size(MIB, 4_096 * MIB),
        "How large a file of envelopes becomes before the next one is begun.",
    )
    .default("\"32MiB\""),
    Key::new(
        "body_segment_size",
        Form::Size(MIB, 16_384 * MIB),
        "How large a file of bodies becomes before the next one is begun.",
    )
    .default("\"64MiB\""),
    Key::new(
        "reserve_size",
        Form::Size(MIB, 1_024 * 1_024 * MIB),
        "With less than this free on the disk no messages are taken, so that there is room to \
         finish those that are there.",
    )
    .default("\"256MiB\""),
    Key::new(
        "receipts",
        Form::Word(&["all", "failures", "none"]),
        "Of which messages a receipt is kept. Dead letters always have one.",
    )
    .default("\"all\""),
];

pub const LEDGER: &[Key] = &[
    Key::new(
        "url",
        Form::Url(&["redis", "rediss"]),
        "A Redis that shares limits over a fleet. Without it, this node counts for itself. Several \
         addresses, separated by commas, are a master and its replicas: the one that is the master \
         is used.",
    )
    .example("\"redis://redis.example.com/0\""),
    Key::new(
        "cluster",
        Form::Flag,
        "Whether that is a Redis Cluster; the addresses are some of its nodes.",
    )
    .default("false"),
    Key::new(
        "prefix",
        Form::Id,
        "What the names of its keys begin with. Fleets with different prefixes share nothing.",
    )
    .default("\"outflow\""),
    Key::new(
        "timeout",
        Form::Span(Nanos::from_millis(5), Nanos::from_secs(10)),
        "A Redis that does not answer for this long is away: each limit goes on as its policy says \
         (`when_away`).",
    )
    .default("\"100ms\""),
];

pub const SMTP: &[Key] = &[
    Key::new("listen", Form::Listen, "Address and port.").example("\"127.0.0.1:2525\""),
    TLS_CERT,
    TLS_KEY,
    INSECURE,
];

pub const THROTTLE: &[Key] = &[
    Key::new("listen", Form::Listen, "Address and port.").example("\"127.0.0.1:6380\""),
    TLS_CERT,
    TLS_KEY,
    INSECURE,
    Key::new(
        "connections_max",
        Form::Whole(1, 1_000_000),
        "How many clients may be connected at once.",
    )
    .default("10000"),
    Key::new(
        "grants_log",
        PATH,
        "A file to which a line of JSON is written for every limit that is granted, over HTTP as \
         well. Without it, none is.",
    )
    .example("\"/var/log/outflow/grants.jsonl\""),
];

pub const RETENTION: &[Key] = &[
    Key::new(
        "bodies",
        Form::Either(&[Form::Word(&["settled"]), KEPT]),
        "How long a body is kept: `settled` until its message is done with, or for so long \
         afterwards. Freed bodies leave the disk within 24 hours.",
    )
    .default("\"settled\""),
    Key::new(
        "receipts",
        KEPT,
        "How long a receipt is kept after its message was done with.",
    )
    .default("\"30d\""),
    Key::new("dead_letters", KEPT, "How long a dead letter is kept.").default("\"14d\""),
    Key::new(
        "idempotency",
        KEPT,
        "How long an idempotency key is remembered after its message was done with.",
    )
    .default("\"24h\""),
    Key::new(
        "history",
        KEPT,
        "How long it is known what was sent where, by ten seconds and destination: what \
         `outflow report` draws.",
    )
    .default("\"14d\""),
    Key::new(
        "history_rows",
        Form::Whole(1_000, 1_000_000_000),
        "About how many rows of that are kept at most, of about 60 bytes each; the oldest go \
         first. A destination that is always busy has 8,640 a day.",
    )
    .default("2000000"),
    Key::new(
        "audit",
        KEPT,
        "How long it is known who or which rule changed what: `outflow audit`.",
    )
    .default("\"365d\""),
    Key::new(
        "audit_rows",
        Form::Whole(1_000, 1_000_000_000),
        "About how many lines of that are kept at most, of about 500 bytes each; the oldest go \
         first.",
    )
    .default("1000000"),
];

pub const LOG: &[Key] = &[
    Key::new(
        "format",
        Form::Word(&["text", "json"]),
        "Text for people, JSON for programs.",
    )
    .default("\"text\""),
    Key::new(
        "level",
        Form::Word(&["error", "warn", "info", "debug", "trace"]),
        "The least important that is logged.",
    )
    .default("\"info\""),
    Key::new(
        "recipients",
        Form::Flag,
        "Whether recipients' addresses are logged.",
    )
    .default("false"),
    Key::new(
        "attempts",
        PATH,
        "A file to which a line of JSON is written for every attempt. Without it, none is.",
    )
    .example("\"/var/log/outflow/attempts.jsonl\""),
    Key::new(
        "sandbox",
        PATH,
        "A file to which a line of JSON is written for every message that a sandbox takes, before \
         it answers. Without it, none is.",
    )
    .example("\"/var/log/outflow/sandbox.jsonl\""),
];

pub const METRICS: &[Key] = &[
    Key::new("destinations", LABELS, "Destinations.").default("1000"),
    Key::new("limits", LABELS, "Limits.").default("1000"),
    Key::new("accounts", LABELS, "Accounts.").default("1000"),
];
