//! What the words of the API mean, said to people.

/// What a state means.
pub fn state(state: &str) -> &'static str {
    match state {
        "queued" => "waits for its turn",
        "sending" => "is being handed to the far end",
        "deferred" => "waits for its time",
        "spilled" => "waits in cold storage",
        "delivered" => "was accepted by the far end",
        "bounced" => "was refused for good",
        "expired" => "was of no use any more before it could go",
        "cancelled" => "was withdrawn",
        "suppressed" => "was held back: its recipient must not be written to",
        "dead" => "was given up; it can be replayed (`outflow dead-letters review`)",
        _ => "",
    }
}

/// Why a dead letter was given up.
pub fn cause(cause: &str) -> &str {
    match cause {
        "attempts" => "too many attempts",
        "age" => "too old",
        "uncertain" => "nobody knows whether it was taken",
        "too_large" => "larger than a limit ever admits",
        "storage_damaged" => "what was stored of it is damaged",
        other => other,
    }
}

/// What stands before a message that is no limit.
pub fn reason(reason: &str) -> &str {
    match reason {
        "due_time" => "its time",
        "no_account" => "an account: its pool has none (`outflow accounts add`)",
        "no_account_ready" => "an account: all of its pool are busy, blocked or at their limits",
        "account_blocked" => {
            "an account: the far end asked this one to wait, and none opens sooner"
        }
        "account_broken" => "an account: this one fails or is refused, and none opens sooner",
        "under_pressure" => "an account: others are blocked, and this one keeps its rate",
        "no_session" => "a session, which cannot be opened",
        "unresolved" => "an answer to who hosts its domain",
        "paused" => "a pause to be lifted",
        "store_failing" => "the disk of the server, which does not take records",
        "draining" => "a new start: the server is shutting down",
        other => other,
    }
}

/// The same in a word or two, for tables.
pub fn reason_short(reason: &str) -> &str {
    match reason {
        "no_account" => "no account",
        "no_account_ready" => "account busy",
        "no_session" => "no session",
        "account_blocked" => "blocked",
        "account_broken" => "broken",
        "under_pressure" => "others blocked",
        "store_failing" => "disk",
        "due_time" => "its time",
        other => other,
    }
}

/// What has been decided about a review.
pub fn decision(state: &str) -> &str {
    match state {
        "open" => "open: nothing is decided yet",
        "replaying" => "replaying: they re-enter",
        "discarding" => "being discarded",
        other => other,
    }
}
