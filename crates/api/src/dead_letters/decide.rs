//! `/dead-letters/reviews`: made, shown, approved, discarded.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use outflow_ports::registry::{Document, Kind};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::list::CauseView;
use super::preview::preview;
use super::review::{Decision, PACE, Review, ReviewView};
use crate::ask::on_disk;
use crate::auth::{Caller, May, OperateOwn};
use crate::bounded;
use crate::changes::Edit;
use crate::extract::{Asked, Body, Perhaps};
use crate::fields::NameText;
use crate::messages::list::Selection;
use crate::messages::view::MessageView;
use crate::object::object;
use crate::problem::{Code, Problem};
use crate::stamp::Stamp;
use crate::state::ApiState;

const PACE_MAX: f64 = 10_000.0;
/// Reviews at a time.
const REVIEWS_MAX: usize = 10_000;

/// A review to be made.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = NewReview)]
#[serde(deny_unknown_fields, default)]
pub struct ReviewForm {
    /// Which dead letters; all if nothing is said.
    #[serde(rename = "match", deserialize_with = "object")]
    select: Selection,
    /// Only those that were given up for this: `attempts`, `age`, `uncertain`,
    /// `too_large` or `storage_damaged`.
    #[schema(value_type = Option<NameText>)]
    cause: Option<String>,
    /// Given up at this time or later.
    since: Option<Stamp>,
    /// Given up before this time.
    before: Option<Stamp>,
    /// Messages per second at which they re-enter; 10 unless told.
    #[schema(exclusive_minimum = 0, maximum = 10000)]
    pace: Option<f64>,
}

/// How approved dead letters re-enter.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ApproveForm {
    /// Messages per second; what the review says unless told.
    #[schema(exclusive_minimum = 0, maximum = 10000)]
    pace: Option<f64>,
}

/// All reviews.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReviewList {
    reviews: Vec<ReviewView>,
}

fn checked_pace(pace: Option<f64>) -> Result<Option<f64>, Problem> {
    match pace {
        Some(pace) if !(pace > 0.0 && pace <= PACE_MAX) => {
            let detail = format!("must be above 0 and at most {PACE_MAX}");
            Err(Problem::field("/pace", detail))
        }
        pace => Ok(pace),
    }
}

async fn documents(state: &ApiState) -> Result<Vec<Document>, Problem> {
    let registry = Arc::clone(&state.registry);
    Ok(on_disk(move || registry.list(Kind::Review)).await??)
}

/// Make a review: select dead letters, count them and look at some.
#[utoipa::path(
    post,
    path = "/dead-letters/reviews",
    tag = "dead letters",
    request_body = ReviewForm,
    responses((status = 201, description = "the review, to be approved or discarded", body = ReviewView)),
)]
pub async fn make(
    may: May<OperateOwn>,
    State(state): State<ApiState>,
    Body(form): Body<ReviewForm>,
) -> Result<(StatusCode, Json<ReviewView>), Problem> {
    let mut select = form.select;
    select.tenant = may.tenant_or(select.tenant)?;
    select
        .matches()
        .map_err(|wrong| Problem::field("/match", wrong))?;
    if let Some(cause) = &form.cause {
        bounded::name(cause).map_err(|wrong| Problem::field("/cause", wrong.to_string()))?;
    }
    let now = Stamp(state.clock.now());
    let mut review = Review {
        select,
        cause: form.cause,
        since: form.since,
        before: form.before.unwrap_or(now).min(now),
        pace: checked_pace(form.pace)?.unwrap_or(PACE),
        state: Decision::Open,
        selected: 0,
        below: None,
        done: 0,
        skipped: 0,
        by: may.actor.clone(),
        created_at: now,
    };
    let preview = preview(&state, &review).await?;
    review.selected = preview.selected;
    let documents = documents(&state).await?;
    if documents.len() >= REVIEWS_MAX {
        let detail = format!("there are {REVIEWS_MAX} reviews already");
        return Err(Problem::new(Code::Conflict, detail));
    }
    let numbers = documents
        .iter()
        .filter_map(|document| document.id.parse().ok());
    let number: u64 = numbers.max().unwrap_or(0) + 1;
    let id = number.to_string();
    let edit = Edit {
        kind: Kind::Review,
        id: id.clone(),
        value: Some(json!(review).to_string()),
        expected: Some(0),
        action: "review.make",
        detail: json!({ "match": review.select, "selected": review.selected }),
    };
    state.change(&may.actor, edit).await?;
    let samples = preview.samples.into_iter().map(MessageView::of_receipt);
    let causes = preview.causes.into_iter().map(CauseView::from);
    let view = ReviewView::of(&id, review).with_preview(samples.collect(), causes.collect());
    Ok((StatusCode::CREATED, Json(view)))
}

