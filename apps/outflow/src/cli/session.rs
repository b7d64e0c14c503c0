//! What every command works with: the server, the output, the time.

use std::io::Write as _;

use clap::Args;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;
use ureq::http::Method;

use super::GlobalOptions;
use super::client::{Answer, Client};
use super::failure::Failure;
use super::target::Target;

/// How results are written.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Output {
    /// Print the JSON that the server answered.
    #[arg(long)]
    pub json: bool,
}

/// What every command works with.
pub struct Session {
    client: Client,
}

impl Session {
    /// Nothing is asked yet.
    pub fn new(options: &GlobalOptions) -> Result<Self, Failure> {
        let target = Target::find(options)?;
        let ca_file = options.ca_file.as_deref();
        let client = Client::new(target, ca_file)?;
        Ok(Self { client })
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    /// Asks for something.
    pub fn get(&self, path: &str) -> Result<Answer, Failure> {
        self.client.call(Method::GET, path, None)
    }

    /// Asks for something and reads it.
    pub fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.get(path)?.read()
    }

    /// Sends something new, or a wish.
    pub fn post(&self, path: &str, body: &Value) -> Result<Answer, Failure> {
        self.client.call(Method::POST, path, Some(body))
    }

    /// Sends bytes of this type.
    pub fn upload(&self, path: &str, media: &str, bytes: Vec<u8>) -> Result<Answer, Failure> {
        self.client.upload(path, media, bytes)
    }

    /// Sets something as a whole.
    pub fn put(&self, path: &str, body: &Value) -> Result<Answer, Failure> {
        self.client.call(Method::PUT, path, Some(body))
    }

    /// Changes some fields.
    pub fn patch(&self, path: &str, body: &Value) -> Result<Answer, Failure> {
        self.client.call(Method::PATCH, path, Some(body))
    }

    /// Takes something away.
    pub fn delete(&self, path: &str) -> Result<Answer, Failure> {
        self.client.call(Method::DELETE, path, None)
    }

    /// Prints the answer as it came, or what people read of it.
    pub fn show<T: DeserializeOwned>(
        &self,
        answer: &Answer,
        output: Output,
        text: impl FnOnce(T, Timestamp) -> String,
    ) -> Result<(), Failure> {
        if output.json {
            return self.print_json(answer);
        }
        print(&text(answer.read()?, self.now()))
    }

    /// Prints the answer as it came, on a line of its own.
    pub fn print_json(&self, answer: &Answer) -> Result<(), Failure> {
        let bytes = answer.bytes();
        if bytes.is_empty() {
            return Ok(());
        }
        let line_end: &[u8] = if bytes.ends_with(b"\n") { b"" } else { b"\n" };
        write(&[bytes, line_end])
    }
}

/// Prints to stdout. Text ends with a line end.
pub fn print(text: &str) -> Result<(), Failure> {
    write(&[text.as_bytes()])
}

/// Writes bytes to stdout.
pub fn write(parts: &[&[u8]]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let written = parts.iter().try_for_each(|part| out.write_all(part));
    written
        .and_then(|()| out.flush())
        .map_err(|error| Failure::of_output(&error))
}
