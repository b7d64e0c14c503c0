//! Asks the server, one request at a time.

use std::path::Path;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use ureq::http::{Method, Request, Response, header};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body};

use super::failure::{Failure, Problem, Refusal};
use super::target::Target;

/// No answer is longer.
const ANSWER_BYTES_MAX: u64 = 256 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A little longer than the server gives itself.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Asks the server.
pub struct Client {
    agent: Agent,
    target: Target,
}

/// What the server answered.
pub struct Answer {
    bytes: Vec<u8>,
}

impl Answer {
    /// As it came.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What it says.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_slice(&self.bytes).map_err(|error| {
            Failure::Other(format!(
                "the answer of the server cannot be read ({error}): is it of another version?"
            ))
        })
    }
}

impl Client {
    /// Nothing is asked yet.
    pub fn new(target: Target, ca_file: Option<&Path>) -> Result<Self, Failure> {
        let mut tls = TlsConfig::builder();
        if let Some(path) = ca_file {
            tls = tls.root_certs(RootCerts::new_with_certs(&certificates(path)?));
        }
        let mut config = Agent::config_builder()
            .tls_config(tls.build())
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(TIMEOUT))
            .user_agent(concat!("outflow/", env!("CARGO_PKG_VERSION")));
        if target.is_local() {
            config = config.proxy(None);
        }
        Ok(Self {
            agent: config.build().new_agent(),
            target,
        })
    }

    /// Asks for `path`, which begins behind `/api/v1`.
    pub fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, Failure> {
        let url = format!("{}/api/v1{path}", self.target.url);
        let mut request = Request::builder().method(method).uri(url);
        if let Some(token) = &self.target.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let wrong = |error: ureq::http::Error| Failure::WrongUse(error.to_string());
        let answered = match body {
            Some(body) => {
                request = request.header(header::CONTENT_TYPE, "application/json");
                self.agent
                    .run(request.body(body.to_string()).map_err(wrong)?)
            }
            None => self.agent.run(request.body(()).map_err(wrong)?),
        };
        self.answer(answered)
    }

    /// Sends bytes of this type to `path`, which begins behind `/api/v1`.
    pub fn upload(&self, path: &str, media: &str, bytes: Vec<u8>) -> Result<Answer, Failure> {
        let url = format!("{}/api/v1{path}", self.target.url);
        let mut request = Request::builder().method(Method::POST).uri(url);
        if let Some(token) = &self.target.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.header(header::CONTENT_TYPE, media).body(bytes);
        let request = request.map_err(|error| Failure::WrongUse(error.to_string()))?;
        self.answer(self.agent.run(request))
    }

    fn answer(&self, answered: Result<Response<Body>, ureq::Error>) -> Result<Answer, Failure> {
        let mut response = answered.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        let retry_after_s = response.headers().get(header::RETRY_AFTER);
        let retry_after_s = retry_after_s.and_then(|value| value.to_str().ok()?.parse().ok());
        let body = response.body_mut().with_config().limit(ANSWER_BYTES_MAX);
        let bytes = body.read_to_vec().map_err(|error| {
            Failure::Other(format!("the answer of the server broke off: {error}"))
        })?;
        // A throttle that refuses is an answer, not a problem.
        let is_refusal = status.as_u16() == 429 && bytes.starts_with(b"{\"granted\":false");
        if status.is_success() || is_refusal {
            return Ok(Answer { bytes });
        }
        let problem = serde_json::from_slice::<Problem>(&bytes).ok();
        let Some(problem) = problem.filter(|problem| !problem.code.is_empty()) else {
            return Err(Failure::Other(format!(
                "{} answered {status} and nothing that explains it: is it Outflow?",
                self.target.url
            )));
        };
        let hint = (problem.status == 401).then(|| match &self.target.token {
            Some(_) => format!("The token came from {}.", self.target.token_from),
            None => format!("No token was sent: {}.", self.target.token_from),
        });
        Err(Failure::Refused(Box::new(Refusal {
            problem,
            retry_after_s,
            hint,
        })))
    }

    fn unreachable(&self, error: &ureq::Error) -> Failure {
        let why = match error {
            ureq::Error::Io(error) => match error.kind() {
                std::io::ErrorKind::ConnectionRefused => "nobody listens there".to_owned(),
                _ => error.to_string(),
            },
            ureq::Error::HostNotFound => "there is no such host".to_owned(),
            ureq::Error::Timeout(_) => "it does not answer in time".to_owned(),
            ureq::Error::BadUri(_) | ureq::Error::Http(_) => {
                return Failure::WrongUse(format!("this cannot be asked for: {error}"));
            }
            other => other.to_string(),
        };
        Failure::Unreachable {
            url: self.target.url.clone(),
            why,
            looked: self.target.looked.clone(),
        }
    }
}

fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>, Failure> {
    let wrong = |why: String| Failure::WrongUse(format!("{}: {why}", path.display()));
    let pem = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let mut found = Vec::new();
    for item in parse_pem(&pem) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| wrong(error.to_string()))? {
            found.push(certificate);
        }
    }
    match found.is_empty() {
        true => Err(wrong("holds no certificate (PEM)".to_owned())),
        false => Ok(found),
    }
}

/// A part of a path, escaped; slashes too.
pub fn segment(text: &str) -> String {
    escaped(text, |_| false)
}

/// Parts of a path with slashes between them.
pub fn segments(text: &str) -> String {
    escaped(text, |byte| byte == b'/')
}

/// A query from what was said.
pub fn query<'a>(pairs: impl IntoIterator<Item = (&'a str, Option<String>)>) -> String {
    let said = pairs
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name}={}", segment(&value?))));
    let said: Vec<String> = said.collect();
    match said.is_empty() {
        true => String::new(),
        false => format!("?{}", said.join("&")),
    }
}

fn escaped(text: &str, also: impl Fn(u8) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        let is_kept = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || also(byte);
        match is_kept {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
