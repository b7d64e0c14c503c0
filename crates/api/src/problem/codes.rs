//! Every error that a caller can see, once: code, status, title, and what to
//! do about it. The pages in `docs/errors` are generated from this table.

/// What is said of one error.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    /// The word that programs rely on.
    pub code: &'static str,
    /// Its HTTP status.
    pub status: u16,
    /// What it is, in a few words.
    pub title: &'static str,
    /// Why it comes about and what to do, in Markdown.
    pub page: &'static str,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $status:literal, $title:literal, $page:literal;)*) => {
        /// An error that a caller can see.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $title] $name,)*
        }

        impl Code {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// What is said of it.
            pub const fn entry(self) -> &'static Entry {
                match self {
                    $(Self::$name => &Entry {
                        code: $code,
                        status: $status,
                        title: $title,
                        page: $page,
                    },)*
                }
            }
        }
    };
}

codes! {
    InvalidJson = "invalid_json", 400, "The body is not JSON",
        "The body could not be read as JSON, or ended early. `detail` says where reading stopped.";
    InvalidQuery = "invalid_query", 400, "The query or the path cannot be read",
        "A parameter of the query or a part of the path has another form than expected. `detail` \
         says which. Cursors are to be sent back exactly as they were given.";
    Unauthorized = "unauthorized", 401, "A valid token is needed",
        "No token was sent, or it is not known. Send `Authorization: Bearer TOKEN` or \
         `X-API-Token: TOKEN`. The first start writes an administrator's token to \
         `admin-token` in the data directory; further ones are made by `POST /api/v1/tokens`. \
         A token that was taken away stops working at once.";
    Forbidden = "forbidden", 403, "This token may not do that",
        "The token is known, but its scope, tenant, classes, pools or From domains do not cover \
         the request. `detail` says which. Use another token, or ask an administrator for one \
         with the scope that is named.";
    NotFound = "not_found", 404, "There is no such thing",
        "Nothing has this address or id, or it belongs to a tenant that the token does not speak \
         for. Receipts are kept for a limited time (`[retention]` in the settings): a message \
         that was settled long ago is not found either.";
    MethodNotAllowed = "method_not_allowed", 405, "The method does not go with this address",
        "The address exists, but takes other methods: the `Allow` header lists them.";
    LedgerAway = "ledger_away", 503, "The ledger cannot be reached",
        "Policies are shared by all nodes of a fleet through the ledger, and it does not answer. \
         Nothing was changed on any node. Try again after `Retry-After`; `GET /readyz` says since \
         when it is away.";
    Conflict = "conflict", 409, "It has changed meanwhile",
        "Somebody else changed the same thing between reading and writing, or the version in \
         `If-Match` is not the one in force. Read it again, and repeat the change if it is still \
         wanted.";
    IdempotencyConflict = "idempotency_conflict", 409, "The idempotency key was used for other content",
        "A message with the same idempotency key was accepted before, and its content was not \
         the same. The new message was not accepted. Use a new key for new content; repeat a \
         request with its key only if the content is exactly the same.";
    AlreadySending = "already_sending", 409, "The message is being sent",
        "The message was handed to a transport and has not been answered yet, so it can neither \
         be withdrawn nor retried. Ask again: a moment later it is settled, or waits for its \
         next attempt and can be withdrawn.";
    AlreadySettled = "already_settled", 409, "The message is done with",
        "The message has reached a final state (`delivered`, `bounced`, `expired`, `cancelled`, \
         `suppressed` or `dead`): nothing about it can be changed any more. A dead letter can be \
         replayed by a review.";
    ReviewClosed = "review_closed", 409, "The review was decided before",
        "A review of dead letters is approved or discarded once. Make a new review to select \
         dead letters again.";
    BodyGone = "body_gone", 410, "The content is no longer kept",
        "The content of a message is freed once it is settled; only its receipt is kept \
         (`[retention]` in the settings).";
    TooLarge = "too_large", 413, "The request is too large",
        "The body has more bytes than the server takes in one request. Send fewer messages at \
         once, or smaller attachments.";
    UnsupportedMediaType = "unsupported_media_type", 415, "The media type of the body is not taken",
        "Send `Content-Type: application/json`, or `application/x-ndjson` for messages line by \
         line.";
    Invalid = "invalid", 422, "Some fields cannot be accepted",
        "The body is well formed, but something in it cannot be accepted. `errors` lists each \
         field by its JSON pointer and says what is wrong with it. Unknown fields are refused, so \
         that a misspelt one is not silently ignored. In a batch, messages without \
         errors are accepted all the same, and the others are listed under `rejected`.";
    UnknownLimit = "unknown_limit", 422, "No policy speaks of this limit",
        "A key without numbers of its own stands for the limits that policies put on it, and no \
         policy in force speaks of this one. Write a policy (`PUT /api/v1/policies/isp/google`, or \
         `[[policy]]` in the settings), or give the numbers with the request: `\"rate\": \"10/s\"`, \
         `\"limits\": [\"14/s burst 28\", \"50k/day\"]`, `\"concurrency\": 4`.";
    CostTooLarge = "cost_too_large", 422, "The cost is more than the limit ever grants",
        "A limit grants at once at most its burst, its count in a window, or its slots; in a fleet \
         half of a burst. A request for more would wait for ever. Ask for less at a time, or raise \
         the burst.";
    TooManyFlows = "too_many_flows", 429, "Too many different values are queued at once",
        "Messages that share destination, class, tenant, campaign, sender domain and pool form a \
         flow, and each flow costs the server memory as long as something of it is queued. This \
         message would have opened one more than the tenant (`server.tenant_flows_max` in the \
         settings) or all tenants together (`server.flows_max`) may have. `detail` and `errors` \
         name the field with too many different values: a campaign for each message instead of \
         one for a mailing, for example; put what differs by message into `tags`. The message was \
         not accepted and left nothing behind. Messages of flows that live are taken all the \
         same; flows go when nothing is queued under them any more, so repeat the message after \
         the time in `Retry-After`. In a batch the other messages are accepted, and those that \
         were not are listed under `rejected`. Over SMTP the answer is `452 4.3.1`.";
    QuotaExhausted = "quota_exhausted", 429, "One tenant may not occupy more",
        "Connections, keys of the throttle and its permits, entries of the suppression list, \
         pauses and places of listeners are shared by all tenants, and each tenant may have eight \
         times as much of them as is free: alone almost all, with others less. `detail` says what there is too much of, and \
         `GET /api/v1/tenants/{id}/usage` how much of everything a tenant has and may have. \
         Take away what is not needed, or repeat the request after the time in `Retry-After`, if \
         what is occupied ends by itself. Nothing was changed.";
    Internal = "internal", 500, "Something went wrong inside",
        "This is a fault of the server; its log has more. If a message was submitted, it is not \
         known whether it was accepted: repeat the request with its idempotency key.";
    Busy = "busy", 503, "The server has too much to do",
        "More requests or messages are on their way than the server holds at once. Nothing of \
         this request was accepted. Repeat it after the time in `Retry-After`.";
    NotStored = "not_stored", 503, "The store cannot take messages now",
        "The disk is full or does not answer, so nothing can be accepted durably. It is not known \
         whether messages of this request were stored: repeat it with the same idempotency key \
         after the time in `Retry-After`. Service resumes by itself once there is room.";
    Storage = "storage", 503, "What was asked for cannot be read or written now",
        "The disk, or the database on it, failed. The server's log says how. Nothing was changed. \
         Repeat the request after the time in `Retry-After`.";
    Closing = "closing", 503, "The server is shutting down",
        "The server finishes what is in flight and takes nothing new. Repeat the request after \
         the time in `Retry-After`, or send it to another node.";
    TimedOut = "timed_out", 503, "The request took too long",
        "The server gave the request up. If messages were submitted, it is not known whether they \
         were accepted: repeat the request with its idempotency key.";
}

impl Code {
    /// The word that programs rely on.
    pub const fn as_str(self) -> &'static str {
        self.entry().code
    }

    /// Its page, as it is committed to `docs/errors`.
    pub fn page(self) -> String {
        let Entry {
            code,
            status,
            title,
            page,
        } = self.entry();
        format!("# `{code}`\n\nStatus {status}. {title}.\n\n{page}\n")
    }
}
