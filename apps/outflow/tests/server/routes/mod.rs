//! Who may do what: route x scope x owner, as a table in `table.tsv`, against
//! the real server.
//!
//! The operations are those of the server's own OpenAPI document: one without a
//! row fails, and so does a row without an operation. A row is a request, made
//! once by each kind of caller. What it is about belongs to the tenant `acme`,
//! and is made anew for each call, so that nobody finds what the one before has
//! changed.
//!
//! A cell is the status that is expected; `+` behind it says that the answer
//! shows what belongs to `acme`, or says that something was done to it, `-` that
//! it does not. Keys of the throttle belong to who asks, so that a tenant may
//! pause its own `isp:X`, and nobody else's. With
//! `OUTFLOW_ROUTES_SEEN=FILE` the test writes the table as it was seen, to be
//! read before it is taken over.

mod things;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::json;

use crate::process::{Place, Server};
use things::{Thing, Things};

const TABLE: &str = include_str!("table.tsv");

/// The kinds of callers, in the order of the columns: name, scope, tenant.
const CALLERS: [(&str, &str, Option<&str>); 11] = [
    ("none", "", None),
    ("unknown", "", None),
    ("revoked", "admin", None),
    ("metrics", "metrics", None),
    ("submit", "submit", None),
    ("submit-owner", "submit", Some("acme")),
    ("submit-other", "submit", Some("globex")),
    ("operator-owner", "operator", Some("acme")),
    ("operator-other", "operator", Some("globex")),
    ("operator", "operator", None),
    ("admin", "admin", None),
];

/// One request, and what each caller is to be answered.
struct Row<'a> {
    method: &'a str,
    /// As the document writes it.
    route: &'a str,
    /// What is asked for: `{}` is the id of the thing.
    path: &'a str,
    thing: Thing,
    body: &'a str,
    cells: Vec<&'a str>,
}

fn rows() -> Vec<Row<'static>> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    let mut lines = lines.map(|line| line.split('\t').collect::<Vec<_>>());
    let names: Vec<&str> = CALLERS.iter().map(|(name, ..)| *name).collect();
    assert_eq!(lines.next().unwrap()[5..], names, "the columns");
    let row = |fields: Vec<&'static str>| Row {
        method: fields[0],
        route: fields[1],
        path: fields[2],
        thing: Thing::named(fields[3]),
        body: fields[4],
        cells: fields[5..].to_vec(),
    };
    lines.map(row).collect()
}

/// Asks once: the status, and the body unless it is a stream that does not end.
pub fn ask(
    address: SocketAddr,
    token: &str,
    (method, path): (&str, &str),
    body: &str,
) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let media = match body.as_bytes().first() {
        Some(b'{') => "application/json",
        Some(b'R') => "message/rfc822",
        _ => "text/csv",
    };
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n");
    if !token.is_empty() {
        write!(head, "Authorization: Bearer {token}\r\n").unwrap();
    }
    if !body.is_empty() {
        write!(head, "Content-Type: {media}\r\n").unwrap();
    }
    write!(head, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let mut lines = BufReader::new(stream);
    let (mut first, mut text, mut streams) = (String::new(), String::new(), false);
    lines.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        streams |= line.to_ascii_lowercase().contains("text/event-stream");
        if line.trim_end().is_empty() {
            break;
        }
    }
    if !streams {
        lines.read_to_string(&mut text).unwrap();
    }
    let status = first.split(' ').nth(1).and_then(|word| word.parse().ok());
    (status.unwrap_or_else(|| panic!("{first:?}")), text)
}

/// A token of each kind of caller.
fn tokens(server: &Server) -> Vec<String> {
    let mut client = server.client();
    let mut make = |scope: &str, tenant: Option<&str>| {
        let form = json!({ "name": "routes", "scope": scope, "tenant": tenant });
        let made = client.post("/api/v1/tokens", &form).unwrap();
        assert_eq!(made.status, 201, "{}", made.text);
        let made = made.json();
        let text = |field: &str| made[field].as_str().unwrap().to_owned();
        (text("id"), text("token"))
    };
    let mut tokens = Vec::new();
    let mut revoked = String::new();
    for (name, scope, tenant) in CALLERS {
        tokens.push(match name {
            "none" => String::new(),
            "unknown" => format!("outflow_{}_{}", "0".repeat(16), "A".repeat(43)),
            _ => {
                let (id, token) = make(scope, tenant);
                if name == "revoked" {
                    revoked = id;
                }
                token
            }
        });
    }
    let gone = client.call("DELETE", &format!("/api/v1/tokens/{revoked}"), None);
    assert_eq!(gone.unwrap().status, 204);
    tokens
}

