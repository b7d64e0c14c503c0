//! One entry: put on the list, taken off it.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use outflow_core::suppression::Reason;
use outflow_ports::registry::Audit;
use outflow_ports::suppression::{
    DETAIL_BYTES_MAX, Suppression, SuppressionChange, SuppressionFilter,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use super::view::{SuppressionReason, SuppressionView, canonical, tenant_for};
use crate::ask::on_disk;
use crate::auth::{May, OperateOwn, Submit};
use crate::bounded;
use crate::events::Notice;
use crate::extract::{Asked, Body};
use crate::fields::{LineText, MailboxText, NameText};
use crate::problem::{Code, Problem};
use crate::state::ApiState;

/// A recipient who is not to be sent to.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = NewSuppression)]
#[serde(deny_unknown_fields)]
pub struct SuppressionForm {
    /// His address.
    #[schema(value_type = MailboxText)]
    recipient: String,
    /// Whose mail; the token's tenant, or `default`.
    #[schema(value_type = Option<NameText>)]
    tenant: Option<String>,
    /// Why; `manual` unless told.
    #[schema(inline)]
    reason: Option<SuppressionReason>,
    /// What was said.
    #[schema(value_type = Option<LineText>)]
    detail: Option<String>,
}

/// Who is taken off the list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct RemoveQuery {
    /// His address.
    #[param(value_type = MailboxText)]
    recipient: String,
    /// Of this tenant; of all that the token sees unless told.
    #[param(value_type = Option<NameText>)]
    tenant: Option<String>,
    /// Only this reason; all of them unless told.
    #[param(inline)]
    reason: Option<SuppressionReason>,
}

/// How many entries were changed.
#[derive(Debug, Serialize, ToSchema)]
pub struct SuppressionsChanged {
    /// So many.
    pub changed: u64,
}

/// Send nothing to a recipient any more. Once this is answered, messages to him
/// end as `suppressed`.
#[utoipa::path(
    post,
    path = "/suppressions",
    tag = "suppressions",
    request_body = SuppressionForm,
    responses((status = 201, description = "he is on the list", body = SuppressionView)),
)]
pub async fn add(
    may: May<Submit>,
    State(state): State<ApiState>,
    Body(form): Body<SuppressionForm>,
) -> Result<(StatusCode, Json<SuppressionView>), Problem> {
    let recipient = canonical(&form.recipient);
    let recipient = recipient.map_err(|wrong| Problem::field("/recipient", wrong))?;
    let tenant = tenant_for(&may, form.tenant.as_deref());
    let tenant = tenant.map_err(|wrong| Problem::field("/tenant", wrong))?;
    let detail = form.detail.unwrap_or_default();
    bounded::line(&detail, DETAIL_BYTES_MAX)
        .map_err(|wrong| Problem::field("/detail", wrong.to_string()))?;
    let entry = Suppression {
        tenant: tenant.as_str().to_owned(),
        recipient,
        reason: form.reason.map_or(Reason::Manual, Reason::from),
        is_held: false,
        since: state.clock.now(),
        source: "api".to_owned(),
        destination: String::new(),
        message: String::new(),
        detail,
    };
    let (suppressions, actor) = (Arc::clone(&state.suppressions), may.actor.clone());
    let entry = on_disk(move || {
        let detail = json!({ "recipient": entry.recipient, "reason": entry.reason.as_str() });
        let audit = Audit {
            at: entry.since,
            actor: &actor,
            action: "suppressions.add",
            target: &entry.tenant,
            detail: &detail.to_string(),
        };
        suppressions.put(std::slice::from_ref(&entry), Some(audit))?;
        // What was there before stays as it was: that is what is shown.
        let filter = SuppressionFilter {
            tenant: Some(entry.tenant.clone()),
            recipient: Some(entry.recipient.clone()),
            reason: Some(entry.reason),
            ..SuppressionFilter::default()
        };
        let stored = suppressions.list(&filter, None, 1)?.pop();
        Ok::<_, Problem>(stored.unwrap_or(entry))
    })
    .await??;
    let notice = Notice::changed("suppressions.add", &entry.tenant, &may.actor, entry.since);
    state.events.publish(notice);
    Ok((StatusCode::CREATED, Json(entry.into())))
}

/// Take a recipient off the list.
#[utoipa::path(
    delete,
    path = "/suppressions",
    tag = "suppressions",
    params(RemoveQuery),
    responses((status = 200, description = "he is off the list", body = SuppressionsChanged)),
)]
pub async fn remove(
    may: May<OperateOwn>,
    State(state): State<ApiState>,
    Asked(Query(query)): Asked<Query<RemoveQuery>>,
) -> Result<Json<SuppressionsChanged>, Problem> {
    let recipient = canonical(&query.recipient)
        .map_err(|wrong| Problem::new(Code::InvalidQuery, format!("recipient: {wrong}")))?;
    let filter = SuppressionFilter {
        tenant: may.tenant_or(query.tenant)?,
        recipient: Some(recipient.clone()),
        reason: query.reason.map(Reason::from),
        ..SuppressionFilter::default()
    };
    let suppressions = Arc::clone(&state.suppressions);
    let tenant = filter.tenant.clone();
    let removed = on_disk(move || suppressions.change(&filter, SuppressionChange::Remove));
    let removed = removed.await??;
    if removed.is_empty() {
        return Err(Problem::not_found("suppression"));
    }
    let detail = json!({ "recipient": recipient, "removed": removed.len() });
    let target = tenant.unwrap_or_else(|| "*".to_owned());
    state
        .audit(&may.actor, "suppressions.remove", target, detail)
        .await?;
    let changed = removed.len() as u64;
    Ok(Json(SuppressionsChanged { changed }))
}
