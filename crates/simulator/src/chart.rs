//! A run as a picture: above, what was offered, what was sent and what the
//! limit allows; below, what waits, by class, on the same time.

use std::cmp::Ordering;

use outflow_core::class::Class;
use outflow_core::time::{NANOS_PER_SECOND, Nanos};
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::series::Bin;
use crate::summary::Summary;

const SIZE: (u32, u32) = (1_000, 640);
const OFFERED: RGBColor = RGBColor(160, 160, 160);
const SENT: RGBColor = RGBColor(31, 119, 180);
const LIMIT: RGBColor = RGBColor(214, 39, 40);
/// By class, most urgent first.
const CLASSES: [RGBColor; Class::COUNT] = [
    RGBColor(214, 39, 40),
    RGBColor(255, 152, 0),
    RGBColor(31, 119, 180),
    RGBColor(150, 170, 190),
];

/// Why there is no picture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the chart could not be drawn: {0}")]
pub struct ChartError(String);

fn failed(error: impl std::fmt::Display) -> ChartError {
    ChartError(error.to_string())
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The run as SVG. `limits` are the keys whose rates are drawn, added up; the
/// busiest one if none is named.
pub fn svg(summary: &Summary, title: &str, limits: &[String]) -> Result<String, ChartError> {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(failed)?;
        let caption = format!("{}: {title}", summary.scenario);
        let root = root
            .titled(&shortened(&caption, 110), ("sans-serif", 17))
            .map_err(failed)?;
        let (above, below) = root.split_vertically(330);
        let points = Points::of(summary, limits);
        rates(&above, &points)?;
        depths(&below, &points)?;
        root.present().map_err(failed)?;
    }
    Ok(text)
}

/// A run as the two panels draw it.
struct Points {
    hours: bool,
    end: f64,
    offered: Vec<(f64, f64)>,
    sent: Vec<(f64, f64)>,
    limit: Vec<(f64, f64)>,
    depth: [Vec<(f64, f64)>; Class::COUNT],
}

impl Points {
    fn of(summary: &Summary, limits: &[String]) -> Self {
        let series = &summary.series;
        let length = Nanos(series.width_ns * series.bins.len() as u64);
        let unit = unit_of(length);
        let width = Nanos(series.width_ns);
        // Bins narrower than a second are drawn as rates over a second or a
        // hundredth of the run, else a burst reads as a rate of many thousands.
        let drawn = (length.0 / 120)
            .max(NANOS_PER_SECOND.min(length.0 / 20))
            .max(1);
        let together = (drawn / width.0.max(1)).max(1) as usize;
        let step = width.0 as f64 * together as f64;
        let per_second = |bins: &[Bin], count: &dyn Fn(&Bin) -> u64| {
            let nanos = width.0 as f64 * bins.len() as f64;
            bins.iter().map(count).sum::<u64>() as f64 * NANOS_PER_SECOND as f64 / nanos
        };
        let chunks: Vec<&[Bin]> = series.bins.chunks(together).collect();
        let x = |index: usize| index as f64 * step / unit;
        let stairs = |value: &dyn Fn(&[Bin]) -> f64| -> Vec<(f64, f64)> {
            let each = chunks.iter().enumerate();
            each.flat_map(|(n, bins)| [(x(n), value(bins)), (x(n + 1), value(bins))])
                .collect()
        };
        let keys = chosen(summary, limits);
        let limit_at = |index: usize| -> f64 {
            let at = Nanos((index as f64 * step) as u64);
            let limits = keys.iter().filter_map(|key| summary.limits.get(key));
            limits.map(|limit| limit.rate_at(at)).sum()
        };
        let each = (0..chunks.len()).filter(|_| !keys.is_empty());
        Self {
            hours: unit > 60.0 * NANOS_PER_SECOND as f64,
            end: x(chunks.len()),
            offered: stairs(&|bins| per_second(bins, &|bin| bin.offered)),
            sent: stairs(&|bins| per_second(bins, &|bin| bin.sent)),
            limit: each
                .flat_map(|n| [(x(n), limit_at(n)), (x(n + 1), limit_at(n))])
                .collect(),
            depth: std::array::from_fn(|class| {
                stairs(&|bins| {
                    let depths = bins.iter().filter_map(|bin| bin.depth.get(class));
                    depths.max().copied().unwrap_or(0) as f64
                })
            }),
        }
    }

    fn time(&self) -> &'static str {
        if self.hours { "hours" } else { "seconds" }
    }
}

/// The unit of the time axis in nanoseconds.
fn unit_of(length: Nanos) -> f64 {
    let seconds = NANOS_PER_SECOND as f64;
    if length > Nanos::from_secs(2 * 3_600) {
        3_600.0 * seconds
    } else {
        seconds
    }
}

/// The limits to draw: those named, else the one that granted most at a rate.
fn chosen(summary: &Summary, named: &[String]) -> Vec<String> {
    if !named.is_empty() {
        return named.to_vec();
    }
    let rated = summary.limits.iter();
    let rated = rated.filter(|(key, _)| !key.contains("#concurrency"));
    let busiest = rated.max_by(|(_, a), (_, b)| a.granted.cmp(&b.granted).then(Ordering::Greater));
    busiest
        .map(|(key, _)| vec![key.clone()])
        .unwrap_or_default()
}

