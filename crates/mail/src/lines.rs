//! What a line on the wire may be: it ends with CRLF and has at most 998 octets
//! before that (RFC 5321, 4.5.3.1.6).

/// The most octets of a line without its end.
pub(crate) const LINE_BYTES_MAX: usize = 998;

/// Whether every line ends with CRLF already, the last one too.
pub(crate) fn has_crlf(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let Some(at) = memchr::memchr2(b'\r', b'\n', rest) {
        match rest.get(at..) {
            Some([b'\r', b'\n', after @ ..]) => rest = after,
            _ => return false,
        }
    }
    rest.is_empty()
}

/// Ends every line with CRLF: bare LF and bare CR too, which servers read in
/// different ways (that is how mail is smuggled). The last line is ended as
/// well.
pub(crate) fn with_crlf(bytes: &[u8]) -> Vec<u8> {
    let breaks = memchr::memchr_iter(b'\n', bytes).count();
    let mut out = Vec::with_capacity(bytes.len() + breaks + 2);
    let mut rest = bytes;
    while let Some(at) = memchr::memchr2(b'\r', b'\n', rest) {
        let (line, end) = rest.split_at(at);
        out.extend_from_slice(line);
        out.extend_from_slice(b"\r\n");
        rest = match end {
            [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
            [] => end,
        };
    }
    out.extend_from_slice(rest);
    if !rest.is_empty() {
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// The longest line, without its end.
pub(crate) fn longest(bytes: &[u8]) -> usize {
    let mut longest = 0;
    let mut start = 0;
    let ends = memchr::memchr_iter(b'\n', bytes).chain([bytes.len()]);
    for end in ends {
        let line = bytes.get(start..end).unwrap_or_default();
        longest = longest.max(line.strip_suffix(b"\r").unwrap_or(line).len());
        start = end + 1;
    }
    longest
}

/// Where the body begins: behind the first empty line. `bytes` has CRLF.
pub(crate) fn body_start(bytes: &[u8]) -> usize {
    if bytes.starts_with(b"\r\n") {
        return 2;
    }
    let end = memchr::memmem::find(bytes, b"\r\n\r\n");
    end.map_or(bytes.len(), |at| at + 4)
}

/// The fields of a header, each with its continuation lines and line end.
pub(crate) fn fields(header: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = header;
    std::iter::from_fn(move || {
        if rest.is_empty() || rest.starts_with(b"\r\n") {
            return None;
        }
        let mut end = 0;
        loop {
            let line = rest.get(end..).unwrap_or_default();
            let length = memchr::memchr(b'\n', line);
            end += length.map_or(line.len(), |at| at + 1);
            let goes_on = matches!(rest.get(end), Some(b' ' | b'\t'));
            if !goes_on {
                break;
            }
        }
        let (field, after) = rest.split_at(end);
        rest = after;
        Some(field)
    })
}

/// The name of a field, if it has one.
pub(crate) fn name(field: &[u8]) -> Option<&str> {
    let colon = memchr::memchr(b':', field)?;
    let name = field.get(..colon)?.trim_ascii_end();
    let is_token = !name.is_empty() && name.iter().all(|byte| matches!(byte, 33..=126));
    std::str::from_utf8(name).ok().filter(|_| is_token)
}
