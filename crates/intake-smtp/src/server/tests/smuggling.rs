//! Only CRLF, a dot and CRLF end a message. What others take for an end is
//! either text or refused, and never an end.

use super::super::data::DataReader;
use super::*;

const BREAKS: [&str; 3] = ["\r\n", "\n", "\r"];
const HIDDEN: &str = "MAIL FROM:<evil@example.com>\r\nRCPT TO:<b@example.net>\r\nDATA\r\nevil";

#[test]
fn every_form_of_an_end_but_one_is_refused() {
    for before in BREAKS {
        for after in BREAKS {
            if (before, after) == ("\r\n", "\r\n") {
                continue;
            }
            let text =
                format!("DATA\r\nSubject: x\r\n\r\nhi{before}.{after}{HIDDEN}\r\n.\r\nNOOP\r\n");
            let text = begun(&text);
            let told = all_at_once(&text);
            let case = format!("{before:?}.{after:?}: {}", told.replies);
            assert_eq!(told.codes()[5..], [354, 554, 250], "{case}");
            assert!(told.replies.contains("554 5.5.2"), "{case}");
            assert!(told.handed.is_empty(), "{case}");
            let dripped = super::told(small(), local(), text.as_bytes().chunks(1));
            assert_eq!(dripped, told, "{case}");
        }
    }
}

#[test]
fn a_bare_break_elsewhere_is_a_line_end() {
    let told = all_at_once(&begun(
        "DATA\r\na\nb\rc\n\r\nd\r\r\n.e\n.f\n..g\r\n..\r\n.\r\n",
    ));
    assert_eq!(told.codes()[5..], [354, 250], "{told:?}");
    let text = String::from_utf8(told.handed[0].bytes.clone()).unwrap();
    assert_eq!(text, "a\r\nb\r\nc\r\n\r\nd\r\n\r\ne\r\n.f\r\n..g\r\n.\r\n");
}

#[test]
fn the_end_is_found_where_it_is() {
    let cases: [(&[u8], &[u8], &[u8]); 6] = [
        (b".\r\nrest", b"", b"rest"),
        (b"a\r\n.\r\n", b"a\r\n", b""),
        (b"a\r\r\n.\r\nx", b"a\r\n\r\n", b"x"),
        (b"..\r\n.\r\n.\r\n", b".\r\n", b".\r\n"),
        (b"a\r\n.b\r\n.\r\n", b"a\r\nb\r\n", b""),
        (b"\r\n\r\n.\r\n", b"\r\n\r\n", b""),
    ];
    for (bytes, text, rest) in cases {
        let mut out = Vec::new();
        let mut reader = DataReader::default();
        assert_eq!(reader.read(bytes, &mut out), Some(rest), "{bytes:?}");
        assert_eq!(
            (out.as_slice(), reader.is_smuggled()),
            (text, false),
            "{bytes:?}"
        );
    }
    let mut reader = DataReader::default();
    assert_eq!(reader.read(b"a\r\n.\r", &mut Vec::new()), None);
    assert_eq!(reader.read(b"\n!", &mut Vec::new()), Some(&b"!"[..]));
}

/// By brute force: an end is where the five bytes stand, and all readers of the
/// data agree on its lines.
#[test]
fn no_end_is_found_elsewhere() {
    let letters = [b'\r', b'\n', b'.', b'a'];
    for number in 0..4_usize.pow(8) {
        let bytes: Vec<u8> = (0..8)
            .map(|place| letters[number >> (2 * place) & 3])
            .collect();
        let mut out = Vec::new();
        let mut reader = DataReader::default();
        let rest = reader.read(&bytes, &mut out);
        let framed = [b"\r\n", &bytes[..]].concat();
        let end = framed.windows(5).position(|window| window == b"\r\n.\r\n");
        assert_eq!(
            rest.map(<[u8]>::len),
            end.map(|at| framed.len() - at - 5),
            "{bytes:?}"
        );
        let text = String::from_utf8(out).unwrap();
        assert!(
            !text.replace("\r\n", "").contains('\n'),
            "{bytes:?}: {text:?}"
        );
    }
}
