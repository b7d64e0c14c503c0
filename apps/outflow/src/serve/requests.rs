//! Tells of every request that was answered.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use outflow_core::time::Nanos;
use outflow_telemetry::catalogue::{Event, Requested};
use outflow_telemetry::sink::Sink;

/// The same routes, told of.
pub fn told(router: Router, sink: Arc<dyn Sink>) -> Router {
    router.layer(middleware::from_fn_with_state(sink, tell))
}

async fn tell(State(sink): State<Arc<dyn Sink>>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let response = next.run(request).await;
    let nanos = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
    sink.emit(&Event::Requested(Requested {
        method: method.as_str(),
        route: route.as_ref().map_or("none", MatchedPath::as_str),
        status: response.status().as_u16(),
        duration: Nanos(nanos),
    }));
    response
}
