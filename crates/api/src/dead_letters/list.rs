//! `GET /dead-letters` and their causes.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use outflow_core::class::Class;
use outflow_core::message::{Seq, State as MessageState};
use outflow_ports::receipts::{CauseCount, ReceiptFilter};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::preview::still_dead;
use crate::ask::on_disk;
use crate::auth::{Caller, May, OperateOwn};
use crate::bounded::is_cursor;
use crate::extract::Asked;
use crate::fields::{ClassWord, DestinationText, NameText};
use crate::messages::list::Selection;
use crate::messages::view::MessageView;
use crate::problem::{Code, Problem};
use crate::stamp::Stamp;
use crate::state::ApiState;

const PAGE: usize = 50;
const PAGE_MAX: usize = 200;

/// Which dead letters.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct DeadLetterQuery {
    #[param(value_type = Option<NameText>)]
    tenant: Option<String>,
    #[param(value_type = Option<NameText>)]
    campaign: Option<String>,
    /// As `isp:google`.
    #[param(value_type = Option<DestinationText>)]
    destination: Option<String>,
    #[param(value_type = Option<ClassWord>)]
    class: Option<String>,
    #[param(value_type = Option<NameText>)]
    pool: Option<String>,
    /// Given up at this time or later, in RFC 3339.
    #[param(format = DateTime)]
    since: Option<String>,
    /// Given up before this time, in RFC 3339.
    #[param(format = DateTime)]
    before: Option<String>,
    /// Where the last page ended.
    cursor: Option<u64>,
    /// At most so many; 50 unless told, at most 200.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
}

/// A page of dead letters.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeadLetterPage {
    dead_letters: Vec<MessageView>,
    /// Ask again with this; null at the end.
    next_cursor: Option<u64>,
}

/// How many dead letters have one cause.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Cause)]
pub struct CauseView {
    /// Why they were given up.
    cause: String,
    /// The class of their last error.
    error_class: String,
    /// Its status, where there was one.
    status: Option<u16>,
    destination: String,
    count: u64,
}

/// Dead letters by cause, most first.
#[derive(Debug, Serialize, ToSchema)]
pub struct CauseList {
    causes: Vec<CauseView>,
}

impl From<CauseCount> for CauseView {
    fn from(cause: CauseCount) -> Self {
        Self {
            cause: cause.cause,
            error_class: cause.error_class,
            status: cause.code,
            destination: cause.destination,
            count: cause.count,
        }
    }
}

fn bad(detail: impl Into<String>) -> Problem {
    Problem::new(Code::InvalidQuery, detail)
}

fn filter(caller: &Caller, query: DeadLetterQuery) -> Result<ReceiptFilter, Problem> {
    if let Some(class) = &query.class {
        class
            .parse::<Class>()
            .map_err(|error| bad(error.to_string()))?;
    }
    let selection = Selection {
        tenant: caller.tenant_or(query.tenant)?,
        campaign: query.campaign,
        destination: query.destination,
        class: query.class,
        pool: query.pool,
    };
    selection.matches().map_err(bad)?;
    let time = |field: &str, text: Option<String>| match text {
        Some(text) => Stamp::parse(&text)
            .map(|Stamp(wall)| Some(wall))
            .map_err(|wrong| bad(format!("{field}: {wrong}"))),
        None => Ok(None),
    };
    Ok(ReceiptFilter {
        settled_since: time("since", query.since)?,
        settled_before: time("before", query.before)?,
        ..selection.receipts(vec![MessageState::Dead])
    })
}

/// Where a page begins, and how long it is.
fn page(query: &DeadLetterQuery) -> Result<(Option<Seq>, usize), Problem> {
    let max = query.limit.unwrap_or(PAGE);
    if !(1..=PAGE_MAX).contains(&max) {
        return Err(bad(format!("limit must be between 1 and {PAGE_MAX}")));
    }
    if !query.cursor.is_none_or(is_cursor) {
        return Err(bad("cursor is not one of ours"));
    }
    Ok((query.cursor.map(Seq), max))
}

/// List dead letters, newest first. Those that were replayed or discarded are
/// not listed, so a page may be short and still carry a cursor.
#[utoipa::path(
    get,
    path = "/dead-letters",
    tag = "dead letters",
    params(DeadLetterQuery),
    responses((status = 200, description = "a page of dead letters", body = DeadLetterPage)),
)]
pub async fn list(
    may: May<OperateOwn>,
    State(state): State<ApiState>,
    Asked(Query(query)): Asked<Query<DeadLetterQuery>>,
) -> Result<Json<DeadLetterPage>, Problem> {
    let (below, max) = page(&query)?;
    let filter = filter(&may, query)?;
    let receipts = Arc::clone(&state.receipts);
    let found = on_disk(move || receipts.list(&filter, below, max)).await??;
    let last = found.last().map(|receipt| receipt.seq.0);
    let next_cursor = last.filter(|_| found.len() >= max);
    let dead = still_dead(&state, found).await;
    Ok(Json(DeadLetterPage {
        next_cursor,
        dead_letters: dead.into_iter().map(MessageView::of_receipt).collect(),
    }))
}

/// Count by cause what was given up, whatever has become of it since.
#[utoipa::path(
    get,
    path = "/dead-letters/causes",
    tag = "dead letters",
    params(DeadLetterQuery),
    responses((status = 200, description = "how many have each cause", body = CauseList)),
)]
pub async fn causes(
    may: May<OperateOwn>,
    State(state): State<ApiState>,
    Asked(Query(query)): Asked<Query<DeadLetterQuery>>,
) -> Result<Json<CauseList>, Problem> {
    // Counting has no pages, but what is wrong is wrong here as well.
    page(&query)?;
    let filter = filter(&may, query)?;
    let receipts = Arc::clone(&state.receipts);
    let causes = on_disk(move || receipts.causes(&filter)).await??;
    Ok(Json(CauseList {
        causes: causes.into_iter().map(CauseView::from).collect(),
    }))
}
