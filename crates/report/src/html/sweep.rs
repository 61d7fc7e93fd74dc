//! The pages of `weigh capacity`: one picture, one table.

use readings::text::{grouped, rate};
use verdict::usl::Level;

use crate::html::page::shell;
use crate::html::picture::axis::{Scale, Tick, rate_ticks, time_ticks};
use crate::html::picture::svg::{Picture, escaped, figure};
use crate::html::section::parts;
use crate::section::Part;
use crate::section::document::Document;
use crate::study::capacity::{self, limit, mark, quantile_name, range};
use crate::study::scaling::{self, ScalingView};
use readings::text::compact::time;
use verdict::capacity::{CapacityView, words};

const WIDTH: f64 = 880.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 850.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 320.0;

/// A point with its spread, and the series that gives it mark and colour.
struct Dot {
    x: f64,
    y: (f64, f64, f64),
    series: usize,
    /// Whether too few answers stand behind it.
    is_doubtful: bool,
    hint: String,
}

struct Chart<'a> {
    title: &'a str,
    caption: String,
    x: (Scale, Vec<Tick>),
    y: (Scale, Vec<Tick>),
    /// A line at this height.
    level: Option<f64>,
    line: Vec<(f64, f64)>,
    dots: Vec<Dot>,
}

impl Chart<'_> {
    fn drawn(&self) -> String {
        let hints: Vec<&str> = self.dots.iter().map(|d| d.hint.as_str()).collect();
        let mut picture = Picture::new("sweep", WIDTH, self.title, &hints.join("; "));
        let ((x, x_ticks), (y, y_ticks)) = (&self.x, &self.y);
        picture.rows(y, y_ticks, (LEFT, RIGHT));
        picture.columns(x, x_ticks, (TOP, BOTTOM));
        if let Some(level) = self.level {
            picture.line("zero", (LEFT, y.place(level)), (RIGHT, y.place(level)));
        }
        if !self.line.is_empty() {
            let placed = self.line.iter();
            let placed = placed.map(|(at, value)| (x.place(*at), y.place(*value)));
            picture.polyline("curve l0", &placed.collect::<Vec<_>>());
        }
        for dot in &self.dots {
            let at = x.place(dot.x);
            let (low, middle, high) = dot.y;
            let class = format!("whisker c{}", dot.series);
            picture.line(&class, (at, y.place(low)), (at, y.place(high)));
            let open = if dot.is_doubtful { " open" } else { "" };
            let class = format!("mark{open} c{}", dot.series);
            picture.mark(dot.series, &class, (at, y.place(middle)), &dot.hint);
        }
        figure(&self.caption, &picture.finish(BOTTOM + 28.0))
    }
}

/// A page of a study; the chart stands where other forms have a drawing.
fn page(document: &Document<'_>, chart: Option<Chart<'_>>) -> String {
    let mut main = format!("<h1>{}</h1>\n", escaped(&document.title));
    let is_sentence = |part: &&Part<'_>| matches!(part, Part::List(_));
    let sentences = document.parts.iter().take_while(is_sentence).count();
    let (sentences, figures) = document.parts.split_at(sentences);
    main.push_str(&parts(sentences));
    main.push_str(&chart.map_or(String::new(), |chart| chart.drawn()));
    main.push_str(&parts(figures));
    for one in &document.sections {
        let items = parts(&one.parts);
        main.push_str(&format!("<h2>{}</h2>\n{items}", escaped(&one.title)));
    }
    if let Some(footer) = &document.footer {
        main.push_str(&format!("<footer>{}</footer>\n", escaped(footer)));
    }
    shell(&document.title, &main)
}

/// The capacity under an objective as one HTML page with a picture; nothing is fetched by it.
pub fn capacity_html(view: &CapacityView<'_>) -> String {
    page(&capacity::document(view), latency_chart(view))
}

fn latency_chart<'a>(view: &CapacityView<'a>) -> Option<Chart<'a>> {
    let points = || {
        let drawn = |p: &'a verdict::capacity::RatePoint| Some((p, *p.quantiles.last()?));
        let drawn = view.points.iter().filter_map(drawn);
        drawn.filter(|(_, q)| q.latency_us.low > 0.0)
    };
    let (_, most) = range(points().map(|(p, _)| p.rate_per_s))?;
    let level = limit(view.objective).map(|(_, us)| us.log10());
    let ends = points().flat_map(|(_, q)| [q.latency_us.low.log10(), q.latency_us.high.log10()]);
    let (low, high) = range(ends.chain(level))?;
    let (low, high) = (low - 0.05, high + 0.05);
    let most = most * 1.02;
    let offered = words::offered(view.objective);
    let dots = points().map(|(p, q)| {
        let s = q.latency_us;
        Dot {
            x: p.rate_per_s,
            y: (s.low.log10(), s.middle.log10(), s.high.log10()),
            series: match mark(p) {
                'o' => 0,
                'x' => 1,
                _ => 3,
            },
            is_doubtful: !q.resolved,
            hint: format!(
                "{} {offered}: {} {}{}, {} of {} held",
                rate(p.rate_per_s),
                quantile_name(q.quantile),
                time(s.middle),
                if q.resolved { "" } else { "?" },
                p.held,
                p.held + p.missed + p.unusable
            ),
        }
    });
    Some(Chart {
        title: "Latency against offered rate",
        caption: format!(
            "Latency against offered {offered}: the objective's highest quantile, middle and spread \
             of the trials. Circles held, squares did not, diamonds say nothing; open marks rest on \
             too few answers; the line is the objective."
        ),
        x: (Scale::new(0.0, most, LEFT, RIGHT), rate_ticks(0.0, most)),
        y: (Scale::new(low, high, BOTTOM, TOP), time_ticks(low, high)),
        level,
        line: Vec::new(),
        dots: dots.collect(),
    })
}

