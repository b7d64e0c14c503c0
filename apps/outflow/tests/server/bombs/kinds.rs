//! Mail that costs whoever reads it more than whoever sends it.

use std::fmt::Write as _;

/// A kind of bomb.
pub struct Bomb {
    pub name: &'static str,
    pub mail: String,
}

const FROM: &str = "From: a@shop.example\r\nTo: b@example.org\r\n";

fn bomb(name: &'static str, rest: impl AsRef<str>) -> Bomb {
    let mail = format!("{FROM}{}", rest.as_ref());
    Bomb { name, mail }
}

/// So many times what `piece` makes of a number.
fn many(count: usize, piece: impl Fn(usize) -> String) -> String {
    (0..count).map(piece).collect()
}

fn report(kind: &str, part: &str) -> String {
    format!(
        "MIME-Version: 1.0\r\nContent-Type: multipart/report; report-type={kind}; boundary=r\r\n\
         \r\n--r\r\n\r\nwords\r\n--r\r\n{part}\r\n--r--\r\n"
    )
}

/// One of each kind that every way in takes. All are mail with a sender.
pub fn mails() -> Vec<Bomb> {
    let rfc822 = "Content-Type: message/rfc822\r\n\r\n";
    let long = "x".repeat(8 << 20);
    let in_base64 = many(100_000, |_| format!("{}\r\n", "QUFB".repeat(18)));
    let in_quotes = many(100_000, |_| format!("{}=\r\n", "=3D".repeat(24)));
    let inside = "message/delivery-status";
    let recipients = many(20_000, |no| {
        format!(
            "\r\nFinal-Recipient: rfc822; u{no}@x.example\r\nAction: failed\r\nStatus: 5.1.1\r\n"
        )
    });
    let mut original = String::new();
    for no in 0..20_000 {
        write!(
            original,
            "Message-ID: <{no}@x.example>\r\nTo: u{no}@x.example\r\n"
        )
        .unwrap();
    }
    vec![
        bomb("nested_messages", rfc822.repeat(60_000)),
        bomb(
            "nested_multiparts",
            many(20_000, |no| {
                format!("Content-Type: multipart/mixed; boundary=b{no}\r\n\r\n--b{no}\r\n")
            }),
        ),
        bomb(
            "nested_digests",
            many(20_000, |no| {
                format!("Content-Type: multipart/digest; boundary=b{no}\r\n\r\n--b{no}\r\n\r\n")
            }),
        ),
        bomb(
            "one_boundary",
            format!(
                "Content-Type: multipart/mixed; boundary=b\r\n\r\n{}",
                "--b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n".repeat(20_000)
            ),
        ),
        bomb(
            "parts",
            format!(
                "Content-Type: multipart/mixed; boundary=b\r\n\r\n{}--b--\r\n",
                "--b\r\nContent-Type: text/html; charset=x\r\n\r\nx\r\n".repeat(100_000)
            ),
        ),
        bomb(
            "folded_field",
            format!(
                "X-Long: x\r\n{}\r\nbody\r\n",
                format!(" {}\r\n", "y".repeat(900)).repeat(5_000)
            ),
        ),
        bomb(
            "fields",
            format!(
                "{}\r\nbody\r\n",
                many(200_000, |no| format!("X-{no}: y\r\n"))
            ),
        ),
        bomb(
            "received",
            format!("{}\r\nbody\r\n", "Received: by x\r\n".repeat(100_000)),
        ),
        bomb("long_field", format!("Subject: {long}\r\n\r\nbody\r\n")),
        bomb("long_line", format!("Subject: x\r\n\r\n{long}\r\n")),
        bomb(
            "short_lines",
            format!("Subject: x\r\n\r\n{}", "\r\n".repeat(3 << 20)),
        ),
        bomb(
            "encoded_words",
            format!(
                "Subject: x\r\n{}\r\nbody\r\n",
                " =?utf-8?B?w7zDvMO8w7zDvMO8w7zDvA==?= =?iso-2022-jp?Q?=1B=24B?=\r\n".repeat(3_000)
            ),
        ),
        bomb(
            "parameters",
            format!(
                "Content-Type: multipart/mixed{}\r\n\r\n--b\r\n\r\nx\r\n",
                many(5_000, |no| format!(
                    ";\r\n boundary*{no}*=utf-8''%62; name*{no}=\"b\""
                ))
            ),
        ),
        bomb(
            "comments",
            format!(
                "Sender: {} a@shop.example\r\n\r\nbody\r\n",
                format!("\r\n {}", "(".repeat(900)).repeat(200)
            ),
        ),
        bomb(
            "addresses",
            format!(
                "Cc: x@x.example\r\n{}\r\nbody\r\n",
                many(4_000, |no| format!(" , group{no}: u{no}@x.example;\r\n"))
            ),
        ),
        bomb(
            "base64_report",
            report(
                "delivery-status",
                &format!(
                    "Content-Type: {inside}\r\nContent-Transfer-Encoding: base64\r\n\r\n{in_base64}"
                ),
            ),
        ),
        bomb(
            "quoted_report",
            report(
                "delivery-status",
                &format!(
                    "Content-Type: {inside}\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n{in_quotes}"
                ),
            ),
        ),
        bomb(
            "report_of_many",
            report(
                "delivery-status",
                &format!(
                    "Content-Type: {inside}\r\n\r\nReporting-MTA: dns; x.example\r\n{recipients}"
                ),
            ),
        ),
        bomb(
            "complaint_of_much",
            report(
                "feedback-report",
                &format!(
                    "Content-Type: message/feedback-report\r\n\r\nFeedback-Type: abuse\r\nVersion: 1\r\n{}\
             \r\n--r\r\nContent-Type: message/rfc822\r\n\r\n{original}",
                    many(20_000, |no| format!(
                        "Original-Rcpt-To: u{no}@x.example\r\n"
                    ))
                ),
            ),
        ),
        bomb(
            "character_sets",
            format!(
                "Content-Type: text/plain; charset=utf-7\r\n\r\n{}",
                many(100_000, |_| format!("{}\r\n", "+AGE-".repeat(14)))
            ),
        ),
        bomb(
            "eight_bits",
            format!("Subject: x\r\n\r\n{}", "ü\0ü\r\n".repeat(500_000)),
        ),
        bomb(
            "bare_breaks",
            format!("Subject: x\r\n\r\n{}", "\n.\r".repeat(1 << 20)),
        ),
    ]
}

