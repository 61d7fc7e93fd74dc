//! Growth, in sentences.

use readings::at_condition as at;
use readings::text::compact::three_digits;
use readings::text::{counted, grouped, number};

use super::{Bend, Growing, Growth, GrowthOver, Slope};
use crate::Metric;
use crate::metric::words::value;

/// How a metric of a subject changes with a factor.
pub fn growth(of: &Growth) -> String {
    let per = per(&of.slope);
    let slope = with_interval(of.metric, &of.slope, per);
    let each = format!("per {} of {}", number_text(per), of.factor);
    let what = of.metric.words();
    let said = match of.growing {
        Growing::Rises => format!("{what} rises by {slope} {each}"),
        Growing::Falls => format!("{what} falls: it changes by {slope} {each}"),
        Growing::NotShown if of.slope.low.is_none() => format!("{what} changes by {slope} {each}"),
        Growing::NotShown => format!("no growth was shown: {what} changes by {slope} {each}"),
    };
    let over = of.over_baseline.as_ref();
    let over = over.and_then(|over| compared(of.metric, over, per));
    format!(
        "{}: {said} ({}){}, over {}{}.{}",
        of.subject,
        ends(of),
        at(&of.condition),
        counted(of.slope.blocks, "block"),
        over.unwrap_or_default(),
        of.bend
            .as_ref()
            .map_or_else(String::new, |bend| bent(of, bend)),
    )
}

/// `5.10MB at 0, 17.4MB at 10,000`.
fn ends(of: &Growth) -> String {
    let ends = [of.levels.first(), of.levels.last()];
    let ends = ends.into_iter().flatten();
    let ends = ends.map(|one| {
        let level = number_text(one.level);
        format!("{} at {level}", value(of.metric, one.value))
    });
    ends.collect::<Vec<_>>().join(", ")
}

/// `; 1.20kB [1.10kB, 1.30kB] more than nginx`.
fn compared(metric: Metric, over: &GrowthOver, per: f64) -> Option<String> {
    let (low, high) = over.difference.interval()?;
    let baseline = &over.baseline;
    let amount = |v: f64| signed(metric, v * per);
    Some(match over.difference.growing() {
        Growing::NotShown => format!(
            "; no difference from {baseline} was shown ({} [{}, {}])",
            amount(over.difference.value),
            amount(low),
            amount(high)
        ),
        Growing::Rises => format!(
            "; {} [{}, {}] more than {baseline}",
            amount(over.difference.value),
            amount(low),
            amount(high)
        ),
        Growing::Falls => format!(
            "; {} [{}, {}] less than {baseline}",
            amount(-over.difference.value),
            amount(-high),
            amount(-low)
        ),
    })
}

fn bent(of: &Growth, bend: &Bend) -> String {
    if !bend.is_bent {
        return String::new();
    }
    let test = match bend.f {
        Some(f) => format!(
            "F = {} with {} and {} degrees of freedom, p {}",
            number(f, 1, false),
            bend.degrees.0,
            bend.degrees.1,
            match bend.p {
                p if p < 0.001 => "< 0.001".to_owned(),
                p => format!("= {}", number(p, 3, false)),
            }
        ),
        None => "without noise".to_owned(),
    };
    format!(
        " Its levels do not lie on a line ({test}): they deviate from it by up to {}, and the slope \
         is the mean over the measured range.",
        value(of.metric, bend.deviation)
    )
}

fn with_interval(metric: Metric, slope: &Slope, per: f64) -> String {
    let amount = |v: f64| signed(metric, v * per);
    match slope.interval() {
        Some((low, high)) => format!(
            "{} [{}, {}]",
            amount(slope.value),
            amount(low),
            amount(high)
        ),
        None => amount(slope.value),
    }
}

/// The power of ten of the factor over which a slope has digits to show.
fn per(slope: &Slope) -> f64 {
    let size = slope.value.abs();
    let powers = [1.0, 1e3, 1e6];
    let shown = powers.into_iter().find(|power| size * power >= 0.1);
    shown.unwrap_or(if size == 0.0 { 1.0 } else { 1e6 })
}

fn signed(metric: Metric, amount: f64) -> String {
    let sign = if amount < 0.0 { "-" } else { "" };
    format!("{sign}{}", value(metric, amount.abs()))
}

fn number_text(of: f64) -> String {
    match of.fract() == 0.0 && (0.0..1e15).contains(&of) {
        true => grouped(of as u64),
        false => three_digits(of),
    }
}
