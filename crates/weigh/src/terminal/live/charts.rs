//! The charts of the live view.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Borders, Chart, Dataset, GraphType, Paragraph};
use readings::text::{percent, rate};
use report::time;

use super::state::{Point, State, seconds};

/// Colours, or none of them.
#[derive(Clone, Copy)]
pub(super) struct Paint(pub(super) bool);

impl Paint {
    pub(super) fn colour(self, colour: Color) -> Style {
        if self.0 {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }

    pub(super) fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(super) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }
}

/// One line of a chart: its dots, in runs without gaps.
struct Series {
    runs: Vec<Vec<(f64, f64)>>,
    style: Style,
    marker: Marker,
}

impl Series {
    fn new(points: impl Iterator<Item = (f64, Option<f64>)>, style: Style, marker: Marker) -> Self {
        let mut runs = vec![Vec::new()];
        for (x, y) in points {
            match (y, runs.last_mut()) {
                (Some(y), Some(run)) => run.push((x, y)),
                // Nothing is drawn over a time without answers.
                _ => runs.push(Vec::new()),
            }
        }
        runs.retain(|run| !run.is_empty());
        Self {
            runs,
            style,
            marker,
        }
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        self.runs.iter().flatten().map(|&(_, y)| y)
    }
}

/// Good answers per second over time, and what was due.
pub(super) fn rates(frame: &mut Frame, area: Rect, state: &State) {
    let paint = Paint(state.colour);
    let line = |y: fn(&Point) -> f64, style, marker| {
        let points = state.points.iter();
        Series::new(points.map(|p| (p.end_s, Some(y(p)))), style, marker)
    };
    let mut series = Vec::new();
    let mut title = vec![Span::raw("Requests/s")];
    if state.offered_per_s().is_some() {
        series.push(line(|p| p.due_per_s, paint.faint(), Marker::Dot));
        title.push(Span::styled("  • due", paint.faint()));
    }
    let style = paint.colour(Color::Cyan);
    series.push(line(|p| p.per_s, style, Marker::Braille));
    let most = series.iter().flat_map(Series::values).fold(1.0, f64::max);
    let top = round_up(most);
    let labels = [0.0, top / 2.0, top].map(|y| if y == 0.0 { "0".into() } else { rate(y) });
    chart(
        frame,
        area,
        state,
        Line::from(title),
        &series,
        (0.0, top),
        &labels,
    );
}

/// Response times over time, on a logarithmic scale.
pub(super) fn latencies(frame: &mut Frame, area: Rect, state: &State) {
    let paint = Paint(state.colour);
    let line = |y: fn((f64, f64)) -> f64, style, marker| {
        let points = state.points.iter();
        let log = move |p: &Point| p.p50_p99_us.map(|both| y(both).max(0.001).log10());
        Series::new(points.map(|p| (p.end_s, log(p))), style, marker)
    };
    let (median, tail) = (paint.colour(Color::Green), paint.colour(Color::Yellow));
    let series = [
        line(|both| both.1, tail, Marker::Dot),
        line(|both| both.0, median, Marker::Braille),
    ];
    let title = Line::from(vec![
        Span::raw("Latency  "),
        Span::styled("⠒ p50", median),
        Span::styled("  • p99", tail),
    ]);
    let values = || series.iter().flat_map(Series::values);
    let low = values().fold(f64::INFINITY, f64::min);
    let high = values().fold(f64::NEG_INFINITY, f64::max);
    let (low, high) = if low.is_finite() {
        (low - 0.1, high + 0.1)
    } else {
        (2.0, 4.0)
    };
    let labels = [low, (low + high) / 2.0, high].map(|y| time(10_f64.powf(y)));
    chart(frame, area, state, title, &series, (low, high), &labels);
}

