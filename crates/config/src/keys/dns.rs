//! The keys of destinations: who hosts a domain, and how DNS is asked.

use outflow_core::time::Nanos;

use crate::key::{Form, Key};

pub const DNS: &[Key] = &[
    Key::new(
        "lookups",
        Form::Word(&["auto", "always", "never"]),
        "Whether DNS is asked who hosts a domain that is not well known. `auto` asks as soon as \
         there is an account that is no sandbox; before that nothing leaves this machine, \
         questions included. \
         With `never` such a domain is a destination of its own, and `mx` accounts cannot send.",
    )
    .default("\"auto\""),
    Key::new(
        "servers",
        Form::List(&Form::Listen, 16),
        "Whom to ask. Without any, the servers that the system names (/etc/resolv.conf).",
    )
    .example("[\"127.0.0.1:53\"]"),
    Key::new(
        "lookups_max",
        Form::Whole(1, 10_000),
        "How many questions are asked at once.",
    )
    .default("64"),
    Key::new(
        "patience",
        Form::Span(Nanos::from_millis(100), Nanos::from_secs(3_600)),
        "How long the messages of a domain wait while DNS fails. Then the domain counts as a \
         destination of its own, and is asked for again after a minute.",
    )
    .default("\"10s\""),
    Key::new(
        "cache_max",
        Form::Whole(1, 10_000_000),
        "How many domains are remembered, each for as long as DNS says.",
    )
    .default("100000"),
    Key::new(
        "addresses",
        Form::Word(&["ipv4_first", "ipv6_first", "ipv4", "ipv6"]),
        "Which addresses of a mail server are tried, and in which order. Many providers refuse \
         IPv6 addresses that have no reverse name.",
    )
    .default("\"ipv4_first\""),
    Key::new(
        "mta_sts",
        Form::Flag,
        "Whether `mx` accounts keep the policies of recipients' domains (MTA-STS, RFC 8461): mail \
         for a domain that enforces one goes only to servers that it names, over TLS with a \
         certificate that is valid for the server. A domain is asked by DNS whether it has one, \
         and its policy is fetched by HTTPS from `mta-sts.DOMAIN`.",
    )
    .default("true"),
    Key::new(
        "allowed_networks",
        Form::List(&Form::Network, 256),
        "Networks that `mx` accounts may connect to though they are not public. Whoever owns a \
         domain can name any address as its mail server, so mail goes to public addresses only: \
         not to this machine, private, link-local or shared networks, multicast or \
         documentation, and a domain that has no other server bounces. The same holds for \
         addresses in brackets (`user@[10.0.0.7]`) and for the web servers of MTA-STS.",
    )
    .example("[\"10.20.0.0/16\", \"fd12:3456::/32\"]"),
];

pub const DESTINATIONS: &[Key] = &[
    Key::new(
        "file",
        Form::Path,
        "A file of mailbox providers, in the form of \
         `crates/resolver-dns/data/mailbox-providers.toml`. It goes before what is built in.",
    )
    .example("\"/etc/outflow/mailbox-providers.toml\""),
    Key::new(
        "policies",
        Form::Flag,
        "Whether the policies for large mailbox providers that come with the program hold. They \
         are for accounts whose sending address is known, `mx` accounts above all.",
    )
    .default("true"),
];
