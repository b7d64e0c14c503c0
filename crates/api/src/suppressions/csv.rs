//! One line of CSV (RFC 4180), read and written. A field has no line breaks, so
//! that a line is always an entry.

/// The fields of a line; or why it is none.
pub fn read(line: &str) -> Result<Vec<String>, &'static str> {
    let mut fields = Vec::new();
    let mut letters = line.chars().peekable();
    loop {
        let mut field = String::new();
        if letters.next_if_eq(&'"').is_some() {
            loop {
                match letters.next() {
                    Some('"') if letters.next_if_eq(&'"').is_some() => field.push('"'),
                    Some('"') => break,
                    Some(letter) => field.push(letter),
                    None => return Err("a quotation mark is not closed"),
                }
            }
        } else {
            while let Some(letter) = letters.next_if(|letter| *letter != ',') {
                field.push(letter);
            }
        }
        fields.push(field);
        match letters.next() {
            Some(',') => {}
            None => return Ok(fields),
            Some(_) => return Err("something stands behind a closing quotation mark"),
        }
    }
}

/// A line of these fields, with its end.
pub fn write(out: &mut Vec<u8>, fields: &[&str]) {
    for (at, field) in fields.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        // A program for tables must not take a field for a formula.
        let is_plain = !field.contains([',', '"']) && !field.starts_with(['=', '+', '-', '@']);
        if is_plain {
            out.extend_from_slice(field.as_bytes());
        } else {
            out.push(b'"');
            out.extend_from_slice(field.replace('"', "\"\"").as_bytes());
            out.push(b'"');
        }
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::{read, write};

    #[test]
    fn what_is_written_is_read_again() {
        for fields in [
            &["a@b.c", "", "says \"no, never\"", ",", "=1+1"][..],
            &[""],
            &["", ""],
            &["\"", "ü"],
        ] {
            let mut line = Vec::new();
            write(&mut line, fields);
            let line = String::from_utf8(line).unwrap();
            assert_eq!(read(line.trim_end()).unwrap(), fields);
        }
    }

    #[test]
    fn what_is_no_line_is_refused() {
        assert!(read("\"a").is_err());
        assert!(read("\"a\"b").is_err());
        assert_eq!(read("a\"b").unwrap(), ["a\"b"]);
    }
}
