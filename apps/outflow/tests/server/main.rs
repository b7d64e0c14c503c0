//! The real binary, spoken to over HTTP, killed and started again.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    missing_docs
)]

mod bombs;
mod cli;
#[path = "../../src/demo/client.rs"]
mod client;
mod crowded;
mod damage;
mod damaged_body;
mod demo;
mod disk_full;
#[allow(dead_code, reason = "the tests of the resolver use the rest")]
#[path = "../../../../crates/resolver-dns/tests/dns/server.rs"]
mod dns;
mod doctor;
mod failing_disk;
mod first;
mod fleet;
mod flow_caps;
mod flows;
mod fuzz_corpus;
mod hidden_limits;
mod hostile;
mod kills;
mod limits;
mod logins;
mod lost_answers;
mod mail_kills;
mod mailboxes;
mod mx;
mod operators;
mod peers;
#[allow(dead_code, reason = "the tests of the transport use the rest")]
#[path = "../../../../crates/transport-smtp/tests/smtp/postfix_server.rs"]
mod postfix_server;
mod pressure;
mod process;
#[allow(dead_code, reason = "the tests of the transport use the rest")]
#[path = "../../../../crates/transport-smtp/tests/smtp/programs.rs"]
mod programs;
mod receiver;
mod recipes;
#[allow(dead_code, reason = "the tests of the ledger use the rest")]
#[path = "../../../../crates/ledger-redis/tests/redis/server.rs"]
mod redis_server;
mod report;
mod routes;
mod runbook;
mod sessions;
mod sink;
#[path = "../../../../crates/transport-smtp/tests/smtp/smtp_sink.rs"]
mod smtp_sink;
mod stops;
mod stored;
mod submission;
mod submission_counts;
mod submitter;
mod suppressions;
mod throttle;
mod throttle_fleet;
mod tls;
mod warm_up;
