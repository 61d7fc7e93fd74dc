//! The ratio of each block over the block's number, so that drift and outliers show.

use readings::Condition;
use readings::text::{counted, fraction, once};
use verdict::{Analysis, BlockPauses, BlockRatio, Metric};

use crate::html::picture::axis::{Scale, ratio_ticks};
use crate::html::picture::panels::{BOTTOM, LEFT, RIGHT, TOP, WIDTH};
use crate::html::picture::svg::{Anchor, Picture, escaped, legend, titled};
use readings::text::compact::time;

const PAUSE_SHAPE: usize = 2;

struct Series<'a> {
    name: &'a str,
    /// The index of the subject among the run's subjects; `None` for the noise floor.
    colour: Option<usize>,
    ratios: &'a [BlockRatio],
}

/// One panel for each condition and metric with any block, except costs of servers. `subjects`
/// determines the colours.
pub(crate) fn panels(analysis: &Analysis, subjects: &[String], matters: f64) -> String {
    // Costs of servers hardly vary; their intervals say enough.
    let drawn = analysis.comparisons.iter().filter(|c| !c.metric.is_cost());
    let places = once(drawn.map(|c| (&c.condition, c.metric)));
    let each = places.into_iter().enumerate();
    each.filter_map(|(i, (place, metric))| panel(analysis, subjects, matters, i, place, metric))
        .collect()
}

fn panel(
    analysis: &Analysis,
    subjects: &[String],
    matters: f64,
    number: usize,
    place: &Condition,
    metric: Metric,
) -> Option<String> {
    let floors = analysis.noise_floor.iter();
    let mut series: Vec<Series<'_>> = floors
        .filter(|f| f.condition == *place && f.metric == metric)
        .map(|f| Series {
            name: "noise floor",
            colour: None,
            ratios: &f.by_block,
        })
        .collect();
    let comparisons = analysis.comparisons.iter();
    series.extend(
        comparisons
            .filter(|c| c.condition == *place && c.metric == metric && c.ratio.is_some())
            .map(|c| Series {
                name: &c.subject,
                colour: subjects.iter().position(|s| *s == c.subject),
                ratios: &c.by_block,
            }),
    );
    series.retain(|s| !s.ratios.is_empty());
    let points = || series.iter().flat_map(|s| s.ratios);
    let last_block = points().map(|r| r.block).max()?;

    let delta = matters.max(0.0).ln_1p();
    let low = points().map(|r| r.ratio.ln()).fold(-1.4 * delta, f64::min);
    let high = points().map(|r| r.ratio.ln()).fold(1.4 * delta, f64::max);
    let margin = 0.06 * (high - low).max(0.01);
    let (low, high) = (low - margin, high + margin);
    let x = Scale::new(0.5, f64::from(last_block) + 0.5, LEFT, RIGHT);
    let y = Scale::new(low, high, BOTTOM, TOP);

    let title = titled(&format!("{} by block", metric.words()), place);
    let names: Vec<&str> = series.iter().map(|s| s.name).collect();
    let description = format!(
        "change against the baseline in each of {last_block} blocks, for {}",
        names.join(", ")
    );
    let mut picture = Picture::new(&format!("blocks-{number}"), WIDTH, &title, &description);
    let band = (y.place(delta), y.place(-delta));
    picture.rect("band", (LEFT, band.0), (RIGHT - LEFT, band.1 - band.0));
    picture.rows(&y, &ratio_ticks(low, high), (LEFT, RIGHT));
    picture.line("zero", (LEFT, y.place(0.0)), (RIGHT, y.place(0.0)));
    let every = last_block.div_ceil(10).max(1);
    for block in (1..=last_block).step_by(every as usize) {
        let at = (x.place(f64::from(block)), BOTTOM + 15.0);
        picture.text("tick", at, Anchor::Middle, &block.to_string());
    }
    let paused = paused(analysis, place, metric);
    for one in &paused {
        let at = (x.place(f64::from(one.block)), BOTTOM - 4.0);
        let hint = format!(
            "block {}: {} of the client, the longest {}",
            one.block,
            counted(one.pauses as usize, "pause"),
            time(one.longest_ms * 1e3)
        );
        picture.mark(PAUSE_SHAPE, "mark pause", at, &hint);
    }
    for s in &series {
        let (shape, class) = match s.colour {
            Some(i) => (i, format!("mark c{}", i % 8)),
            None => (3, "mark v-noise".to_owned()),
        };
        for r in s.ratios {
            let at = (x.place(f64::from(r.block)), y.place(r.ratio.ln()));
            let change = readings::text::change(r.ratio, None);
            let hint = format!("{}, block {}: {change}", s.name, r.block);
            picture.mark(shape, &class, at, &hint);
        }
    }
    Some(format!(
        "<figure><figcaption>{}</figcaption>\n{}{}</figure>\n",
        escaped(&format!(
            "{title} (shaded: within {}{})",
            fraction(matters),
            match paused.is_empty() {
                true => "",
                false => "; marks on the axis: pauses of the client",
            }
        )),
        picture.finish(BOTTOM + 24.0),
        legend(series.iter().map(|s| (s.name, s.colour)))
    ))
}

/// The pauses to mark in a figure of this metric.
fn paused<'a>(analysis: &'a Analysis, place: &Condition, metric: Metric) -> Vec<&'a BlockPauses> {
    let here = |one: &&BlockPauses| metric.is_of_open_loop() && one.condition == *place;
    analysis.pauses.iter().filter(here).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use readings::JournalRow;
    use testing::journals::journal;

    #[test]
    fn a_block_of_any_number_is_drawn_at_once() {
        let mut journal = journal();
        for row in &mut journal.rows {
            if let JournalRow::Trial(trial) = row
                && trial.block == 5
            {
                trial.block = u32::MAX;
            }
        }
        let before = std::time::Instant::now();
        let analysis = verdict::analyse(&journal);
        let drawn = panels(&analysis, &journal.header.subjects, 0.03);
        assert!(drawn.contains("block 4294967295"), "{drawn}");
        assert!(drawn.matches("class=\"tick\"").count() < 100);
        // Going through all numbers takes more.
        assert!(before.elapsed() < std::time::Duration::from_secs(1));
    }
}
