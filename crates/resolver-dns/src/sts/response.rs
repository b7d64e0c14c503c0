//! The answer of a web server, without input and output: just enough of HTTP to
//! take one small text and nothing else.

use httparse::{EMPTY_HEADER, Status};

use super::policy::BYTES_MAX;

/// What the head of an answer may be long, and how many lines it may have.
const HEAD_MAX: usize = 16 << 10;
const HEADERS_MAX: usize = 100;
/// What the line before a chunk may be long.
const CHUNK_LINE_MAX: usize = 256;

/// Why an answer is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ResponseError {
    #[error("the web server does not speak HTTP")]
    Malformed,
    #[error("the web server answered {0}")]
    Status(u16),
    #[error("the web server did not answer with text/plain")]
    NotText,
    #[error("the answer of the web server is too long")]
    TooLong,
    #[error("the web server hung up in the middle")]
    Cut,
}

/// Where the body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunked,
    /// Where the connection ends.
    Open,
}

/// Reads an answer, piece by piece.
#[derive(Debug, Default)]
pub(crate) struct ResponseReader {
    /// What came and is not understood yet.
    bytes: Vec<u8>,
    framing: Option<Framing>,
    body: Vec<u8>,
}

impl ResponseReader {
    /// Bytes came: the body, if this was the last of it.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Option<Vec<u8>>, ResponseError> {
        self.bytes.extend_from_slice(bytes);
        let framing = match self.framing {
            Some(framing) => framing,
            None => match self.head()? {
                Some(framing) => *self.framing.insert(framing),
                None => return Ok(None),
            },
        };
        let is_whole = match framing {
            Framing::Length(length) => {
                self.take(usize::MAX)?;
                self.body.truncate(length);
                self.body.len() == length
            }
            Framing::Chunked => self.chunks()?,
            Framing::Open => {
                self.take(usize::MAX)?;
                false
            }
        };
        Ok(is_whole.then(|| std::mem::take(&mut self.body)))
    }

    /// The connection ended as it should: the body, if that was its end.
    pub fn end(self) -> Result<Vec<u8>, ResponseError> {
        match self.framing {
            Some(Framing::Open) => Ok(self.body),
            _ => Err(ResponseError::Cut),
        }
    }

    /// At most so many bytes belong to the body.
    fn take(&mut self, count: usize) -> Result<(), ResponseError> {
        let count = count.min(self.bytes.len());
        self.body.extend(self.bytes.drain(..count));
        match self.body.len() > BYTES_MAX {
            true => Err(ResponseError::TooLong),
            false => Ok(()),
        }
    }

    /// Where the body ends, once the head is there.
    fn head(&mut self) -> Result<Option<Framing>, ResponseError> {
        let mut headers = [EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut headers);
        let parsed = response.parse(&self.bytes);
        let length = match parsed.map_err(|_| ResponseError::Malformed)? {
            Status::Complete(length) if length <= HEAD_MAX => length,
            Status::Partial if self.bytes.len() < HEAD_MAX => return Ok(None),
            _ => return Err(ResponseError::TooLong),
        };
        let code = response.code.unwrap_or_default();
        // No other code will do: not even a redirection is followed.
        if code != 200 {
            return Err(ResponseError::Status(code));
        }
        let framing = framing(response.headers)?;
        self.bytes.drain(..length);
        Ok(Some(framing))
    }

    /// Whether the last chunk is there.
    fn chunks(&mut self) -> Result<bool, ResponseError> {
        loop {
            let parsed = httparse::parse_chunk_size(&self.bytes);
            let (start, size) = match parsed.map_err(|_| ResponseError::Malformed)? {
                Status::Complete(found) => found,
                Status::Partial if self.bytes.len() > CHUNK_LINE_MAX => {
                    return Err(ResponseError::Malformed);
                }
                Status::Partial => return Ok(false),
            };
            if size == 0 {
                return Ok(true);
            }
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            if size > BYTES_MAX {
                return Err(ResponseError::TooLong);
            }
            let Some(after) = self.bytes.get(start + size..start + size + 2) else {
                return Ok(false);
            };
            if after != b"\r\n" {
                return Err(ResponseError::Malformed);
            }
            self.bytes.drain(..start);
            self.take(size)?;
            self.bytes.drain(..2);
        }
    }
}

