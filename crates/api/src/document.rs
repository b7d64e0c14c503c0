//! What the OpenAPI document says of all operations alike: who may call, and
//! how they refuse.

use std::collections::BTreeMap;

use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{ApiKey, ApiKeyValue};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    Components, ContentBuilder, Info, License, OpenApi, Ref, RefOr, Response, ResponseBuilder,
};
use utoipa::{PartialSchema, ToSchema};

use crate::fields;
use crate::problem::{FieldError, ProblemBody};

/// A status, what it says, and which operations answer it.
type Refusal = (&'static str, &'static str, fn(&Asks) -> bool);

/// How operations can refuse.
const REFUSALS: [Refusal; 10] = [
    ("400", "it cannot be read", |asks| asks.brings),
    ("401", "no valid token", |_| true),
    ("403", "this token may not do that", |_| true),
    (
        "404",
        "there is no such thing, or not for this token",
        |asks| asks.brings,
    ),
    ("409", "it has changed meanwhile", |asks| asks.changes),
    ("413", "too large", |asks| asks.has_body),
    ("415", "not JSON", |asks| asks.has_body),
    ("422", "some fields cannot be accepted", |asks| {
        asks.has_body
    }),
    ("500", "a fault of the server", |_| true),
    ("503", "not now: see Retry-After", |_| true),
];

/// What an operation asks of its caller.
struct Asks {
    /// Something in the address, the headers or the body.
    brings: bool,
    has_body: bool,
    changes: bool,
}

/// Completes a document.
pub fn complete(mut api: OpenApi) -> OpenApi {
    api.info = Info::new("Outflow", env!("CARGO_PKG_VERSION"));
    api.info.description = Some(
        "Sends each message as early as every limit on its way allows, and never earlier."
            .to_owned(),
    );
    let mut license = License::new("Apache-2.0");
    license.identifier = Some("Apache-2.0".to_owned());
    api.info.license = Some(license);
    let components = api.components.get_or_insert_with(Components::default);
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    let key = ApiKey::Header(ApiKeyValue::new("X-API-Token"));
    components.add_security_scheme("token", SecurityScheme::ApiKey(key));
    let schemas = [
        (ProblemBody::name(), ProblemBody::schema()),
        (FieldError::name(), FieldError::schema()),
    ];
    for (name, schema) in schemas {
        components.schemas.insert(name.into_owned(), schema);
    }
    for (name, schema) in fields::all() {
        components.schemas.insert(name.to_owned(), schema);
    }
    let paths = std::mem::take(&mut api.paths.paths);
    for (path, mut item) in paths {
        let is_open = !path.starts_with("/api/") && path != "/metrics";
        for (method, operation) in operations(&mut item) {
            operation.operation_id = Some(id_of(method, &path));
            if !is_open {
                close(method, operation);
            }
        }
        // A wildcard takes slashes as well, which OpenAPI has no word for.
        api.paths.paths.insert(path.replace("{*", "{"), item);
    }
    api
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (&'static str, &mut Operation)> {
    [
        ("get", item.get.as_mut()),
        ("put", item.put.as_mut()),
        ("post", item.post.as_mut()),
        ("patch", item.patch.as_mut()),
        ("delete", item.delete.as_mut()),
    ]
    .into_iter()
    .filter_map(|(method, operation)| Some((method, operation?)))
}

/// A name of its own for each operation: `get_messages_id_explain`.
fn id_of(method: &str, path: &str) -> String {
    let words = path.trim_start_matches("/api/v1").split(['/', '.', '-']);
    let words = words.map(|word| word.trim_matches(['{', '}', '*']));
    let words = words.filter(|word| !word.is_empty());
    std::iter::once(method)
        .chain(words)
        .collect::<Vec<_>>()
        .join("_")
}

/// Says that an operation needs a token and how it refuses.
fn close(method: &str, operation: &mut Operation) {
    let none: [&str; 0] = [];
    operation.security = Some(vec![
        SecurityRequirement::new("bearer", none),
        SecurityRequirement::new("token", none),
    ]);
    let has_parameters = operation.parameters.as_ref();
    let has_parameters = has_parameters.is_some_and(|parameters| !parameters.is_empty());
    let has_body = operation.request_body.is_some();
    let asks = Asks {
        brings: has_parameters || has_body,
        has_body,
        changes: method != "get",
    };
    let responses: &mut BTreeMap<String, RefOr<Response>> = &mut operation.responses.responses;
    for (status, description, applies) in REFUSALS {
        if !applies(&asks) {
            continue;
        }
        let problem = || {
            let schema = Ref::from_schema_name("Problem");
            let content = ContentBuilder::new().schema(Some(schema)).build();
            ResponseBuilder::new()
                .description(description)
                .content("application/problem+json", content)
                .build()
        };
        responses
            .entry(status.to_owned())
            .or_insert_with(|| RefOr::T(problem()));
    }
}