fn documented(server: &Server) -> BTreeSet<(String, String)> {
    let document = server.client().get("/openapi.json").unwrap().json();
    let mut documented = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            documented.insert((method.to_uppercase(), path.clone()));
        }
    }
    documented
}

#[test]
fn every_route_answers_every_kind_of_caller_as_the_table_says() {
    let place = Place::new("routes");
    place.configure("");
    let server = place.start();
    let rows = rows();
    let of_table = rows.iter().map(|row| (row.method.into(), row.route.into()));
    assert_eq!(of_table.collect::<BTreeSet<_>>(), documented(&server));
    let tokens = tokens(&server);
    let mut things = Things::new(&server);
    let (mut wrong, mut seen) = (Vec::new(), String::new());
    for row in &rows {
        let mut cells = Vec::new();
        for (at, ((caller, ..), token)) in CALLERS.iter().zip(&tokens).enumerate() {
            let (id, mark) = things.make(row.thing);
            let (path, body) = (
                row.path.replace("{}", &id),
                row.body.replace("{}", &id).replace("\\n", "\n"),
            );
            let (status, text) = ask(server.address, token, (row.method, &path), &body);
            let wanted = row.cells.get(at).copied().unwrap_or_default();
            let is_said = text.contains("\"released\":true") || text.contains("\"matched\":1");
            let shows = status < 300 && (is_said || (!mark.is_empty() && text.contains(&mark)));
            let cell = match (wanted.ends_with(['+', '-']), shows) {
                (true, true) => format!("{status}+"),
                (true, false) => format!("{status}-"),
                (false, _) => status.to_string(),
            };
            if cell != wanted {
                let (method, body) = (row.method, text.chars().take(300).collect::<String>());
                wrong.push(format!(
                    "{method} {path} by {caller}: {cell}, not {wanted}: {body}"
                ));
            }
            cells.push(cell);
        }
        let Row {
            method,
            route,
            path,
            ..
        } = row;
        let (thing, body, cells) = (row.thing.name(), row.body, cells.join("\t"));
        writeln!(seen, "{method}\t{route}\t{path}\t{thing}\t{body}\t{cells}").unwrap();
    }
    if let Some(file) = std::env::var_os("OUTFLOW_ROUTES_SEEN") {
        std::fs::write(file, seen).unwrap();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    server.stop();
}

/// What the table may not say, whoever writes it.
#[test]
fn no_row_opens_what_is_anothers() {
    let column = |name: &str| CALLERS.iter().position(|it| it.0 == name).unwrap();
    for row in rows() {
        let said = format!("{} {}", row.method, row.path);
        assert_eq!(
            row.cells.len(),
            CALLERS.len(),
            "{said}: a caller is missing"
        );
        let is_tested = row.cells.iter().all(|cell| !cell.starts_with('0'));
        assert!(is_tested, "{said}: nobody has said what is answered");
        // Whether it is shown is said for all or for none, and somebody sees it.
        let marked = row.cells.iter().filter(|cell| cell.ends_with(['+', '-']));
        let seen = row.cells.iter().filter(|cell| cell.ends_with('+'));
        let (marked, seen) = (marked.count(), seen.count());
        assert!(
            marked == 0 || (marked == row.cells.len() && seen > 0),
            "{said}"
        );
        let public = ["/healthz", "/readyz", "/openapi.json"].contains(&row.route);
        for caller in ["none", "unknown", "revoked"] {
            let wanted = if public { "200" } else { "401" };
            let cell = row.cells[column(caller)].trim_end_matches('-');
            assert_eq!(cell, wanted, "{said} by {caller}");
        }
        // What belongs to no tenant is for those who are bound to none.
        if matches!(row.thing, Thing::Account | Thing::Policy | Thing::Token)
            && !row.route.starts_with("/api/v1/throttle")
        {
            for caller in CALLERS
                .iter()
                .filter(|it| it.2.is_some() || it.1 == "submit")
            {
                let cell = row.cells[column(caller.0)].trim_end_matches('-');
                assert_eq!(cell, "403", "{said} by {}", caller.0);
            }
        }
        for caller in ["submit", "submit-other", "operator-other"] {
            let cell = row.cells[column(caller)];
            // Who holds a permit shows its number: an unbound token may give it back.
            let is_permit = row.thing == Thing::Permit && caller == "submit";
            let shows = cell.ends_with('+') && !is_permit;
            assert!(!shows, "{said} shows {caller} what is acme's");
            let status = cell.trim_end_matches('-');
            let is_refused = ["403", "404", "409", "422"].contains(&status);
            let is_named = row.path.contains("{}") && row.thing.is_of_tenant();
            assert!(!is_named || is_refused, "{said} by {caller}: {cell}");
        }
    }
}
