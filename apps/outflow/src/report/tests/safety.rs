//! What comes from outside stays text, whatever it says.

use serde_json::json;

use super::{entry, incident, story, xml};
use crate::report::{chart, escape, markdown};

const NASTY: &str = "\"'><script>alert(1)</script> & [x](javascript:alert(1)) ![y](http://e.example/z) HTTPS://e.example FTP://e.example \
     `code` **bold** | cell \n# head\u{1b}[2J \u{202e}turned www.e.example \\| <img src=x onerror=1>";

#[test]
fn a_drawing_is_well_formed() {
    let (history, entries) = incident();
    let story = story(&history, &entries, Some(0));
    let drawing = chart::svg(&story.cases[0], story.now);
    xml::check(&drawing).unwrap_or_else(|wrong| panic!("{wrong}\n{drawing}"));
    assert!(drawing.contains("fill=\"#ffffff\""), "its own background");
    assert!(drawing.contains("up to 50 %"), "{drawing}");
    for word in ["slowed down", "recovering", ">A<", ">D<", "limit in force"] {
        assert!(drawing.contains(word), "{word}: {drawing}");
    }
}

#[test]
fn the_reader_of_drawings_finds_what_is_wrong() {
    for wrong in [
        "<a>",
        "<a></b>",
        "<a>&x;</a>",
        "<a b=c/>",
        "<a/><a/>",
        "x<a/>",
        "<a>&</a>",
    ] {
        assert!(xml::check(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn nothing_from_outside_becomes_markup() {
    let (mut history, mut entries) = incident();
    let nasty = format!("isp:{NASTY}");
    for slice in &mut history.slices {
        if slice.destination == "isp:google" {
            slice.destination.clone_from(&nasty);
            if let Some(refusal) = &mut slice.refusal {
                refusal.said = NASTY.to_owned();
                refusal.class = NASTY.to_owned();
            }
        }
    }
    for rate in &mut history.rates {
        rate.destination.clone_from(&nasty);
    }
    let detail = json!({ "from": 9, "to": 1, "reason": NASTY, "evidence": NASTY });
    entries.push(entry(62, NASTY, "limit.cut", "isp:*", detail));
    let story = story(&history, &entries, Some(0));
    let case = story
        .cases
        .iter()
        .find(|it| it.destination == nasty)
        .unwrap();
    let drawing = chart::svg(case, story.now);
    xml::check(&drawing).unwrap_or_else(|wrong| panic!("{wrong}\n{drawing}"));
    assert!(
        !drawing.contains("<script") && !drawing.contains("<img"),
        "{drawing}"
    );
    let files = vec![escape::file_name(&nasty); story.cases.len()];
    let told = markdown::report(&story, &files);
    assert!(told.contains("script"), "it is shown, as text");
    for markup in [
        "<script", "<img", "[x](", "![y]", "**bold**", "http:", "HTTPS:", "FTP:", "www.",
        "\n# head", "\u{1b}",
    ] {
        assert!(!told.contains(markup), "{markup:?}: {told}");
    }
    let rows = told
        .lines()
        .filter(|line| line.starts_with("| A ") || line.starts_with("| B "));
    for row in rows {
        let bars = row.replace("\\\\", "").replace("\\|", "");
        assert_eq!(bars.matches('|').count(), 9, "{row}");
    }
}

#[test]
fn escaped_text_is_bounded_and_on_one_line() {
    let long = escape::markdown(&"x".repeat(10_000));
    assert!(long.chars().count() <= 300);
    let long = escape::xml(&"<".repeat(10_000));
    assert!(long.chars().count() <= 1_200);
    assert_eq!(escape::markdown("a\r\nb\tc"), "a  b c");
    assert_eq!(
        escape::xml("\u{0}\u{ffff}<a&'\">"),
        "\u{fffd}\u{fffd}&lt;a&amp;&#39;&quot;&gt;"
    );
}
