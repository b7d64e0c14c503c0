//! Every metric, declared once: name, kind, labels, and what exactly it counts.
//!
//! What is served under `/metrics`, the reference and the checks of the
//! examples all come from here.

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows while the process lives.
    Counter,
    /// What is so now.
    Gauge,
    /// How many were how large.
    Histogram,
}

impl Kind {
    /// The word used by Prometheus.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// What it is called.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// Its labels, in order.
    pub labels: &'static [&'static str],
    /// What it counts.
    pub help: &'static str,
}

macro_rules! metrics {
    ($($constant:ident = $kind:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(
            #[doc = $help]
            pub const $constant: Metric = Metric {
                name: $name,
                kind: Kind::$kind,
                labels: &[$($label),*],
                help: $help,
            };
        )*

        /// All metrics, in the order in which they are served.
        pub const ALL: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    MESSAGES_ACCEPTED = Counter "outflow_messages_accepted_total" ["channel", "class"]
        "Messages that are durable and were acknowledged. A submission whose idempotency key was known is not counted again.";
    INTAKE_REFUSED = Counter "outflow_intake_refused_total" ["reason"]
        "Messages that were not taken in: `busy` (too many on their way to the disk), `closing` (shutting down), `not_stored` (the disk did not take them), `too_many_flows` (more flows than `server.flows_max` or `server.tenant_flows_max` would live at once).";
    ATTEMPTS = Counter "outflow_attempts_total" ["channel", "destination", "outcome"]
        "Attempts that have ended, by what became of them: `delivered`, `bounced` (refused for good), `deferred` (refused for now), `uncertain` (nobody knows whether it was taken), `dead` (refused for now, and given up).";
    ATTEMPT_SECONDS = Histogram "outflow_attempt_seconds" ["channel"]
        "Time from handing a message to the transport to the answer.";
    MESSAGES_SETTLED = Counter "outflow_messages_settled_total" ["channel", "class", "state"]
        "Messages that are done with, by final state. Messages that a mass cancel found in the store are not among them: the store withdraws them without reading each.";
    DEAD_LETTERS = Counter "outflow_dead_letters_total" ["channel", "class", "cause"]
        "Messages that were given up: `attempts` or `age` (the schedule ended), `uncertain` (answers were lost, and the settings forbid another copy), `too_large` (costs more than a limit ever admits), `storage_damaged` (what was stored of them does not hold). They are settled as `dead` as well.";
    DEFERRALS = Counter "outflow_deferrals_total" ["class", "reason"]
        "Messages that were put off until a time: `attempt` (one failed), `limit` (a limit of the recipient, or the retry budget, told them to step aside without an attempt).";
    FEEDBACK = Counter "outflow_feedback_total" ["reason"]
        "Messages that the far end took and came back to later, by class of the reply.";
    TIME_TO_DELIVERY = Histogram "outflow_time_to_delivery_seconds" ["class"]
        "Time from acceptance to acceptance by the far end, for messages that were delivered. Waiting for `not_before` and for retries is part of it.";
    QUEUE_MESSAGES = Gauge "outflow_queue_messages" ["channel", "class", "state"]
        "Messages that are not done with: `queued` (ready), `sending` (on their way), `deferred` (waiting for their time).";
    QUEUE_OLDEST_AGE = Gauge "outflow_queue_oldest_age_seconds" ["class"]
        "How long the oldest message that is ready has waited; 0 if none is.";
    IN_FLIGHT = Gauge "outflow_in_flight" []
        "Deliveries without an answer yet.";
    SESSIONS = Gauge "outflow_sessions" []
        "Sessions of all accounts, open or opening.";
    LIMIT_WAIT = Histogram "outflow_limit_wait_seconds" ["scope"]
        "Time that the first message of a flow waited at a limit of this scope, counted when it may go on; one that did not wait is not counted. `account` is the wait at a pool's gate: for an account whose limits are open and that has a session. Limits on a product have all their scopes: `ip/isp`. Requests to the throttle that waited are counted here as well; `key` are limits with numbers of their own.";
    LIMIT_REFUSED = Counter "outflow_limit_refused_total" ["scope"]
        "How often the first message of a flow came to a limit of this scope and had to wait there. `account` is the gate of a pool, as above; `recipient` counts messages that stepped aside for a limit of their recipient. Requests that the throttle refused or made wait are counted here as well.";
    LIMIT_TOKENS = Gauge "outflow_limit_tokens" ["limit"]
        "What a limit would admit at once now. `other` is the sum of those beyond the bound on labels.";
    LIMIT_RATE = Gauge "outflow_limit_rate" ["limit"]
        "The rate of a limit in force, in messages per second. Limits on what is in flight have none.";
    RATE_LIMITED = Counter "outflow_rate_limited_total" ["account_id"]
        "How often an account's own limits made a message wait: each message at the head of its flow that stood at a gate of the account's pool when its limits shut for the message's class, or came to one before they opened again, once for each time they shut. Limits of the account at one destination, and waits that the far end asked for, are not counted.";
    DEFERRED = Gauge "outflow_deferred" ["account_id"]
        "Messages that are ready and wait at a gate of the account's pool, of classes for which the account's own limits are shut now. Accounts that stand in for one another each count them.";
    BREAKER_STATE = Gauge "outflow_breaker_state" ["lane"]
        "Whether accounts are left alone at a lane because they failed or were refused too often: 0 none is, 1 one is being tried again, 2 one is. Broken lanes come first; `other` is the sum of those beyond the bound on labels.";
    STORE_COMMIT = Histogram "outflow_store_commit_seconds" []
        "Time in which the store made a group of records durable, from the first write to the end of the last sync.";
    STORE_RECORDS = Counter "outflow_store_records_total" []
        "Records that the store made durable.";
    STORE_BYTES = Counter "outflow_store_bytes_total" []
        "Bytes that the store made durable.";
    STORE_FAILING = Gauge "outflow_store_failing" []
        "1 while the store does not take records and nothing is sent, else 0.";
    DNS_AWAY = Gauge "outflow_dns_away" []
        "1 while no DNS server has answered for as long as messages wait for it (`dns.patience`), else 0. It is back when the next question is answered.";
    LEDGER_AWAY = Gauge "outflow_ledger_away" []
        "1 while the ledger of the fleet does not answer and each limit goes on as its policy says (`when_away`), else 0.";
    LEDGER_ROUND_TRIPS = Counter "outflow_ledger_round_trips_total" []
        "Questions to the ledger of the fleet, each for any number of limits, that were answered.";
    LEDGER_LEASED = Counter "outflow_ledger_tokens_leased_total" []
        "Tokens that this node leased from the ledger.";
    LEDGER_GIVEN_BACK = Counter "outflow_ledger_tokens_given_back_total" []
        "Leased tokens that this node gave back unused.";
    ALERTS = Counter "outflow_alerts_total" ["alert"]
        "Things that a person should know: `store_failing`, `store_recovered`, `ledger_away`, `refused` (in a way that a person must mend: a log-in, SPF, DKIM or DMARC, a block), `worker_lost` (a delivery got no answer by its deadline).";
    HTTP_REQUESTS = Counter "outflow_http_requests_total" ["method", "route", "status"]
        "Requests answered, by the template of their route.";
    HTTP_REQUEST_SECONDS = Histogram "outflow_http_request_seconds" ["method", "route"]
        "Time from a request to its answer.";
    SUBMISSION_CONNECTIONS = Gauge "outflow_submission_connections" []
        "Connections to the submission port (SMTP) that are open.";
    SUBMISSION_CONNECTED = Counter "outflow_submission_connections_total" []
        "Connections that the submission port took.";
    SUBMISSION_MESSAGES = Counter "outflow_submission_messages_total" []
        "Messages that the submission port acknowledged, each with all its recipients.";
    SUBMISSION_LOGINS = Counter "outflow_submission_logins_total" ["result"]
        "Tokens that were shown at the submission port: `known`, `refused`.";
    SUBMISSION_REFUSED = Counter "outflow_submission_refused_total" ["reply"]
        "Replies of the submission port that said no or later, by code and enhanced status: `452 4.3.1`. What each means is in the page on submission.";
    REPORTS = Counter "outflow_reports_total" ["result"]
        "What others told of messages later (bounces, complaints, opens), by mail and over the API: `matched` to a message, `unmatched`, `unread` (a mail that says nothing that is understood).";
    SUPPRESSED_RECIPIENTS = Gauge "outflow_suppressed_recipients" []
        "Recipients on the suppression list that are in force, counted once for each tenant.";
    SUPPRESSIONS_HELD = Gauge "outflow_suppressions_held" []
        "Entries of the suppression list that are held until a person has looked, since their destination was not believed: `outflow suppressions review`.";
    SUPPRESSIONS_LET_GO = Counter "outflow_suppressions_let_go_total" []
        "Bounces that are not on the suppression list, since more came at once than can wait for the disk. The next message to those recipients bounces as well.";
    THROTTLE_ACQUIRES = Counter "outflow_throttle_acquires_total" ["result"]
        "Requests to the throttle, over HTTP and over the Redis protocol: `granted` (at once or after a wait), `refused` (for now or for good), `failed` (they made no sense).";
    THROTTLE_WAITED = Counter "outflow_throttle_waited_total" []
        "Requests to the throttle that had to wait on the server.";
    THROTTLE_WAITING = Gauge "outflow_throttle_waiting" []
        "Requests to the throttle that wait on the server now.";
    THROTTLE_KEYS = Gauge "outflow_throttle_keys" []
        "Limits that the throttle keeps now. Idle ones are dropped.";
    THROTTLE_PERMITS = Gauge "outflow_throttle_permits" []
        "Permits for concurrency limits that are held now.";
    LOG_LINES_DROPPED = Counter "outflow_log_lines_dropped_total" ["log"]
        "Lines that were not written because their writer did not keep up: of the `server` log, of the log of `attempts`, of the log of `grants`.";
    BUILD_INFO = Gauge "outflow_build_info" ["version"]
        "Always 1; says which version runs.";
}

/// The metric of this name, or the histogram of which this is a part.
pub fn find(name: &str) -> Option<&'static Metric> {
    let by_name = |name: &str| ALL.iter().find(|metric| metric.name == name);
    by_name(name).or_else(|| {
        let base = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|end| name.strip_suffix(end))?;
        by_name(base).filter(|metric| metric.kind == Kind::Histogram)
    })
}
