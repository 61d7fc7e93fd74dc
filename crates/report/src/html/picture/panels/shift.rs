//! The shift function: how much a subject's latency differs, quantile by quantile.

use readings::text::{change, number};
use verdict::{Analysis, Shift, ShiftAt, SubjectRow};

use crate::html::picture::axis::{Scale, ratio_ticks};
use crate::html::picture::panels::{BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH};
use crate::html::picture::svg::{Anchor, Picture, escaped, titled};

/// One picture for each subject and condition.
pub(crate) fn shifts(analysis: &Analysis) -> String {
    let drawn = analysis.shifts.iter().enumerate();
    let drawn = drawn.filter_map(|(number, shift)| {
        let at: Vec<ShiftAt> = told(analysis, shift).copied().collect();
        (!at.is_empty()).then(|| picture(number, shift, &at))
    });
    let drawn: String = drawn.collect();
    if drawn.is_empty() {
        return drawn;
    }
    format!("<div class=\"panels\">{drawn}</div>\n")
}

/// The quantiles as far as the table of figures has those of both sides.
fn told<'a>(analysis: &Analysis, shift: &'a Shift) -> impl Iterator<Item = &'a ShiftAt> {
    let has_p99 = |subject: &str| {
        let mut rows = analysis.table.iter();
        let is_its = |row: &&SubjectRow| row.condition == shift.condition && row.subject == subject;
        rows.find(is_its)
            .is_none_or(|row| row.latency_us_p99.is_some())
    };
    let both = has_p99(&shift.subject) && has_p99(&shift.baseline);
    let all = shift.quantiles.iter();
    all.filter(move |at| both || at.quantile < 0.99)
}

fn picture(index: usize, shift: &Shift, at: &[ShiftAt]) -> String {
    let low = at.iter().map(|q| q.low.ln()).fold(0.0, f64::min);
    let high = at.iter().map(|q| q.high.ln()).fold(0.0, f64::max);
    // An interval far beyond the estimates would shrink them to dots.
    let most = 3.0 * at.iter().map(|q| q.ratio.ln().abs()).fold(0.05, f64::max);
    let (low, high) = (low.max(-most), high.min(most));
    let margin = 0.06 * (high - low).max(0.01);
    let y = Scale::new(low - margin, high + margin, BOTTOM, TOP);
    let x = Scale::new(-0.5, at.len() as f64 - 0.5, LEFT, RIGHT);

    let title = format!("Latency of {} against {}", shift.subject, shift.baseline);
    let title = titled(&title, &shift.condition);
    let described: Vec<String> = at.iter().map(said).collect();
    let id = format!("shift-{index}");
    let mut picture = Picture::new(&id, WIDTH, &title, &described.join("; "));
    picture.rows(&y, &ratio_ticks(low - margin, high + margin), (LEFT, RIGHT));
    picture.line("zero", (LEFT, y.place(0.0)), (RIGHT, y.place(0.0)));
    for (i, q) in at.iter().enumerate() {
        let column = x.place(i as f64);
        let ends = (y.place(q.low.ln()), y.place(q.high.ln()));
        picture.line("whisker v-noise", (column, ends.0), (column, ends.1));
        picture.mark(0, "mark c1", (column, y.place(q.ratio.ln())), &said(q));
        picture.text("tick", (column, BOTTOM + 15.0), Anchor::Middle, &name(q));
    }
    format!(
        "<figure><figcaption>{}</figcaption>\n{}</figure>\n",
        escaped(&title),
        picture.finish(HEIGHT)
    )
}

/// `p99.9`.
fn name(at: &ShiftAt) -> String {
    let percent = at.quantile * 100.0;
    let decimals = usize::from((percent - percent.round()).abs() > 1e-6);
    format!("p{}", number(percent, decimals, false))
}

fn said(at: &ShiftAt) -> String {
    let change = change(at.ratio, Some((at.low, at.high)));
    format!("{}: {change}", name(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use readings::Condition;
    use testing::journals::journal;
    use verdict::analyse;

    #[test]
    fn every_quantile_stands_in_the_picture_and_its_description() {
        let mut analysis = analyse(&journal());
        let at = |quantile, ratio: f64| ShiftAt {
            quantile,
            ratio,
            low: ratio * 0.9,
            high: ratio * 1.1,
            blocks: 6,
        };
        analysis.shifts = vec![Shift {
            condition: Condition::new(),
            subject: "<balance>".into(),
            baseline: "direct".into(),
            quantiles: vec![at(0.5, 1.1), at(0.999, 1.6)],
        }];
        let page = shifts(&analysis);
        assert!(page.contains("p99.9: +60%"), "{page}");
        assert!(page.contains(">p50<"));
        assert!(page.contains("Latency of &lt;balance&gt; against direct"));
        assert!(!page.contains("NaN"));
        // What the table does not resolve is not drawn.
        analysis.shifts[0].condition = analysis.table[0].condition.clone();
        analysis.shifts[0].subject = "balance".to_owned();
        for row in &mut analysis.table {
            row.latency_us_p99 = None;
        }
        let page = shifts(&analysis);
        assert!(page.contains(">p50<") && !page.contains("p99.9"), "{page}");
        analysis.shifts.clear();
        assert_eq!(shifts(&analysis), "");
    }
}
