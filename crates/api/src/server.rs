//! All routes, what bounds them, and the document that describes them.

use std::any::Any;
use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header;
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use outflow_core::time::Nanos;
use outflow_telemetry::Event;
use outflow_telemetry::catalogue::Requested;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::dead_letters::{decide, list as dead_list};
use crate::messages::{bulk, cancel, explain, get as message, list, raw, submit};
use crate::problem::{Code, Problem};
use crate::state::ApiState;
use crate::suppressions::{edit, export, import, list as list_suppressed, review};
use crate::throttle::{acquire, hold};
use crate::{
    accounts, audit, document, events, feedback, health, history, incidents, lanes, limits, pauses,
    policies, tokens, usage, warm_ups,
};

/// The page that shows lanes live: one file, which asks for a token.
const PAGE: &str = include_str!("page.html");
/// The page loads nothing from elsewhere and runs only what is in it.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; \
     script-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'";

fn versioned() -> OpenApiRouter<ApiState> {
    OpenApiRouter::default()
        .routes(routes!(submit::submit, list::list))
        .routes(routes!(bulk::bulk))
        .routes(routes!(message::get, cancel::cancel))
        .routes(routes!(cancel::retry))
        .routes(routes!(explain::explain))
        .routes(routes!(raw::raw))
        .routes(routes!(pauses::list, pauses::add))
        .routes(routes!(pauses::remove))
        .routes(routes!(accounts::list))
        .routes(routes!(
            accounts::get,
            accounts::put,
            accounts::patch,
            accounts::remove
        ))
        .routes(routes!(policies::list))
        .routes(routes!(
            policies::get,
            policies::put,
            policies::patch,
            policies::remove
        ))
        .routes(routes!(lanes::list))
        .routes(routes!(lanes::pause))
        .routes(routes!(lanes::resume))
        .routes(routes!(limits::list))
        .routes(routes!(limits::get, limits::tune))
        .routes(routes!(dead_list::list))
        .routes(routes!(dead_list::causes))
        .routes(routes!(decide::list, decide::make))
        .routes(routes!(decide::get))
        .routes(routes!(decide::approve))
        .routes(routes!(decide::discard))
        .routes(routes!(list_suppressed::list, edit::add, edit::remove))
        .routes(routes!(import::import))
        .routes(routes!(export::export))
        .routes(routes!(review::undo))
        .routes(routes!(review::review))
        .routes(routes!(feedback::tell))
        .routes(routes!(tokens::list, tokens::add))
        .routes(routes!(tokens::remove))
        .routes(routes!(usage::get))
        .routes(routes!(acquire::acquire))
        .routes(routes!(hold::release))
        .routes(routes!(hold::pause))
        .routes(routes!(audit::list))
        .routes(routes!(history::list))
        .routes(routes!(incidents::list))
        .routes(routes!(incidents::get))
        .routes(routes!(incidents::close))
        .routes(routes!(warm_ups::list))
        .routes(routes!(events::listen))
}

fn all() -> (Router<ApiState>, OpenApi) {
    let (router, api) = OpenApiRouter::default()
        .nest("/api/v1", versioned())
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::metrics))
        .routes(routes!(openapi_json))
        .split_for_parts();
    (router, document::complete(api))
}

/// The document that describes all routes.
pub fn openapi() -> OpenApi {
    all().1
}

/// All routes.
pub fn router(state: ApiState) -> Router {
    let (router, _) = all();
    router
        .route("/", get(page))
        .fallback(async || Problem::not_found("address"))
        .method_not_allowed_fallback(async || {
            Problem::new(Code::MethodNotAllowed, "this address takes other methods")
        })
        .layer(CatchPanicLayer::custom(panicked))
        .layer(middleware::from_fn_with_state(state.clone(), bounded))
        .layer(middleware::from_fn_with_state(state.clone(), told))
        .with_state(state)
}

/// This document.
#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = "health",
    responses((status = 200, description = "this document", body = serde_json::Value)),
)]
async fn openapi_json(State(state): State<ApiState>) -> Response {
    // Shared: whoever asks for it often and does not read holds no copies.
    let document = state
        .openapi
        .get_or_init(|| openapi().to_json().unwrap_or_default().into());
    let json = [(header::CONTENT_TYPE, "application/json")];
    (json, document.clone()).into_response()
}

async fn page() -> impl IntoResponse {
    let headers = [
        (header::CONTENT_SECURITY_POLICY, PAGE_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, Html(PAGE))
}

/// Marks requests on a connection that found no place of its own.
#[derive(Clone, Copy, Debug)]
pub struct Crowded;

/// What machines that watch the server ask costs nothing, and must be answered
/// when it has too much to do.
fn is_of_watchers(request: &Request) -> bool {
    matches!(request.uri().path(), "/healthz" | "/readyz")
}

/// So many requests at a time, and each only so long.
async fn bounded(State(state): State<ApiState>, request: Request, next: Next) -> Response {
    if is_of_watchers(&request) {
        return next.run(request).await;
    }
    if request.extensions().get::<Crowded>().is_some() {
        let detail = "too many connections at once, or too many from your address";
        return Problem::later(Code::Busy, 1, detail).into_response();
    }
    let Ok(_place) = state.requests.try_acquire() else {
        return Problem::later(Code::Busy, 1, "too many requests at once").into_response();
    };
    let answer = tokio::time::timeout(state.bounds.request_timeout, next.run(request)).await;
    answer.unwrap_or_else(|_| {
        Problem::later(Code::TimedOut, 1, "the request took too long").into_response()
    })
}

/// Tells of every request, by the template of its route.
async fn told(State(state): State<ApiState>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let response = next.run(request).await;
    let nanos = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    state.telemetry.emit(&Event::Requested(Requested {
        method: method.as_str(),
        route: route.as_ref().map_or("other", MatchedPath::as_str),
        status: response.status().as_u16(),
        duration: Nanos(nanos),
    }));
    response
}

fn panicked(_: Box<dyn Any + Send + 'static>) -> Response {
    Problem::new(Code::Internal, "the request could not be finished").into_response()
}
