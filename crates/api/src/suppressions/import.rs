//! `POST /suppressions/import`: many entries, line by line, as they come in.
//!
//! Lines are written some thousands at a time, so that memory does not depend
//! on how many there are. The answer comes when all of them are durable; an
//! import that was cut off can be repeated, since an entry that is there stays
//! as it is.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt as _;
use outflow_core::suppression::Reason;
use outflow_ports::registry::Audit;
use outflow_ports::suppression::{Put, Suppression};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::csv;
use super::export::COLUMNS;
use super::view::{SuppressionReason, SuppressionState, canonical, tenant_for};
use crate::ask::on_disk;
use crate::auth::{Caller, May, OperateOwn};
use crate::bounded;
use crate::problem::{Code, Problem};
use crate::stamp::Stamp;
use crate::state::ApiState;

/// Bytes of one line.
const LINE_BYTES_MAX: usize = 16 << 10;
/// Lines that are written at once.
const BATCH: usize = 5_000;
/// Bytes of one import.
const IMPORT_BYTES_MAX: usize = 1 << 30;
/// Wrong lines that the answer names.
const WRONG_MAX: usize = 100;

/// What became of an import.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct Imported {
    /// Entries that are new.
    added: u64,
    /// Entries that were there before.
    known: u64,
    /// Lines that were not taken.
    rejected: u64,
    /// The first of them.
    errors: Vec<WrongLine>,
}

impl Imported {
    /// Why the first line was not taken, if none was.
    fn nothing_but_errors(&self) -> Option<String> {
        let is_all = self.added + self.known == 0;
        let first = self.errors.first().filter(|_| is_all)?;
        Some(format!("line {}: {}", first.line, first.error))
    }
}

/// A line that was not taken.
#[derive(Debug, Serialize, ToSchema)]
pub struct WrongLine {
    /// Which, beginning with 1.
    line: u64,
    /// Why.
    error: String,
}

/// An entry, as a line says it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    recipient: String,
    tenant: Option<String>,
    reason: Option<SuppressionReason>,
    state: Option<SuppressionState>,
    since: Option<Stamp>,
    #[serde(default)]
    destination: String,
    #[serde(default)]
    message_id: String,
    #[serde(default)]
    detail: String,
    /// Where it came from once; now it comes from an import.
    #[serde(default, rename = "source")]
    _source: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Ndjson,
    Csv,
}

/// Import suppressed recipients: an object on each line
/// (`{"recipient":"a@example.com","reason":"opt_out"}`), or CSV whose first line
/// names the columns (only `recipient` is needed). Wrong lines are named and
/// left out.
#[utoipa::path(
    post,
    path = "/suppressions/import",
    tag = "suppressions",
    request_body(content((String = "application/x-ndjson"), (String = "text/csv"))),
    responses((status = 202, description = "all are durable and in force", body = Imported)),
)]
pub async fn import(
    may: May<OperateOwn>,
    State(state): State<ApiState>,
    request: Request,
) -> Result<(StatusCode, Json<Imported>), Problem> {
    let form = form(request.headers()).ok_or_else(|| {
        let detail = "send Content-Type: application/x-ndjson or text/csv";
        Problem::new(Code::UnsupportedMediaType, detail)
    })?;
    let mut desk = Desk {
        state: &state,
        caller: &may,
        form,
        columns: None,
        batch: Vec::new(),
        no: 0,
        imported: Imported::default(),
    };
    let read = desk.read(request).await;
    // What was written before something went wrong is there, and is audited.
    let written = match read {
        Ok(()) => desk.write().await,
        Err(problem) => Err(problem),
    };
    let imported = desk.imported;
    let detail = json!({
        "added": imported.added,
        "known": imported.known,
        "rejected": imported.rejected,
        "whole": written.is_ok(),
    });
    let target = may.horizon().map_or("*", |tenant| tenant.as_str());
    state
        .audit(&may.actor, "suppressions.import", target.to_owned(), detail)
        .await?;
    written?;
    if let Some(first) = imported.nothing_but_errors() {
        return Err(Problem::field("", first));
    }
    Ok((StatusCode::ACCEPTED, Json(imported)))
}

fn form(headers: &HeaderMap) -> Option<Form> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let essence = value.split(';').next().unwrap_or_default().trim();
    match essence.to_ascii_lowercase().as_str() {
        "application/x-ndjson" | "application/ndjson" | "application/jsonl" => Some(Form::Ndjson),
        "text/csv" => Some(Form::Csv),
        _ => None,
    }
}

/// Where an import is worked on.
struct Desk<'a> {
    state: &'a ApiState,
    caller: &'a Caller,
    form: Form,
    /// Where each known column of the CSV stands.
    columns: Option<Vec<Option<&'static str>>>,
    batch: Vec<Suppression>,
    no: u64,
    imported: Imported,
}