/// Bodies of JSON for `POST /messages` that are no bombs as mail.
pub fn submissions() -> Vec<Bomb> {
    let message = |fields: &str| {
        format!("{{\"from\":\"a@shop.example\",\"to\":\"b@example.org\",\"text\":\"x\",{fields}}}")
    };
    let all = [
        (
            "deep_lists",
            format!("{}1{}", "[".repeat(1 << 20), "]".repeat(1 << 20)),
        ),
        (
            "deep_objects",
            format!("{}1{}", "{\"a\":".repeat(1 << 20), "}".repeat(1 << 20)),
        ),
        (
            "deep_field",
            message(&format!("\"tags\":{}", "[".repeat(1 << 20))),
        ),
        ("empty_lists", format!("[{}[]]", "[],".repeat(2 << 20))),
        (
            "numbers",
            message(&format!("\"x\":{}", "9".repeat(4 << 20))),
        ),
        (
            "escapes",
            message(&format!("\"subject\":\"{}\"", "\\u0000".repeat(1 << 20))),
        ),
        (
            "tags",
            message(&format!(
                "\"tags\":{{{}\"z\":\"z\"}}",
                many(200_000, |no| { format!("\"t{no}\":\"x\",") })
            )),
        ),
        (
            "headers",
            message(&format!(
                "\"headers\":{{{}\"z\":\"z\"}}",
                many(200_000, |no| { format!("\"X-{no}\":\"x\",") })
            )),
        ),
        (
            "attachments",
            message(&format!("\"attachments\":[{}{{}}]", "{},".repeat(500_000))),
        ),
        (
            "files",
            message(&format!(
                "\"attachments\":[{}]",
                ["{\"filename\":\"f\",\"content_type\":\"a/b\",\"content\":\"QUFB\"}"; 20_000]
                    .join(",")
            )),
        ),
        (
            "same_key",
            message(
                &"\"subject\":\"x\","
                    .repeat(200_000)
                    .replace("\"x\",\"s", "\"x\", \"s"),
            ),
        ),
    ];
    let all = all.into_iter().map(|(name, mail)| Bomb { name, mail });
    all.collect()
}