/// List reviews.
#[utoipa::path(
    get,
    path = "/dead-letters/reviews",
    tag = "dead letters",
    responses((status = 200, description = "all reviews", body = ReviewList)),
)]
pub async fn list(
    may: May<OperateOwn>,
    State(state): State<ApiState>,
) -> Result<Json<ReviewList>, Problem> {
    let documents = documents(&state).await?;
    let reviews = documents.iter().filter_map(|document| {
        let review = Review::of(document)?;
        let view = |review| ReviewView::of(&document.id, review);
        review.is_for(&may).then(|| view(review))
    });
    Ok(Json(ReviewList {
        reviews: reviews.collect(),
    }))
}

/// Show a review and how far it is.
#[utoipa::path(
    get,
    path = "/dead-letters/reviews/{id}",
    tag = "dead letters",
    params(("id" = String, Path, description = "the id of the review")),
    responses((status = 200, description = "the review", body = ReviewView)),
)]
pub async fn get(
    may: May<OperateOwn>,
    State(state): State<ApiState>,
    Asked(Path(id)): Asked<Path<String>>,
) -> Result<Json<ReviewView>, Problem> {
    let (_, review) = find(&state, &may, &id).await?;
    Ok(Json(ReviewView::of(&id, review)))
}

/// Approve a review: its dead letters re-enter as new messages, at its pace.
#[utoipa::path(
    post,
    path = "/dead-letters/reviews/{id}/approve",
    tag = "dead letters",
    params(("id" = String, Path, description = "the id of the review")),
    request_body(content = Option<ApproveForm>),
    responses(
        (status = 200, description = "they re-enter", body = ReviewView),
        (status = 409, description = "it was decided before", body = crate::problem::ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub async fn approve(
    may: May<OperateOwn>,
    State(state): State<ApiState>,
    Asked(Path(id)): Asked<Path<String>>,
    Perhaps(form): Perhaps<ApproveForm>,
) -> Result<Json<ReviewView>, Problem> {
    let pace = checked_pace(form.pace)?;
    decide(&state, &may, id, "review.approve", |review| {
        review.state = Decision::Replaying;
        review.pace = pace.unwrap_or(review.pace);
    })
    .await
}

/// Discard the dead letters of a review, for good.
#[utoipa::path(
    post,
    path = "/dead-letters/reviews/{id}/discard",
    tag = "dead letters",
    params(("id" = String, Path, description = "the id of the review")),
    responses(
        (status = 200, description = "they are being discarded", body = ReviewView),
        (status = 409, description = "it was decided before", body = crate::problem::ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub async fn discard(
    may: May<OperateOwn>,
    State(state): State<ApiState>,
    Asked(Path(id)): Asked<Path<String>>,
) -> Result<Json<ReviewView>, Problem> {
    decide(&state, &may, id, "review.discard", |review| {
        review.state = Decision::Discarding;
    })
    .await
}

async fn find(state: &ApiState, caller: &Caller, id: &str) -> Result<(u64, Review), Problem> {
    let (registry, wanted) = (Arc::clone(&state.registry), id.to_owned());
    let document = on_disk(move || registry.get(Kind::Review, &wanted)).await??;
    let document = document.ok_or_else(|| Problem::not_found("review"))?;
    Review::of(&document)
        .filter(|review| review.is_for(caller))
        .map(|review| (document.version, review))
        .ok_or_else(|| Problem::not_found("review"))
}

async fn decide(
    state: &ApiState,
    caller: &Caller,
    id: String,
    action: &'static str,
    decision: impl FnOnce(&mut Review),
) -> Result<Json<ReviewView>, Problem> {
    let (version, mut review) = find(state, caller, &id).await?;
    if review.state != Decision::Open {
        return Err(Problem::new(
            Code::ReviewClosed,
            format!("review {id} was decided before"),
        ));
    }
    decision(&mut review);
    let edit = Edit {
        kind: Kind::Review,
        id: id.clone(),
        value: Some(json!(review).to_string()),
        expected: Some(version),
        action,
        detail: json!({ "selected": review.selected, "pace": review.pace }),
    };
    state.change(&caller.actor, edit).await?;
    state.replays.wake();
    Ok(Json(ReviewView::of(&id, review)))
}
