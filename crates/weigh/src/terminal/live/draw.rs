//! Draws the live view; a pure function of its state.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Color;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use readings::Quantiles;
use readings::text::{counted, grouped, rate};
use report::time;

use super::charts::{self, Paint, bar};
use super::state::{Phase, State};

/// The smallest terminal that the view is shown on.
pub(super) const COLUMNS_MIN: u16 = 40;
pub(super) const LINES_MIN: u16 = 10;
/// Above this share of a core, on average, the client is probably the bottleneck.
const BUSY: f64 = 0.8;
/// Lines that a chart needs at least.
const CHART_MIN: u16 = 7;
/// Columns of each of two charts side by side.
const CHART_COLUMNS: u16 = 38;

/// A column of the table of quantiles: its name, the quantile, its value.
type Column = (&'static str, f64, fn(&Quantiles) -> f64);
/// In order; the second number is how wide a terminal has to be to show it.
const QUANTILES: [(Column, u16); 6] = [
    (("p50", 0.5, |q| q.p50), 0),
    (("p75", 0.75, |q| q.p75), 66),
    (("p90", 0.9, |q| q.p90), 57),
    (("p99", 0.99, |q| q.p99), 0),
    (("p99.9", 0.999, |q| q.p99_9), 48),
    (("max", 0.0, |q| q.max), 0),
];

pub(super) fn draw(frame: &mut Frame, state: &State) {
    let area = frame.area();
    if area.width < COLUMNS_MIN || area.height < LINES_MIN {
        // It has become smaller since the start.
        let text = format!("{} requests/s, q stops", rate(state.per_s()));
        frame.render_widget(Paragraph::new(text), area);
        return;
    }
    let figures = figures(state, area.width);
    let [top, rest] =
        Layout::vertical([Constraint::Length(figures.len() as u16), Constraint::Min(0)])
            .areas(area);
    frame.render_widget(Paragraph::new(figures), top);
    pictures(frame, rest, state);
}

fn pictures(frame: &mut Frame, area: Rect, state: &State) {
    if area.height < CHART_MIN {
        return;
    }
    let side_by_side = area.width >= 2 * CHART_COLUMNS;
    let charts_min = if side_by_side {
        CHART_MIN
    } else {
        2 * CHART_MIN
    };
    let bars = area.height > charts_min + 4;
    let charts = match (bars, area.height) {
        (true, height) => (height * 3 / 5).max(charts_min),
        (false, height) => height,
    };
    let [upper, _, lower] = Layout::vertical([
        Constraint::Length(charts),
        Constraint::Length(u16::from(bars)),
        Constraint::Min(0),
    ])
    .areas(area);
    if side_by_side {
        let [left, _, right] = Layout::horizontal([
            Constraint::Fill(1),
            Constraint::Length(2),
            Constraint::Fill(1),
        ])
        .areas(upper);
        charts::rates(frame, left, state);
        charts::latencies(frame, right, state);
    } else if upper.height >= 2 * CHART_MIN {
        let [first, second] = Layout::vertical([Constraint::Fill(1); 2]).areas(upper);
        charts::rates(frame, first, state);
        charts::latencies(frame, second, state);
    } else {
        charts::latencies(frame, upper, state);
    }
    if bars {
        charts::bars(frame, lower, state);
    }
}

/// The lines above the charts.
fn figures(state: &State, width: u16) -> Vec<Line<'_>> {
    let paint = Paint(state.colour);
    let mut lines = vec![
        ends(
            Span::styled(&state.target, paint.strong()),
            Span::styled("q stops", paint.faint()),
            width,
        ),
        fitting(state.how.iter().map(Span::raw).collect(), width),
        progress(state, width),
        rates(state, width),
        counts(state, width),
    ];
    lines.extend(quantiles(state, width));
    lines.push(client(state));
    lines
}

/// One text at the left, one at the right; the left one is cut.
fn ends<'a>(left: Span<'a>, right: Span<'a>, width: u16) -> Line<'a> {
    let room = (width as usize).saturating_sub(right.width() + 1);
    let text: String = left.content.chars().take(room).collect();
    let gap = " ".repeat((width as usize).saturating_sub(text.chars().count() + right.width()));
    Line::from(vec![Span::styled(text, left.style), Span::raw(gap), right])
}

