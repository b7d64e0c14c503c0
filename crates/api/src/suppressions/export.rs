//! `GET /suppressions/export`: all of the list, as it is read from the disk. No
//! more than two pages of it are in memory.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_core::Stream;
use outflow_ports::suppression::{Suppression, SuppressionFilter, Suppressions};
use serde::Deserialize;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use utoipa::{IntoParams, ToSchema};

use super::csv;
use super::view::{SuppressionQuery, SuppressionReason, SuppressionState, SuppressionView};
use crate::auth::{May, OperateOwn};
use crate::extract::Asked;
use crate::fields::{DestinationText, NameText};
use crate::problem::Problem;
use crate::stamp::Stamp;
use crate::state::ApiState;

/// Entries in a page.
const PAGE: usize = 1_000;
/// The first line of CSV.
pub const COLUMNS: [&str; 9] = [
    "recipient",
    "reason",
    "tenant",
    "state",
    "since",
    "source",
    "destination",
    "message_id",
    "detail",
];

/// How the list is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExportFormat {
    /// A JSON object on each line.
    #[default]
    Ndjson,
    /// CSV, with a first line that names the columns.
    Csv,
}

/// Which entries to export, and how.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ExportQuery {
    /// How; `ndjson` unless told.
    #[param(inline)]
    format: Option<ExportFormat>,
    /// Of this tenant.
    #[param(value_type = Option<NameText>)]
    tenant: Option<String>,
    /// For this reason.
    #[param(inline)]
    reason: Option<SuppressionReason>,
    /// In this state.
    #[param(inline)]
    state: Option<SuppressionState>,
    /// Where this destination judged.
    #[param(value_type = Option<DestinationText>)]
    destination: Option<String>,
    /// Not older than this, in RFC 3339.
    #[param(format = DateTime)]
    since: Option<String>,
    /// Older than this, in RFC 3339.
    #[param(format = DateTime)]
    until: Option<String>,
}

/// Export suppressed recipients. What is exported can be imported again. An
/// export that ends early was cut off: the connection says so.
#[utoipa::path(
    get,
    path = "/suppressions/export",
    tag = "suppressions",
    params(ExportQuery),
    responses((status = 200, description = "all that match", content(
        (String = "application/x-ndjson"), (String = "text/csv")
    ))),
)]
pub async fn export(
    may: May<OperateOwn>,
    State(state): State<ApiState>,
    Asked(Query(query)): Asked<Query<ExportQuery>>,
) -> Result<Response, Problem> {
    let format = query.format.unwrap_or_default();
    let query = SuppressionQuery {
        tenant: query.tenant,
        reason: query.reason,
        state: query.state,
        destination: query.destination,
        since: query.since,
        until: query.until,
        ..SuppressionQuery::default()
    };
    let filter = query.filter(&may)?;
    let (pages, read) = channel(1);
    let suppressions = Arc::clone(&state.suppressions);
    tokio::task::spawn_blocking(move || write(&*suppressions, &filter, format, &pages));
    let media = match format {
        ExportFormat::Ndjson => "application/x-ndjson",
        ExportFormat::Csv => "text/csv; charset=utf-8",
    };
    let body = Body::from_stream(Pages(read));
    Ok(([(header::CONTENT_TYPE, media)], body).into_response())
}

type Page = Result<Bytes, std::io::Error>;

struct Pages(Receiver<Page>);

impl Stream for Pages {
    type Item = Page;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Page>> {
        self.0.poll_recv(context)
    }
}

/// Writes all pages, until nobody reads any more.
fn write(
    list: &dyn Suppressions,
    filter: &SuppressionFilter,
    format: ExportFormat,
    pages: &Sender<Page>,
) {
    let mut out = Vec::new();
    if format == ExportFormat::Csv {
        csv::write(&mut out, &COLUMNS);
    }
    let mut after = None;
    loop {
        let entries = match list.list(filter, after.as_ref(), PAGE) {
            Ok(entries) => entries,
            Err(error) => {
                // The body breaks off, so that a part is not taken for all.
                let _ = pages.blocking_send(Err(std::io::Error::other(error.to_string())));
                return;
            }
        };
        let is_last = entries.len() < PAGE;
        after = entries.last().map(Suppression::key);
        for entry in entries {
            line(&mut out, entry, format);
        }
        let page = Bytes::from(std::mem::take(&mut out));
        if pages.blocking_send(Ok(page)).is_err() || is_last {
            return;
        }
    }
}

fn line(out: &mut Vec<u8>, entry: Suppression, format: ExportFormat) {
    match format {
        ExportFormat::Ndjson => {
            let view = SuppressionView::from(entry);
            out.extend(serde_json::to_vec(&view).unwrap_or_default());
            out.push(b'\n');
        }
        ExportFormat::Csv => {
            let state = match entry.is_held {
                true => "held",
                false => "active",
            };
            csv::write(
                out,
                &[
                    &entry.recipient,
                    entry.reason.as_str(),
                    &entry.tenant,
                    state,
                    &Stamp(entry.since).to_string(),
                    &entry.source,
                    &entry.destination,
                    &entry.message,
                    &entry.detail,
                ],
            );
        }
    }
}