fn framing(headers: &[httparse::Header<'_>]) -> Result<Framing, ResponseError> {
    let (mut kind, mut length, mut chunked) = (None, None, false);
    for header in headers {
        let value = std::str::from_utf8(header.value).unwrap_or_default().trim();
        match header.name.to_ascii_lowercase().as_str() {
            "content-type" if kind.is_none() => kind = Some(value),
            "content-length" if length.is_none() => {
                let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
                let number: Option<usize> = value.parse().ok().filter(|_| is_number);
                length = Some(number.ok_or(ResponseError::Malformed)?);
            }
            "transfer-encoding" if !chunked && value.eq_ignore_ascii_case("chunked") => {
                chunked = true;
            }
            "content-encoding" if value.eq_ignore_ascii_case("identity") => (),
            // Twice, or nothing that was asked for.
            "content-type" | "content-length" | "transfer-encoding" | "content-encoding" => {
                return Err(ResponseError::Malformed);
            }
            _ => (),
        }
    }
    let kind = kind.unwrap_or_default().split(';').next();
    if !kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/plain")) {
        return Err(ResponseError::NotText);
    }
    match (length, chunked) {
        (Some(length), false) if length > BYTES_MAX => Err(ResponseError::TooLong),
        (Some(length), false) => Ok(Framing::Length(length)),
        (None, true) => Ok(Framing::Chunked),
        (None, false) => Ok(Framing::Open),
        (Some(_), true) => Err(ResponseError::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n";

    /// What comes of an answer, in whatever pieces it comes.
    fn read(answer: &str) -> Result<Vec<u8>, ResponseError> {
        let all_at_once = read_in(answer, usize::MAX);
        for size in [1, 2, 7] {
            assert_eq!(read_in(answer, size), all_at_once, "{answer}");
        }
        all_at_once
    }

    fn read_in(answer: &str, size: usize) -> Result<Vec<u8>, ResponseError> {
        let mut reader = ResponseReader::default();
        for piece in answer.as_bytes().chunks(size.min(answer.len()).max(1)) {
            if let Some(body) = reader.push(piece)? {
                return Ok(body);
            }
        }
        reader.end()
    }

    #[test]
    fn a_body_ends_where_its_head_says() {
        for rest in [
            "Content-Length: 5\r\n\r\nhello",
            "Content-Length: 5\r\n\r\nhello and more",
            "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n",
            "Connection: close\r\n\r\nhello",
        ] {
            assert_eq!(read(&format!("{HEAD}{rest}")), Ok(b"hello".to_vec()));
        }
        let empty = format!("{HEAD}Content-Length: 0\r\n\r\n");
        assert_eq!(read(&empty), Ok(Vec::new()));
    }

    #[test]
    fn only_one_kind_of_answer_is_taken() {
        use ResponseError::{Cut, Malformed, NotText, Status, TooLong};
        let moved = "HTTP/1.1 301 Moved\r\nLocation: https://example.com/\r\n\r\n";
        assert_eq!(read(moved), Err(Status(301)));
        assert_eq!(read("HTTP/1.1 404 No\r\n\r\n"), Err(Status(404)));
        assert_eq!(read("HTTP/1.1 200 OK\r\n\r\nhello"), Err(NotText));
        let html = HEAD.replace("plain", "html");
        assert_eq!(read(&format!("{html}\r\nhello")), Err(NotText));
        assert_eq!(read("SSH-2.0-x\r\n\r\n"), Err(Malformed));
        assert_eq!(read(""), Err(Cut));
        assert_eq!(read(HEAD), Err(Cut));
        for (rest, error) in [
            ("Content-Length: 6\r\n\r\nhello", Cut),
            ("Content-Length: -1\r\n\r\nhello", Malformed),
            ("Content-Length: 65537\r\n\r\nhello", TooLong),
            (
                "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
                Malformed,
            ),
            (
                "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                Malformed,
            ),
            ("Transfer-Encoding: gzip\r\n\r\nhello", Malformed),
            ("Content-Encoding: gzip\r\n\r\nhello", Malformed),
            ("Transfer-Encoding: chunked\r\n\r\n3\r\nhello", Malformed),
            ("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", Cut),
            ("Transfer-Encoding: chunked\r\n\r\nfffff\r\n", TooLong),
            ("Transfer-Encoding: chunked\r\n\r\nxyz\r\n", Malformed),
        ] {
            assert_eq!(read(&format!("{HEAD}{rest}")), Err(error), "{rest}");
        }
    }

    #[test]
    fn an_answer_has_bounds() {
        let fill = |answer: &str, with: &str| {
            let mut reader = ResponseReader::default();
            reader.push(answer.as_bytes()).unwrap();
            (0..200_000).find_map(|_| reader.push(with.as_bytes()).err())
        };
        let long = Some(ResponseError::TooLong);
        assert_eq!(fill(&format!("{HEAD}X: "), "a"), long);
        assert_eq!(fill(&format!("{HEAD}\r\n"), "hello"), long);
        let chunked = format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n");
        assert_eq!(fill(&chunked, "5\r\nhello\r\n"), long);
        assert!(fill(&format!("{chunked}5;"), "a").is_some());
        assert!(fill(HEAD, "a: b\r\n").is_some());
    }
}