impl Desk<'_> {
    async fn read(&mut self, request: Request) -> Result<(), Problem> {
        let mut body = request.into_body();
        let mut begun: Vec<u8> = Vec::new();
        let mut came = 0;
        while let Some(frame) = body.frame().await {
            let broken = |_| Problem::new(Code::InvalidJson, "the body ended early");
            let Ok(bytes) = frame.map_err(broken)?.into_data() else {
                continue;
            };
            came += bytes.len();
            if came > IMPORT_BYTES_MAX {
                let detail = format!("an import has at most {IMPORT_BYTES_MAX} bytes");
                return Err(Problem::new(Code::TooLarge, detail));
            }
            let mut rest: &[u8] = &bytes;
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let (line, after) = rest.split_at(end);
                begun.extend_from_slice(line);
                self.line(&begun);
                begun.clear();
                rest = after.get(1..).unwrap_or_default();
                if self.batch.len() >= BATCH {
                    self.write().await?;
                }
            }
            begun.extend_from_slice(rest);
            if begun.len() > LINE_BYTES_MAX {
                let detail = format!("line {} has more than {LINE_BYTES_MAX} bytes", self.no + 1);
                return Err(Problem::new(Code::TooLarge, detail));
            }
        }
        self.line(&begun);
        Ok(())
    }

    fn line(&mut self, line: &[u8]) {
        self.no += 1;
        let read = match std::str::from_utf8(line).map(str::trim) {
            Ok("") => return,
            Ok(text) => self.entry(text),
            Err(_) => Err("is not UTF-8".to_owned()),
        };
        match read {
            Ok(Some(entry)) => self.batch.push(entry),
            Ok(None) => {}
            Err(error) => {
                self.imported.rejected += 1;
                if self.imported.errors.len() < WRONG_MAX {
                    let line = self.no;
                    self.imported.errors.push(WrongLine { line, error });
                }
            }
        }
    }

    /// The entry of a line; none if it names the columns.
    fn entry(&mut self, text: &str) -> Result<Option<Suppression>, String> {
        let line = match self.form {
            Form::Ndjson => {
                serde_json::from_str::<Line>(text).map_err(|wrong| wrong.to_string())?
            }
            Form::Csv => match self.csv(text)? {
                Some(line) => line,
                None => return Ok(None),
            },
        };
        let recipient = canonical(&line.recipient)?;
        let tenant = tenant_for(self.caller, line.tenant.as_deref())?;
        for text in [&line.destination, &line.message_id, &line.detail] {
            bounded::line(text, 512).map_err(|wrong| wrong.to_string())?;
        }
        let since = line.since.map(|Stamp(since)| since);
        Ok(Some(Suppression {
            tenant: tenant.as_str().to_owned(),
            recipient,
            reason: line.reason.map_or(Reason::Manual, Reason::from),
            is_held: line.state.is_some_and(SuppressionState::is_held),
            since: since.unwrap_or_else(|| self.state.clock.now()),
            source: "import".to_owned(),
            destination: line.destination,
            message: line.message_id,
            detail: line.detail,
        }))
    }

    fn csv(&mut self, text: &str) -> Result<Option<Line>, String> {
        let fields = csv::read(text.trim_start_matches('\u{feff}'))?;
        let Some(columns) = &self.columns else {
            let known = |field: &String| {
                let field = field.trim().to_ascii_lowercase();
                COLUMNS.into_iter().find(|column| *column == field)
            };
            let columns: Vec<Option<&'static str>> = fields.iter().map(known).collect();
            let is_header = columns.contains(&Some("recipient"));
            // A plain list of addresses has no header.
            self.columns = Some(match is_header {
                true => columns,
                false => vec![Some("recipient"), Some("reason"), Some("tenant")],
            });
            return match is_header {
                true => Ok(None),
                false => self.csv(text),
            };
        };
        let of = |name: &str| {
            let at = columns.iter().position(|column| *column == Some(name))?;
            let field = fields.get(at)?.trim();
            (!field.is_empty()).then(|| field.to_owned())
        };
        let word = |name: &str| of(name).map(serde_json::Value::String);
        let read = |wrong: serde_json::Error| wrong.to_string();
        Ok(Some(Line {
            recipient: of("recipient").unwrap_or_default(),
            tenant: of("tenant"),
            reason: word("reason")
                .map(serde_json::from_value)
                .transpose()
                .map_err(read)?,
            state: word("state")
                .map(serde_json::from_value)
                .transpose()
                .map_err(read)?,
            since: word("since")
                .map(serde_json::from_value)
                .transpose()
                .map_err(read)?,
            destination: of("destination").unwrap_or_default(),
            message_id: of("message_id").unwrap_or_default(),
            detail: of("detail").unwrap_or_default(),
            _source: None,
        }))
    }

    /// Makes what was read so far durable. The first part leaves a line of audit
    /// that an import has begun, in case it never ends.
    async fn write(&mut self) -> Result<(), Problem> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let batch = std::mem::take(&mut self.batch);
        let suppressions = Arc::clone(&self.state.suppressions);
        let is_first = self.imported.added + self.imported.known == 0;
        let (at, actor) = (self.state.clock.now(), self.caller.actor.clone());
        let put = on_disk(move || {
            let audit = is_first.then_some(Audit {
                at,
                actor: &actor,
                action: "suppressions.import",
                target: "",
                detail: "{\"begins\":true}",
            });
            suppressions.put(&batch, audit)
        });
        let Put { added, known, .. } = put.await??;
        self.imported.added += added;
        self.imported.known += known;
        Ok(())
    }
}
