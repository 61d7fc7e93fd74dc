//! The pages of `weigh capacity`: one picture, one table.

use readings::text::{grouped, rate};
use verdict::usl::Level;

use crate::html::page::shell;
use crate::html::picture::axis::{Scale, Tick, rate_ticks, time_ticks};
use crate::html::picture::svg::{Anchor, Picture, escaped, prose};
use crate::html::table::table;
use crate::section::columns::Columns;
use crate::study::capacity::{self, limit, mark, quantile_name, range};
use crate::study::scaling::{self, ScalingView};
use readings::text::compact::time;
use verdict::capacity::CapacityView;

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
    hint: String,
}

struct Chart<'a> {
    title: &'a str,
    caption: &'a str,
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
        for (value, label) in y_ticks {
            let at = y.place(*value);
            picture.line("grid", (LEFT, at), (RIGHT, at));
            picture.text("tick", (LEFT - 6.0, at + 4.0), Anchor::End, label);
        }
        for (value, label) in x_ticks {
            let at = x.place(*value);
            picture.line("grid", (at, TOP), (at, BOTTOM));
            picture.text("tick", (at, BOTTOM + 16.0), Anchor::Middle, label);
        }
        if let Some(level) = self.level {
            picture.line("zero", (LEFT, y.place(level)), (RIGHT, y.place(level)));
        }
        if !self.line.is_empty() {
            let placed: Vec<(f64, f64)> = self
                .line
                .iter()
                .map(|(at, value)| (x.place(*at), y.place(*value)))
                .collect();
            picture.polyline("curve l0", &placed);
        }
        for dot in &self.dots {
            let at = x.place(dot.x);
            let (low, middle, high) = dot.y;
            let class = format!("whisker c{}", dot.series);
            picture.line(&class, (at, y.place(low)), (at, y.place(high)));
            let class = format!("mark c{}", dot.series);
            picture.mark(dot.series, &class, (at, y.place(middle)), &dot.hint);
        }
        format!(
            "<figure class=\"wide\"><figcaption>{}</figcaption>\n{}</figure>\n",
            escaped(self.caption),
            picture.finish(BOTTOM + 28.0)
        )
    }
}

fn page(
    title: &str,
    said: impl Iterator<Item = String>,
    chart: Option<Chart<'_>>,
    columns: &Columns,
    problems: Vec<String>,
    seed: u64,
) -> String {
    let mut main = format!("<h1>{}</h1>\n<ul>\n", escaped(title));
    for sentence in said {
        main.push_str(&format!("<li>{}</li>\n", prose(&sentence)));
    }
    main.push_str("</ul>\n");
    main.push_str(&chart.map_or(String::new(), |chart| chart.drawn()));
    if !columns.rows.is_empty() {
        main.push_str(&table(columns, "all levels"));
    }
    if !problems.is_empty() {
        let items: Vec<String> = problems
            .iter()
            .map(|p| format!("<li>{}</li>\n", prose(p)))
            .collect();
        main.push_str(&format!(
            "<h2>What did not hold or count</h2>\n<ul>\n{}</ul>\n",
            items.concat()
        ));
    }
    main.push_str(&format!("<footer>Seed {seed}.</footer>\n"));
    shell(title, &main)
}

/// The capacity under an objective as one HTML page with a picture; nothing is fetched by it.
pub fn capacity_html(view: &CapacityView<'_>) -> String {
    let problems = view.points.iter().filter_map(capacity::why).collect();
    page(
        &format!("Capacity of {}", view.url),
        capacity::said(view),
        latency_chart(view),
        &capacity::table(view.points),
        problems,
        view.seed,
    )
}

fn latency_chart<'a>(view: &CapacityView<'a>) -> Option<Chart<'a>> {
    let points = || {
        let drawn = |p: &'a verdict::capacity::RatePoint| Some((p, *p.quantiles.last()?));
        view.points
            .iter()
            .filter_map(drawn)
            .filter(|(_, q)| q.latency_us.low > 0.0)
    };
    let (_, most) = range(points().map(|(p, _)| p.rate_per_s))?;
    let level = limit(view.objective).map(|(_, us)| us.log10());
    let ends = points().flat_map(|(_, q)| [q.latency_us.low.log10(), q.latency_us.high.log10()]);
    let (low, high) = range(ends.chain(level))?;
    let (low, high) = (low - 0.05, high + 0.05);
    let most = most * 1.02;
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
            hint: format!(
                "{}/s: {} {}, {} of {} held",
                rate(p.rate_per_s),
                quantile_name(q.quantile),
                time(s.middle),
                p.held,
                p.held + p.missed + p.unusable
            ),
        }
    });
    Some(Chart {
        title: "Latency against offered rate",
        caption: "Latency against offered requests/s: the objective's highest quantile, middle and \
                  spread of the trials. Circles held, squares did not, diamonds say nothing; the \
                  line is the objective.",
        x: (Scale::new(0.0, most, LEFT, RIGHT), rate_ticks(0.0, most)),
        y: (Scale::new(low, high, BOTTOM, TOP), time_ticks(low, high)),
        level,
        line: Vec::new(),
        dots: dots.collect(),
    })
}

/// Throughput over concurrency as one HTML page with a picture; nothing is fetched by it.
pub fn scaling_html(view: &ScalingView<'_>) -> String {
    page(
        &format!("Throughput over concurrency of {}", view.url),
        scaling::said(view),
        throughput_chart(view),
        &scaling::table(view.scaling),
        scaling::problems(view.scaling).collect(),
        view.seed,
    )
}

fn throughput_chart<'a>(view: &ScalingView<'a>) -> Option<Chart<'a>> {
    let levels = || {
        let drawn = |l: &'a Level| Some((l, l.requests_per_s?));
        view.scaling.levels.iter().filter_map(drawn)
    };
    let at = |l: &Level| f64::from(l.connections).log2();
    let (from, to) = range(levels().map(|(l, _)| at(l)))?;
    let line: Vec<(f64, f64)> = view
        .scaling
        .expected
        .iter()
        .map(|p| (p.concurrency.log2(), p.requests_per_s.value))
        .collect();
    let values = levels()
        .map(|(_, s)| s.high)
        .chain(line.iter().map(|p| p.1));
    let most = 1.05 * values.fold(0.0, f64::max);
    let dots = levels().map(|(l, s)| Dot {
        x: at(l),
        y: (s.low, s.middle, s.high),
        series: if l.at_least { 2 } else { 0 },
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
        caption: "Requests/s against connections: middle and spread of the rounds. Triangles are 'at \
                  least'; the line is the law that fits, within what was measured.",
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
    use verdict::usl::Scaling;

    #[test]
    fn the_pages_stand_alone_and_show_every_rate() {
        let example = example();
        let page = capacity_html(&CapacityView {
            url: "http://h/<b>",
            ..example.view()
        });
        assert!(
            !page.contains("<b>") && !page.contains("<script src"),
            "{page}"
        );
        assert!(page.contains("<h1>Capacity of http://h/&lt;b&gt;</h1>"));
        // Each has a mark with a hint.
        for hint in ["2,000/s: p99 4", "2,040/s: p99 6", "0 of 2 held"] {
            assert!(page.contains(hint), "no {hint} in {page}");
        }
        assert_eq!(page.matches("class=\"mark").count(), example.points.len());
        assert_eq!(page.matches("class=\"zero\"").count(), 1);
        let none = CapacityView {
            points: &[],
            ..example.view()
        };
        assert!(!capacity_html(&none).contains("<svg"));
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
        assert!(page.contains("32 connections: at least "));
    }
}
