//! What the OpenAPI document says of texts that have a form of their own, and
//! of the fields of accounts and policies.
//!
//! These types are never made: each stands for its schema. A schema cannot say
//! everything that is checked (a length in bytes, say), but what it allows is
//! mostly taken, and what it forbids is always refused.

use serde_json::{Value, json};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// One line, without a space at either end, that is not `*`.
const NAME: &str = r"^([^\s\u0000-\u001f\u007f-\u009f*]|[^\s\u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f])$";
/// One line.
const LINE: &str = r"^[^\u0000-\u001f\u007f-\u009f]*$";
const CLASS: [&str; 4] = ["critical", "high", "normal", "low"];
const BASE64: &str =
    r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$";
/// `user@example.com`, `A Person <user@example.com>`; or with letters of any
/// language, of which the schema says no more.
const MAILBOX: &str = r"^([A-Za-z0-9]+@[A-Za-z0-9]{1,20}(\.[A-Za-z0-9]{1,20}){0,3}|[A-Za-z][A-Za-z ]* <[A-Za-z0-9]+@[A-Za-z0-9]{1,20}>|[^\u0000-\u001f\u007f-\u009f]+@[^\u0000-\u001f\u007f-\u009f]+)$";
const DESTINATION: &str = r"^(isp|carrier|push|host|domain):[^\s\u0000-\u001f\u007f-\u009f]+$";

macro_rules! forms {
    ($($(#[$doc:meta])* $name:ident: $schema:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub enum $name {}

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                read($schema)
            }
        }

        impl ToSchema for $name {}
    )*

        /// All of them, by name: parameters refer to them, but do not bring
        /// them along.
        pub fn all() -> Vec<(&'static str, RefOr<Schema>)> {
            vec![$((stringify!($name), $name::schema()),)*]
        }
    };
}

forms! {
    /// The fields of an account.
    AccountFields: outflow_config::account_schema();
    /// The fields of a policy.
    PolicyFields: outflow_config::policy_schema();
    /// The id of an account.
    AccountId: json!({
        "type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[A-Za-z0-9._+@:-]+$",
    });
    /// What a policy governs: `isp/google`, `account/ses-1/isp/google`, `global`.
    PolicyPath: json!({ "type": "string", "minLength": 1, "maxLength": 512 });
    /// `POOL/KIND:NAME`.
    LaneText: json!({ "type": "string", "minLength": 3, "maxLength": 300 });
    /// The name of a tenant, a campaign, a pool, a token.
    NameText: json!({ "type": "string", "minLength": 1, "maxLength": 128, "pattern": NAME });
    /// How urgent a message is.
    ClassWord: json!({ "type": "string", "enum": CLASS });
    /// How a message travels.
    ChannelWord: json!({ "type": "string", "enum": ["email"] });
    /// Who judges a message: `isp:google`.
    DestinationText: json!({ "type": "string", "pattern": DESTINATION });
    /// An address, perhaps with a name before it.
    MailboxText: json!({ "type": "string", "pattern": MAILBOX });
    /// One address, or several.
    Recipients: json!({ "anyOf": [
        { "type": "string", "pattern": MAILBOX },
        { "type": "array", "items": { "type": "string", "pattern": MAILBOX }, "maxItems": 1000 },
    ] });
    /// Bytes in base64.
    Base64Text: json!({ "type": "string", "pattern": BASE64 });
    /// Text of one line.
    LineText: json!({ "type": "string", "maxLength": 2000, "pattern": LINE });
    /// Why something was done.
    ReasonText: json!({ "type": "string", "maxLength": 1000, "pattern": LINE });
    /// The same key twice is one request.
    KeyText: json!({ "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$" });
    /// A domain.
    DomainText: json!({ "type": "string", "pattern": r"^[^\s@]+$" });
    /// The sender's own labels.
    TagMap: json!({
        "type": "object",
        "maxProperties": 32,
        "propertyNames": { "type": "string", "maxLength": 64, "pattern": LINE },
        "additionalProperties": { "type": "string", "maxLength": 256, "pattern": LINE },
    });
    /// Terms that must all agree: `{"tenant":"acme","isp":"google"}`.
    MatchTerms: json!({
        "type": "object",
        "minProperties": 1,
        "propertyNames": { "type": "string", "enum": [
            "isp", "carrier", "push", "host", "lane", "account", "pool", "ip", "sender_domain",
            "brand", "tenant", "campaign", "class", "recipient", "worker", "key", "global",
            "destination",
        ] },
        "additionalProperties": { "type": "string" },
    });
    /// The key of a limit.
    ThrottleKey: json!({ "type": "string", "minLength": 1, "maxLength": 256, "pattern": LINE });
    /// A limit as people write it: `10/s`, `600/min`, `50k/day`; or a number a second.
    RateText: json!({ "anyOf": [
        { "type": "string", "maxLength": 200 },
        { "type": "number", "exclusiveMinimum": 0 },
    ] });
    /// What becomes of a limit while the ledger of a fleet is away.
    AwayWord: json!({ "type": "string", "enum": ["closed", "open", "local_share"] });
    /// States of messages, separated by commas.
    StateList: json!({ "type": "string", "pattern": format!("^({STATE}(,{STATE})*)?$") });
    /// States of incidents, separated by commas.
    IncidentStates: json!({
        "type": "string", "pattern": format!("^({INCIDENT}(,{INCIDENT})*)?$"),
    });
    /// Kinds of events, separated by commas.
    KindList: json!({ "type": "string", "pattern": format!("^({KIND}(,{KIND})*)?$") });
    /// Where a list of messages goes on.
    CursorText: json!({ "type": "string", "pattern": "^(l[0-9]{1,18}|d[0-9]{0,18})$" });
}

const STATE: &str =
    "(queued|sending|deferred|spilled|delivered|bounced|expired|cancelled|suppressed|dead)";
const INCIDENT: &str = "(open|mitigating|recovering|closed)";
const KIND: &str = "(settled|deferred|alert|changed)";

fn read(schema: Value) -> RefOr<Schema> {
    serde_json::from_value(schema).expect("what is written above is a schema")
}