fn rates(area: &Area<'_>, points: &Points) -> Result<(), ChartError> {
    let highest = |of: &[(f64, f64)]| of.iter().map(|(_, y)| *y).fold(0.0, f64::max);
    let allowed = highest(&points.limit).max(highest(&points.sent)).max(1.0);
    // A flood must not flatten what was sent: it is cut off at the top.
    let top = highest(&points.offered).clamp(allowed, allowed * 2.0) * 1.15;
    let cut = highest(&points.offered) > top;
    let clipped: Vec<_> = points
        .offered
        .iter()
        .map(|(x, y)| (*x, y.min(top)))
        .collect();
    let mut chart = panel(area, "messages per second", points, top, false)?;
    let offered = AreaSeries::new(clipped, 0.0, OFFERED.mix(0.35)).border_style(OFFERED);
    let peak = format!(" (peak {}/s)", short(highest(&points.offered)));
    let label = format!("offered{}", if cut { peak.as_str() } else { "" });
    let drawn = chart.draw_series(offered).map_err(failed)?;
    drawn.label(label).legend(|(x, y)| swatch(x, y, OFFERED));
    let sent = AreaSeries::new(points.sent.iter().copied(), 0.0, SENT.mix(0.25))
        .border_style(SENT.stroke_width(2));
    let drawn = chart.draw_series(sent).map_err(failed)?;
    drawn.label("sent").legend(|(x, y)| swatch(x, y, SENT));
    if !points.limit.is_empty() {
        let limit =
            DashedLineSeries::new(points.limit.iter().copied(), 8, 5, LIMIT.stroke_width(2));
        let drawn = chart.draw_series(limit).map_err(failed)?;
        drawn.label("limit").legend(|(x, y)| swatch(x, y, LIMIT));
    }
    legend(&mut chart)
}

fn depths(area: &Area<'_>, points: &Points) -> Result<(), ChartError> {
    // Stacked: each class stands on those more urgent than it.
    let mut base: Vec<(f64, f64)> = Vec::new();
    let mut layers = Vec::new();
    for ((class, depth), colour) in Class::ALL.iter().zip(&points.depth).zip(CLASSES) {
        let sum: Vec<(f64, f64)> = depth
            .iter()
            .enumerate()
            .map(|(n, (x, y))| (*x, y + base.get(n).map_or(0.0, |(_, below)| *below)))
            .collect();
        if depth.iter().any(|(_, y)| *y > 0.0) {
            layers.push((class.as_str(), sum.clone(), colour));
        }
        base = sum;
    }
    let top = base.iter().map(|(_, y)| *y).fold(1.0, f64::max) * 1.15;
    let mut chart = panel(area, "messages waiting", points, top, true)?;
    for (class, sum, colour) in layers.into_iter().rev() {
        let layer = AreaSeries::new(sum, 0.0, colour).border_style(colour);
        let drawn = chart.draw_series(layer).map_err(failed)?;
        drawn
            .label(class)
            .legend(move |(x, y)| swatch(x, y, colour));
    }
    legend(&mut chart)
}

type Panel<'a, 'b> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;

fn panel<'a, 'b>(
    area: &'a Area<'b>,
    what: &str,
    points: &Points,
    top: f64,
    names_time: bool,
) -> Result<Panel<'a, 'b>, ChartError> {
    let mut chart = ChartBuilder::on(area)
        .margin(8)
        .margin_right(20)
        .x_label_area_size(if names_time { 38 } else { 24 })
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..points.end.max(1e-9), 0.0..top)
        .map_err(failed)?;
    let mut mesh = chart.configure_mesh();
    mesh.disable_x_mesh()
        .light_line_style(WHITE)
        .bold_line_style(RGBColor(225, 225, 225))
        .axis_style(RGBColor(120, 120, 120))
        .label_style(("sans-serif", 13))
        .axis_desc_style(("sans-serif", 14))
        .y_desc(what)
        .y_labels(6)
        .y_label_formatter(&|y| short(*y))
        .x_label_formatter(&|x| short(*x));
    if names_time {
        mesh.x_desc(points.time());
    }
    mesh.draw().map_err(failed)?;
    Ok(chart)
}

fn legend<'a, 'b: 'a>(chart: &mut Panel<'a, 'b>) -> Result<(), ChartError> {
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.85))
        .border_style(RGBColor(200, 200, 200))
        .label_font(("sans-serif", 13))
        .draw()
        .map_err(failed)
}

fn swatch(x: i32, y: i32, colour: RGBColor) -> Rectangle<(i32, i32)> {
    Rectangle::new([(x, y - 4), (x + 16, y + 4)], colour.filled())
}

/// `1500000` as `1.5M`.
fn short(value: f64) -> String {
    let (value, suffix) = match value {
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e4 => (v / 1e3, "k"),
        v => (v, ""),
    };
    let digits = if value >= 100.0 || value.fract() < 0.005 {
        0
    } else {
        1
    };
    format!("{value:.digits$}{suffix}")
}

fn shortened(text: &str, longest: usize) -> String {
    if text.chars().count() <= longest {
        return text.to_owned();
    }
    text.chars().take(longest).chain("...".chars()).collect()
}
