//! A case as a picture: attempts, refusals and the limit in force on one scale,
//! shaded by phase, with a letter for each change.
//!
//! The drawing stands by itself: it has its own background, so that it can be
//! read in a dark viewer, loads nothing, and tells its content in words to
//! those who cannot see it. Colours are those of Okabe and Ito, which people
//! with any colour vision tell apart; lines differ in form as well.

use std::fmt::Write as _;

use super::case::Case;
use super::escape::xml;
use super::figures;
use super::marks;
use super::material::SECOND;
use super::phase::Kind;
use super::scale::{Scale, round_ticks, time_step};

const WIDTH: f64 = 1_100.0;
const HEIGHT: f64 = 520.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 1_076.0;
const TOP: f64 = 124.0;
const BOTTOM: f64 = 366.0;
/// Refusals have a strip of their own below, with its own scale: the sooner
/// they are answered the fewer they are, and the less they would show.
const STRIP_TOP: f64 = 388.0;
const STRIP_BOTTOM: f64 = 436.0;
const SENT: &str = "#0072b2";
const REFUSED: &str = "#d55e00";
const REFUSED_INK: &str = "#a34700";
const LIMIT: &str = "#1a1a1a";
const TITLE_CHARS: usize = 108;
/// A limit that is higher than so many times all that was sent would flatten
/// the rest: it is left above the drawing.
const HIGHER: f64 = 3.0;

/// Where things lie.
struct Frame {
    x: Scale,
    y: Scale,
    top: f64,
    strip: Scale,
    strip_top: f64,
}

/// The drawing.
pub fn svg(case: &Case, now: i64) -> String {
    let frame = Frame::of(case);
    let mut out = String::new();
    head(&mut out, case, now);
    phases(&mut out, case, &frame);
    axes(&mut out, case, &frame);
    let step = case.series.step;
    let rate = |count: u64| count as f64 * SECOND as f64 / step as f64;
    let sent = Area {
        colour: SENT,
        opacity: 0.22,
        scale: frame.y,
        floor: BOTTOM,
    };
    sent.draw(&mut out, case, &frame, |point| rate(point.attempts));
    let refused = Area {
        colour: REFUSED,
        opacity: 0.9,
        scale: frame.strip,
        floor: STRIP_BOTTOM,
    };
    refused.draw(&mut out, case, &frame, |point| rate(point.refused));
    limit(&mut out, case, &frame);
    letters(&mut out, case, &frame);
    legend(&mut out, case);
    out.push_str("</svg>\n");
    out
}

impl Frame {
    fn of(case: &Case) -> Self {
        let (since, until) = (case.drawn.since, case.drawn.until);
        let step = case.series.step as f64 / SECOND as f64;
        let most = |count: fn(&super::series::Point) -> u64| {
            let points = case.series.between(since - case.series.step, until);
            points
                .map(|point| count(point) as f64 / step)
                .fold(0.0, f64::max)
        };
        let sent = most(|point| point.attempts);
        let strip_top = most(|point| point.refused);
        let limits = case.series.limit_steps(since, until);
        let limit = limits.iter().map(|(_, rate)| *rate);
        let limit =
            limit.filter(|rate| rate.is_finite() && (sent == 0.0 || *rate <= HIGHER * sent));
        let top = limit.fold(sent, f64::max).max(0.01) * 1.12;
        Self {
            x: Scale::new((since as f64, until as f64), (LEFT, RIGHT)),
            y: Scale::new((0.0, top), (BOTTOM, TOP)),
            top,
            strip: Scale::new((0.0, strip_top.max(0.01)), (STRIP_BOTTOM, STRIP_TOP)),
            strip_top,
        }
    }

    fn x(&self, at: i64) -> f64 {
        self.x.at(at as f64)
    }
}

fn head(out: &mut String, case: &Case, now: i64) {
    let headline = case.headline(now);
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" \
         font-family=\"system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif\" font-size=\"13\" \
         fill=\"#1a1a1a\">\n<title>{}</title>\n<desc>{}</desc>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n",
        xml(&case.destination),
        xml(&headline),
    );
    let (first, second) = lines(&headline);
    text(
        out,
        (LEFT, 30.0),
        "font-size=\"17\" font-weight=\"600\"",
        &first,
    );
    text(
        out,
        (LEFT, 53.0),
        "font-size=\"17\" font-weight=\"600\"",
        &second,
    );
    text(
        out,
        (LEFT, 74.0),
        "fill=\"#555555\"",
        &format!("{}, UTC, messages per second", day(case.drawn.since)),
    );
}

