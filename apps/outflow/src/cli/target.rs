//! Where the server is and which token to ask with.
//!
//! Said on the command line, else in the environment, else written by the
//! server into its data directory. The token of the data directory is an
//! administrator's: it goes to the server that wrote it, or to this machine,
//! and never to an address that somebody merely named.

use std::fs;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use ureq::http::Uri;

use super::GlobalOptions;
use super::failure::Failure;

const DATA_DIR: &str = "outflow-data";
const ADDRESS: &str = "http://127.0.0.1:8025";
/// Neither an address nor a token is longer.
const FILE_BYTES_MAX: u64 = 4_096;

/// Where the server is and which token to ask with.
#[derive(Clone)]
pub struct Target {
    /// The address, without a slash at the end.
    pub url: String,
    /// The token, if one was found.
    pub token: Option<String>,
    /// Where the address was looked for.
    pub looked: String,
    /// Where the token came from, or was not found.
    pub token_from: String,
}

impl Target {
    /// Finds both.
    pub fn find(options: &GlobalOptions) -> Result<Self, Failure> {
        let data_dir = match &options.data_dir {
            Some(dir) if !dir.as_os_str().is_empty() => dir.clone(),
            _ => PathBuf::from(DATA_DIR),
        };
        let written = data_dir.join("address");
        let in_file = line(&written);
        let said = said(options.server.as_deref());
        let (url, looked) = match (said, &in_file) {
            (Some(url), _) => (url.to_owned(), "--server or OUTFLOW_SERVER".to_owned()),
            (None, Ok(url)) => (url.clone(), format!("{}", written.display())),
            (None, Err(why)) => {
                let looked = format!(
                    "--server and OUTFLOW_SERVER (not given), {} ({why}), then the usual address",
                    written.display()
                );
                (ADDRESS.to_owned(), looked)
            }
        };
        let url = address(&url).map_err(|why| Failure::WrongUse(format!("{url:?}: {why}")))?;
        let wrote_it = in_file.is_ok_and(|own| address(&own).is_ok_and(|own| own == url));
        let (token, token_from) = token(options.token.as_deref(), &data_dir, &url, wrote_it)
            .map_err(Failure::WrongUse)?;
        Ok(Self {
            url,
            token,
            looked,
            token_from,
        })
    }

    /// Whether the server is on this machine.
    pub fn is_local(&self) -> bool {
        is_local(&self.url)
    }
}

/// An empty variable says nothing.
fn said(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

fn token(
    given: Option<&str>,
    data_dir: &Path,
    url: &str,
    wrote_it: bool,
) -> Result<(Option<String>, String), String> {
    if let Some(given) = said(given) {
        let from = "--token or OUTFLOW_TOKEN".to_owned();
        return checked(given, &from).map(|token| (Some(token), from));
    }
    let path = data_dir.join("admin-token");
    if !wrote_it && !is_local(url) {
        let why = format!(
            "none was given (--token or OUTFLOW_TOKEN), and that of {} is not sent elsewhere",
            path.display()
        );
        return Ok((None, why));
    }
    match line(&path) {
        Ok(token) => {
            let from = path.display().to_string();
            checked(&token, &from).map(|token| (Some(token), from))
        }
        Err(why) => Ok((
            None,
            format!(
                "none was given (--token or OUTFLOW_TOKEN), and {}: {why}",
                path.display()
            ),
        )),
    }
}

/// A token that can stand in a header.
fn checked(token: &str, from: &str) -> Result<String, String> {
    let fits = token.bytes().all(|byte| byte.is_ascii_graphic());
    match fits {
        true => Ok(token.to_owned()),
        false => Err(format!("the token from {from} is not one")),
    }
}

/// The first line of a small file.
fn line(path: &Path) -> Result<String, String> {
    let file = fs::File::open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "not there".to_owned(),
        _ => format!("cannot be read: {error}"),
    })?;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(|error| format!("cannot be read: {error}"))?;
    let line = text.lines().next().map(str::trim).unwrap_or_default();
    match line.is_empty() {
        false => Ok(line.to_owned()),
        true => Err("empty".to_owned()),
    }
}

/// An address as it is asked: with a scheme, without a path.
fn address(text: &str) -> Result<String, &'static str> {
    let text = text.trim_end_matches('/');
    let text = text.strip_suffix("/api/v1").unwrap_or(text);
    let full = match text.contains("://") {
        true => text.to_owned(),
        false => format!("http://{text}"),
    };
    let wanted = "write an address as http://127.0.0.1:8025";
    let uri: Uri = full.parse().map_err(|_| wanted)?;
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    if authority.contains('@') {
        return Err("leave out user and password: the token says who asks");
    }
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    let has_host = !authority.is_empty() && !authority.ends_with(':');
    match is_http && has_host && uri.query().is_none() {
        true => Ok(full),
        false => Err(wanted),
    }
}

fn is_local(url: &str) -> bool {
    let uri: Result<Uri, _> = url.parse();
    let host = uri.ok().and_then(|uri| uri.host().map(str::to_owned));
    host.is_some_and(|host| {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(server: Option<&str>, dir: &Path) -> GlobalOptions {
        GlobalOptions {
            server: server.map(str::to_owned),
            data_dir: Some(dir.to_owned()),
            ..GlobalOptions::default()
        }
    }

    fn data_dir(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("outflow-cli-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).expect("a temporary directory can be made");
        for (file, text) in files {
            fs::write(dir.join(file), text).expect("a file can be written there");
        }
        dir
    }

    #[test]
    fn the_data_directory_says_where_the_server_is() {
        let files = [
            ("address", "http://127.0.0.1:9025\n"),
            ("admin-token", "of_a_b\n"),
        ];
        let dir = data_dir("found", &files);
        let target = Target::find(&options(None, &dir)).expect("found");
        assert_eq!(target.url, "http://127.0.0.1:9025");
        assert_eq!(target.token.as_deref(), Some("of_a_b"));
        fs::remove_dir_all(dir).expect("removed");
    }

    #[test]
    fn what_was_looked_for_is_told() {
        let dir = data_dir("nothing", &[]);
        let target = Target::find(&options(None, &dir)).expect("falls back");
        assert_eq!(target.url, ADDRESS);
        assert!(target.looked.contains("address (not there)"));
        assert!(target.token_from.contains("admin-token: not there"));
        fs::remove_dir_all(dir).expect("removed");
    }

    #[test]
    fn the_token_of_a_directory_stays_on_this_machine() {
        let files = [
            ("address", "https://mail.example"),
            ("admin-token", "of_a_b"),
        ];
        let dir = data_dir("elsewhere", &files);
        let of = |server| Target::find(&options(Some(server), &dir)).expect("an address");
        assert_eq!(of("https://other.example").token, None);
        assert_eq!(of("https://mail.example/").token.as_deref(), Some("of_a_b"));
        assert_eq!(of("localhost:1").token.as_deref(), Some("of_a_b"));
        assert_eq!(of("[::1]:1").token.as_deref(), Some("of_a_b"));
        fs::remove_dir_all(dir).expect("removed");
    }

    #[test]
    fn addresses_are_read_as_people_write_them() {
        assert_eq!(address("127.0.0.1:1").as_deref(), Ok("http://127.0.0.1:1"));
        assert_eq!(
            address("https://a.example/api/v1/").as_deref(),
            Ok("https://a.example")
        );
        for wrong in ["ftp://a", "http://u:p@a", "http://", "http://a?b=c", "a b"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }
}
