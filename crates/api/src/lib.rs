//! The REST API of Outflow: submit, ask, change; and the page that shows it.
//!
//! It decides nothing about delivery. It reads what people and programs write,
//! says what is wrong with it, makes changes durable before they take effect,
//! and passes questions on to the node.
//!
//! In reading order: [`serve`](mod@serve) and [`server`] ([`doors`], [`patience`]: connections; routes,
//! bounds), [`state`], [`ask`](mod@ask) (how the node and the disk are asked);
//! [`problem`] (how requests are refused), [`grant`] and [`auth`] (who may),
//! [`extract`], [`object`], [`body_memory`], [`bounded`], [`stamp`] (what requests bring); [`messages`]; what
//! operators set: [`book`] (what is in force), [`changes`], [`accounts`] with [`account_secrets`],
//! [`policies`], [`mitigations`], [`governed`], [`pauses`], [`tokens`], [`audit`], [`usage`]; what they see:
//! [`lanes`], [`limits`], [`history`], [`throttle`], [`dead_letters`], [`suppressions`], [`feedback`], [`events`], [`notices`], [`health`], [`incidents`], [`warm_ups`]; then
//! [`chores`], [`standstills`] and [`runbook`] (what happens by itself), [`detours`] (which way messages go), [`document`] and [`fields`] (OpenAPI).

pub mod account_secrets;
pub mod accounts;
pub mod ask;
pub mod audit;
pub mod auth;
pub mod body_memory;
pub mod book;
pub mod bounded;
pub mod changes;
pub mod chores;
pub mod dead_letters;
pub mod detours;
pub mod document;
pub mod doors;
pub mod events;
pub mod extract;
pub mod feedback;
pub mod fields;
pub mod fleet;
pub mod governed;
pub mod grant;
pub mod health;
pub mod history;
pub mod incidents;
pub mod lanes;
pub mod limits;
pub mod messages;
pub mod mitigations;
pub mod notices;
pub mod object;
pub mod patience;
pub mod pauses;
pub mod policies;
pub mod problem;
pub mod runbook;
pub mod serve;
pub mod server;
pub mod stamp;
pub mod standstills;
pub mod state;
pub mod suppressions;
pub mod throttle;
pub mod tokens;
pub mod usage;
pub mod warm_ups;

pub use book::{AccountSink, StartValues};
pub use events::Events;
pub use serve::{listen, serve, serve_within};
pub use server::{openapi, router};
pub use state::{ApiState, Bounds, Clock, Metrics, Parts, Readiness};