/// Throughput over concurrency as one HTML page with a picture; nothing is fetched by it.
pub fn scaling_html(view: &ScalingView<'_>) -> String {
    page(&scaling::document(view), throughput_chart(view))
}

fn throughput_chart<'a>(view: &ScalingView<'a>) -> Option<Chart<'a>> {
    let levels = || {
        let drawn = |l: &'a Level| Some((l, l.requests_per_s?));
        view.scaling.levels.iter().filter_map(drawn)
    };
    let at = |l: &Level| f64::from(l.connections).log2();
    let (from, to) = range(levels().map(|(l, _)| at(l)))?;
    let line = view.scaling.expected.iter();
    let line = line.map(|p| (p.concurrency.log2(), p.requests_per_s.value));
    let line: Vec<(f64, f64)> = line.collect();
    let values = levels()
        .map(|(_, s)| s.high)
        .chain(line.iter().map(|p| p.1));
    let most = 1.05 * values.fold(0.0, f64::max);
    let dots = levels().map(|(l, s)| Dot {
        x: at(l),
        y: (s.low, s.middle, s.high),
        series: if l.at_least { 2 } else { 0 },
        is_doubtful: false,
        hint: format!(
            "{} connections: {}{} requests/s",
            grouped(u64::from(l.connections)),
            if l.at_least { "at least " } else { "" },
            rate(s.middle)
        ),
    });
    let x_ticks = levels().map(|(l, _)| (at(l), grouped(u64::from(l.connections))));
    Some(Chart {
        title: "Throughput over concurrency",
        caption:
            "Requests/s against connections: middle and spread of the rounds. Triangles are 'at \
                  least'; the line is the law that fits, within what was measured."
                .to_owned(),
        x: (
            Scale::new(from - 0.1, to + 0.1, LEFT, RIGHT),
            x_ticks.collect(),
        ),
        y: (Scale::new(0.0, most, BOTTOM, TOP), rate_ticks(0.0, most)),
        level: None,
        line,
        dots: dots.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::capacity::tests::example;
    use crate::study::scaling::tests::{steps, view};
    use testing::Text as _;
    use verdict::usl::Scaling;

    #[test]
    fn the_pages_stand_alone_and_show_every_rate() {
        let example = example();
        let page = capacity_html(&CapacityView {
            url: "http://h/<b>",
            ..example.view()
        });
        page.lacks("<b>");
        page.lacks("<script src");
        page.has("<h1>Capacity of http://h/&lt;b&gt;</h1>");
        // Each has a mark with a hint.
        page.has_all([
            "2,000 requests/s: p99 4",
            "2,040 requests/s: p99 6",
            "0 of 2 held",
            "against offered requests/s",
        ]);
        assert_eq!(page.matches("class=\"mark").count(), example.points.len());
        assert_eq!(page.matches("class=\"zero\"").count(), 1);
        let none = CapacityView {
            points: &[],
            ..example.view()
        };
        assert!(!capacity_html(&none).contains("<svg"));
    }

    #[test]
    fn what_is_swept_has_its_unit() {
        let example = example();
        let objective = example.view().objective.clone().of_users();
        let page = capacity_html(&CapacityView {
            objective: &objective,
            ..example.view()
        });
        page.has_all(["against offered users/s:", "2,000 users/s: p99 4"]);
    }

    #[test]
    fn the_law_ends_where_its_points_end() {
        let steps = steps();
        let scaling = Scaling::of(&steps, 7);
        let page = scaling_html(&view(&scaling, &steps));
        let from = page.find("<polyline").unwrap();
        let points = &page[from..from + page[from..].find("/>").unwrap()];
        let last = points.split(' ').next_back().unwrap();
        let last: f64 = last.split(',').next().unwrap().parse().unwrap();
        // 16 of 1 to 32 connections on the logarithmic scale.
        assert!((600.0..750.0).contains(&last), "{points}");
        page.has("32 connections: at least ");
    }
}