fn chart(
    frame: &mut Frame,
    area: Rect,
    state: &State,
    title: Line<'_>,
    series: &[Series],
    heights: (f64, f64),
    labels: &[String; 3],
) {
    let paint = Paint(state.colour);
    let datasets = series
        .iter()
        .flat_map(|one| one.runs.iter().map(move |run| (one, run)))
        .map(|(one, run)| {
            Dataset::default()
                .data(run)
                .marker(one.marker)
                .style(one.style)
                // A line wants two ends.
                .graph_type(match run.len() {
                    1 => GraphType::Scatter,
                    _ => GraphType::Line,
                })
        })
        .collect();
    let span = state.span_s();
    let ends = [span.0, span.1].map(|s| seconds(Duration::from_secs_f64(s.max(0.0))));
    let wide = labels.iter().map(|label| label.len()).max().unwrap_or(0);
    let chart = Chart::new(datasets)
        .block(Block::new().title(title))
        .x_axis(
            Axis::default()
                .bounds([span.0, span.1])
                .labels(ends.to_vec())
                .style(paint.faint()),
        )
        .y_axis(
            Axis::default()
                .bounds([heights.0, heights.1])
                .labels(labels.iter().map(|label| format!("{label:>wide$}")))
                .style(paint.faint()),
        );
    frame.render_widget(chart, area);
}

/// The next of 1, 2, 5, 10, … that is not below a number.
fn round_up(most: f64) -> f64 {
    let ten = 10_f64.powf(most.log10().floor());
    [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0]
        .into_iter()
        .map(|step| step * ten)
        .find(|&top| top >= most)
        .unwrap_or(10.0 * ten)
}

/// Response times of the whole load as bars; each stretches over the same factor.
pub(super) fn bars(frame: &mut Frame, area: Rect, state: &State) {
    let paint = Paint(state.colour);
    let title = Line::from("Answers by latency, so far");
    let block = Block::new().borders(Borders::NONE).title(title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let bins = bins(&state.buckets_us, inner.height as usize);
    let most = bins.iter().map(|bin| bin.count).max().unwrap_or(0).max(1);
    let width = inner.width.saturating_sub(28) as f64;
    let lines: Vec<Line<'_>> = bins
        .iter()
        .map(|bin| {
            let share = 100.0 * bin.count as f64 / state.overall.count.max(1) as f64;
            let share = match bin.count {
                0 => "-".to_owned(),
                _ if share < 0.01 => "<0.01%".to_owned(),
                _ => percent(share, 2, false),
            };
            Line::from(vec![
                Span::styled(
                    format!("{:>8} to {:>7} ", time(bin.from_us), time(bin.to_us)),
                    paint.faint(),
                ),
                Span::raw(format!("{share:>7} ")),
                Span::styled(
                    bar(bin.count as f64 / most as f64 * width),
                    paint.colour(Color::Cyan),
                ),
            ])
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), inner);
}

/// A bar of so many columns, in eighths of a column; a trace for what would vanish.
pub(super) fn bar(columns: f64) -> String {
    let eighths = (columns * 8.0).round() as usize;
    let eighths = if columns > 0.0 { eighths.max(1) } else { 0 };
    let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    "█".repeat(eighths / 8) + rest
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bin {
    pub(super) from_us: f64,
    pub(super) to_us: f64,
    pub(super) count: u64,
}

/// Buckets of a histogram, put together into at most so many bins of equal ratio.
pub(super) fn bins(buckets_us: &[(f64, u64)], most: usize) -> Vec<Bin> {
    let (Some(&(low, _)), Some(&(high, _))) = (buckets_us.first(), buckets_us.last()) else {
        return Vec::new();
    };
    if most == 0 {
        return Vec::new();
    }
    let low = low.max(0.001);
    let ratio = (high / low).max(1.0);
    // Fewer bins where the histogram's own buckets would be finer than they.
    let count = most.min(buckets_us.len());
    let edge = |bin: usize| low * ratio.powf(bin as f64 / count as f64);
    let mut bins: Vec<Bin> = (0..count)
        .map(|bin| Bin {
            from_us: edge(bin),
            to_us: edge(bin + 1),
            count: 0,
        })
        .collect();
    for &(us, n) in buckets_us {
        let at = if ratio > 1.0 {
            ((us / low).ln() / ratio.ln() * count as f64) as usize
        } else {
            0
        };
        bins[at.min(count - 1)].count += n;
    }
    bins
}