/// Parts with commas between them, as many from the first on as there is room for.
fn fitting(parts: Vec<Span<'_>>, width: u16) -> Line<'_> {
    let mut line = Line::default();
    for part in parts {
        let comma = if line.spans.is_empty() { "" } else { ", " };
        if line.width() + comma.len() + part.width() > width as usize {
            break;
        }
        line.push_span(comma);
        line.push_span(part);
    }
    line
}

fn progress(state: &State, width: u16) -> Line<'static> {
    let paint = Paint(state.colour);
    let text = state.progress();
    let room = (width as usize)
        .saturating_sub(text.chars().count() + 1)
        .min(30);
    let mut spans = vec![Span::raw(text)];
    if room >= 8 && state.phase >= Phase::Measuring {
        let full = bar(state.share_done() * room as f64);
        let gap = "░".repeat(room.saturating_sub(full.chars().count()));
        spans.push(Span::raw(" "));
        spans.push(Span::styled(full, paint.colour(Color::Green)));
        spans.push(Span::styled(gap, paint.faint()));
    }
    Line::from(spans)
}

fn rates(state: &State, width: u16) -> Line<'static> {
    let paint = Paint(state.colour);
    let per_s = |per_s: f64| match per_s {
        0.0 => "0".to_owned(),
        per_s => rate(per_s),
    };
    let due = state.offered_per_s().map_or(String::new(), |offered| {
        format!(" of {} due", per_s(offered))
    });
    let now = format!("{} requests/s{due}", per_s(state.per_s()));
    let mut parts = vec![Span::styled(now, paint.strong())];
    if let Some(mean) = state.mean_per_s() {
        parts.push(Span::raw(format!("mean {}", per_s(mean))));
    }
    fitting(parts, width)
}

fn counts(state: &State, width: u16) -> Line<'static> {
    let paint = Paint(state.colour);
    let alarm = paint.colour(Color::Red).patch(paint.strong());
    let errors = match state.errors {
        0 => Span::raw("no errors"),
        1 => Span::styled("1 error", alarm),
        n => Span::styled(format!("{} errors", grouped(n)), alarm),
    };
    let answers = format!("{} good answers", grouped(state.requests));
    let mut parts = vec![Span::raw(answers), errors];
    if state.messages > 0 {
        let messages = format!("{} messages", grouped(state.messages));
        parts.insert(0, Span::styled(messages, paint.strong()));
    }
    if let Some(unanswered) = state.unanswered().filter(|&n| n > 0) {
        let text = format!("{} unanswered", grouped(unanswered));
        parts.push(match state.is_overloaded() {
            true => Span::styled(format!("{text}: overloaded"), alarm),
            false => Span::raw(text),
        });
    }
    fitting(parts, width)
}

fn quantiles(state: &State, width: u16) -> Vec<Line<'static>> {
    let paint = Paint(state.colour);
    let columns: Vec<Column> = QUANTILES
        .iter()
        .filter(|(_, wanted)| width >= *wanted)
        .map(|(column, _)| *column)
        .collect();
    let line = |name: &str, value: &dyn Fn(&Column) -> String| {
        let mut text = format!("{name:<12}");
        for column in &columns {
            text.push_str(&format!("{:>9}", value(column)));
        }
        text
    };
    let row = |name: String, q: Option<&Quantiles>| {
        line(&name, &|(_, quantile, value)| match q {
            Some(q) if q.count > 0 => {
                // As in the result: fewer than 100 answers lie beyond it.
                let doubt = if q.resolves(*quantile) || *quantile == 0.0 {
                    ""
                } else {
                    "?"
                };
                format!("{}{doubt}", time(value(q)))
            }
            _ => "-".to_owned(),
        })
    };
    let last = state.last.as_ref();
    let name = last.map_or("Last row".to_owned(), |(length_s, _)| {
        format!("Last {}", time(length_s * 1e6))
    });
    vec![
        Line::styled(
            line("Latency", &|(name, ..)| (*name).to_owned()),
            paint.faint(),
        ),
        Line::from(row(name, last.map(|(_, q)| q))),
        Line::from(row("So far".to_owned(), Some(&state.overall))),
    ]
}

/// How the client fares: whether the figures are the server's.
fn client(state: &State) -> Line<'static> {
    let paint = Paint(state.colour);
    let threads = counted(state.threads, "thread");
    let used = |share: f64| format!("{:.0}%", share * 100.0);
    match (state.client.polls, state.client.cpu) {
        (true, _) => Line::from(format!("Client: {threads}, polling")),
        (false, None) => Line::from(format!("Client: {threads}")),
        (false, Some(cpu)) if cpu > BUSY => Line::from(vec![
            Span::raw(format!("Client: {threads} at {} CPU, ", used(cpu))),
            Span::styled(
                "probably the bottleneck",
                paint.colour(Color::Red).patch(paint.strong()),
            ),
        ]),
        (false, Some(cpu)) => Line::from(format!("Client: {threads} at {} CPU", used(cpu))),
    }
}