fn day(at: i64) -> String {
    figures::minute(at)
        .split(' ')
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// A sentence on two lines.
fn lines(sentence: &str) -> (String, String) {
    let sentence = crate::cli::plain::plain(sentence);
    let mut first = String::new();
    let mut words = sentence.split(' ').peekable();
    while let Some(word) = words.peek() {
        if first.chars().count() + word.chars().count() >= TITLE_CHARS {
            break;
        }
        first.push_str(word);
        first.push(' ');
        words.next();
    }
    let rest: Vec<&str> = words.collect();
    let second = crate::cli::plain::shortened(&rest.join(" "), TITLE_CHARS + 8);
    (first.trim_end().to_owned(), second)
}

fn text(out: &mut String, (x, y): (f64, f64), attributes: &str, words: &str) {
    let words = xml(words);
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" {attributes}>{words}</text>"
    );
}

fn phases(out: &mut String, case: &Case, frame: &Frame) {
    for phase in &case.phases {
        let (from, to) = (frame.x(phase.from), frame.x(phase.to));
        let width = to - from;
        let (tint, ink) = tint(phase.kind);
        let _ = writeln!(
            out,
            "<rect x=\"{from:.1}\" y=\"{TOP}\" width=\"{width:.1}\" height=\"{:.1}\" \
             fill=\"{tint}\"/>",
            STRIP_BOTTOM - TOP
        );
        let word = phase.kind.as_str();
        let _ = writeln!(
            out,
            "<rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"4\" fill=\"{ink}\"/>",
            TOP - 4.0
        );
        if width > 7.5 * word.len() as f64 {
            let attributes = format!("fill=\"{ink}\" font-weight=\"600\"");
            text(out, (from + 5.0, TOP + 16.0), &attributes, word);
        }
    }
}

/// What is shaded how: the tint and the colour of its words.
const fn tint(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Refused => ("#fbe0d0", "#a34700"),
        Kind::Slowed => ("#fdf3cd", "#7a5c00"),
        Kind::Recovering => ("#dcf1e6", "#00694a"),
    }
}

fn axes(out: &mut String, case: &Case, frame: &Frame) {
    for value in round_ticks(frame.top) {
        let y = frame.y.at(value);
        let _ = writeln!(
            out,
            "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{RIGHT}\" y2=\"{y:.1}\" stroke=\"#000000\" \
             stroke-opacity=\"0.12\"/>"
        );
        let label = number(value);
        text(out, (LEFT - 8.0, y + 4.5), "text-anchor=\"end\"", &label);
    }
    let (since, until) = (case.drawn.since, case.drawn.until);
    let step = time_step(until - since);
    let mut at = since + (step - since.rem_euclid(step)) % step;
    while at <= until {
        let x = frame.x(at);
        let _ = writeln!(
            out,
            "<line x1=\"{x:.1}\" y1=\"{STRIP_BOTTOM}\" x2=\"{x:.1}\" y2=\"{:.1}\" \
             stroke=\"#1a1a1a\"/>",
            STRIP_BOTTOM + 5.0
        );
        let label = figures::tick(at, step);
        text(
            out,
            (x, STRIP_BOTTOM + 20.0),
            "text-anchor=\"middle\"",
            &label,
        );
        at += step;
    }
    for y in [BOTTOM, STRIP_BOTTOM] {
        let _ = writeln!(
            out,
            "<line x1=\"{LEFT}\" y1=\"{y}\" x2=\"{RIGHT}\" y2=\"{y}\" stroke=\"#1a1a1a\"/>"
        );
    }
    let most = match frame.strip_top {
        0.0 => "0".to_owned(),
        most => number(most),
    };
    let attributes = format!("text-anchor=\"end\" fill=\"{REFUSED_INK}\"");
    text(out, (LEFT - 8.0, STRIP_TOP + 9.0), &attributes, &most);
    text(out, (LEFT - 8.0, STRIP_BOTTOM), &attributes, "refused");
}

/// A number on an axis.
fn number(value: f64) -> String {
    match value {
        whole if whole.fract() == 0.0 || whole >= 100.0 => format!("{whole:.0}"),
        part => {
            let text = format!("{part:.2}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    }
}

/// Stairs over an axis; steps in which nothing was counted lie on it.
struct Area<'a> {
    colour: &'a str,
    opacity: f64,
    scale: Scale,
    floor: f64,
}

impl Area<'_> {
    fn draw(
        &self,
        out: &mut String,
        case: &Case,
        frame: &Frame,
        value: impl Fn(&super::series::Point) -> f64,
    ) {
        let Self {
            colour,
            opacity,
            scale,
            floor,
        } = self;
        let step = case.series.step;
        let (since, until) = (case.drawn.since, case.drawn.until);
        let mut path = String::new();
        let mut reached = i64::MIN;
        for point in case.series.between(since - step + 1, until) {
            let high = value(point);
            if high <= 0.0 {
                continue;
            }
            let (from, to) = (frame.x(point.at), frame.x(point.at + step));
            let y = scale.at(high);
            if point.at == reached {
                let _ = write!(path, "V{y:.1}H{to:.1}");
            } else {
                let closing = match path.is_empty() {
                    true => String::new(),
                    false => format!("V{floor}Z"),
                };
                let _ = write!(path, "{closing}M{from:.1},{floor}V{y:.1}H{to:.1}");
            }
            reached = point.at + step;
        }
        if !path.is_empty() {
            let _ = writeln!(
                out,
                "<path d=\"{path}V{floor}Z\" fill=\"{colour}\" fill-opacity=\"{opacity}\" \
                 stroke=\"{colour}\" stroke-width=\"1.3\"/>"
            );
        }
    }
}

fn limit(out: &mut String, case: &Case, frame: &Frame) {
    let (since, until) = (case.drawn.since, case.drawn.until);
    let mut path = String::new();
    let steps = case.series.limit_steps(since, until);
    let mut is_drawing = false;
    for (at, rate) in &steps {
        let (x, y) = (frame.x(*at), frame.y.at(*rate));
        let _ = match (is_drawing, rate.is_finite()) {
            (false, true) => write!(path, "M{x:.1},{y:.1}"),
            (true, true) => write!(path, "H{x:.1}V{y:.1}"),
            // Where no limit is left the line ends.
            (true, false) => write!(path, "H{x:.1}"),
            (false, false) => Ok(()),
        };
        is_drawing = rate.is_finite();
    }
    if path.is_empty() {
        return;
    }
    if is_drawing {
        let _ = write!(path, "H{RIGHT}");
    }
    let _ = writeln!(
        out,
        "<path d=\"{path}\" fill=\"none\" stroke=\"{LIMIT}\" stroke-width=\"2.4\" \
         stroke-dasharray=\"8 4\"/>"
    );
    // The numbers that matter, where they hold: at the beginning and at the least.
    let first = steps.first().copied().filter(|(_, rate)| *rate > 0.0);
    let least = case.lowest.filter(|(at, _)| *at >= since && *at < until);
    for (at, rate) in first
        .into_iter()
        .chain(least.filter(|it| Some(*it) != first))
    {
        let y = frame.y.at(rate);
        let above = if rate > frame.top { y + 14.0 } else { y - 7.0 };
        let words = figures::rate(rate);
        let x = (frame.x(at) + 5.0).min(RIGHT - 60.0);
        let attributes = "font-weight=\"600\" stroke=\"#ffffff\" stroke-width=\"3\" \
             paint-order=\"stroke\"";
        text(out, (x, above), attributes, &words);
    }
}

fn letters(out: &mut String, case: &Case, frame: &Frame) {
    let drawn = case.changes.iter().enumerate();
    let drawn = drawn.filter(|(_, it)| it.at >= case.drawn.since && it.at < case.drawn.until);
    let drawn: Vec<(usize, f64)> = drawn.map(|(n, change)| (n, frame.x(change.at))).collect();
    for (_, x) in &drawn {
        let _ = writeln!(
            out,
            "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{STRIP_BOTTOM}\" \
             stroke=\"#1a1a1a\" stroke-opacity=\"0.35\" stroke-dasharray=\"1 3\"/>"
        );
    }
    let y = TOP - 17.0;
    for mark in marks::marks(&drawn) {
        let width = mark.width();
        let x = mark.x.clamp(LEFT + width / 2.0, RIGHT - width / 2.0);
        let _ = writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"18\" rx=\"9\" \
             fill=\"#1a1a1a\"/>",
            x - width / 2.0,
            y - 9.0,
        );
        let attributes = "text-anchor=\"middle\" font-size=\"11\" font-weight=\"600\" \
             fill=\"#ffffff\"";
        text(out, (x, y + 4.0), attributes, &mark.text());
    }
}

fn legend(out: &mut String, case: &Case) {
    let y = STRIP_BOTTOM + 52.0;
    let swatch = |out: &mut String, x: f64, colour: &str, opacity: f64| {
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{:.1}\" width=\"22\" height=\"11\" fill=\"{colour}\" \
             fill-opacity=\"{opacity}\" stroke=\"{colour}\"/>",
            y - 10.0
        );
    };
    swatch(out, LEFT, SENT, 0.22);
    text(out, (LEFT + 29.0, y), "", "attempts");
    swatch(out, LEFT + 120.0, REFUSED, 0.9);
    text(out, (LEFT + 149.0, y), "", "refused for rate or standing");
    let _ = writeln!(
        out,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{LIMIT}\" \
         stroke-width=\"2.4\" stroke-dasharray=\"8 4\"/>",
        LEFT + 360.0,
        y - 4.0,
        LEFT + 390.0,
        y - 4.0
    );
    text(out, (LEFT + 397.0, y), "", "limit in force");
    if !case.changes.is_empty() {
        text(
            out,
            (LEFT + 520.0, y),
            "",
            "A, B, \u{2026} changes, told in the report",
        );
    }
}
