//! Growth, in sentences.

use readings::at_condition as at;
use readings::text::compact::three_digits;
use readings::text::{counted, grouped, number};

use super::{Bend, Exponent, Growing, Growth, GrowthOver, Shape, Slope};
use crate::Metric;
use crate::metric::words::value;
use crate::summary::ranking::words::short;

/// How a metric of a subject changes with a factor.
pub fn growth(of: &Growth) -> String {
    let per = per(&of.slope).max(per_of_range(of));
    let slope = with_interval(of.metric, &of.slope, per);
    let each = each(per, &of.factor);
    let what = of.metric.words();
    let said = match of.growing {
        _ if of.shape == Shape::Constant => {
            format!("{what} is constant: it changes by {slope} {each}")
        }
        Growing::Rises => format!("{what} rises by {slope} {each}"),
        Growing::Falls => format!("{what} falls: it changes by {slope} {each}"),
        Growing::NotShown if of.slope.low.is_none() => format!("{what} changes by {slope} {each}"),
        Growing::NotShown => format!("no growth was shown: {what} changes by {slope} {each}"),
    };
    let over = of.over_baseline.as_ref();
    let over = over.and_then(|over| compared(of.metric, over, per));
    format!(
        "{}: {said} ({}){}, over {}{}.{}{}",
        of.subject,
        ends(of),
        at(&of.condition),
        counted(of.slope.blocks, "block"),
        over.unwrap_or_default(),
        of.bend
            .as_ref()
            .map_or_else(String::new, |bend| bent(of, bend)),
        of.exponent
            .filter(|_| of.shape != Shape::Constant)
            .map_or_else(String::new, |exponent| shaped(of.shape, &exponent)),
    )
}

/// ` It grows linearly: exponent 1.02 [0.98, 1.05].`
fn shaped(shape: Shape, exponent: &Exponent) -> String {
    let said = match shape {
        Shape::Linear => "It grows linearly",
        Shape::Superlinear => "It grows superlinearly",
        Shape::Sublinear => "It grows sublinearly",
        Shape::Constant | Shape::Falls | Shape::Unsettled => "How fast it grows is not settled",
    };
    format!(" {said}: exponent {}.", exponent_text(exponent))
}

fn exponent_text(of: &Exponent) -> String {
    let digits = |v: f64| number(v, 2, false);
    format!(
        "{} [{}, {}]",
        digits(of.value),
        digits(of.low),
        digits(of.high)
    )
}

/// The heads of a table of growths over a factor: those of [`row`].
pub fn heads(of: &Growth) -> [String; 6] {
    let at = |level: Option<f64>| format!("at {}", number_text(level.unwrap_or_default()));
    [
        "metric".to_owned(),
        "subject".to_owned(),
        format!("over {}", of.factor),
        at(of.levels.first().map(|one| one.level)),
        at(of.levels.last().map(|one| one.level)),
        each(per_of_range(of), &of.factor),
    ]
}

/// A growth as a row of a table: its metric, its subject, what it is called, the values at the lowest and
/// the highest level, the slope.
pub fn row(of: &Growth) -> [String; 6] {
    let at = |one: Option<&super::GrowthLevel>| {
        one.map_or_else(String::new, |one| {
            without_request(value(of.metric, one.value))
        })
    };
    let metric = match of.metric {
        Metric::ServerCpuUsPerRequest => "CPU per request",
        // Others are of the first server.
        Metric::ServerRssBytesMax => "memory of all",
        other => short(other),
    };
    let slope = with_interval(of.metric, &of.slope, per_of_range(of));
    let called = match of.shape {
        Shape::Constant => "constant",
        Shape::Linear => "linear",
        Shape::Superlinear => "superlinear",
        Shape::Sublinear => "sublinear",
        Shape::Falls => "falls",
        Shape::Unsettled if of.growing == Growing::Rises => "rises",
        Shape::Unsettled => "not shown",
    };
    [
        metric.to_owned(),
        of.subject.clone(),
        called.to_owned(),
        at(of.levels.first()),
        at(of.levels.last()),
        without_request(slope),
    ]
}

/// The power of 1,000 that the levels span: a table has one for all its slopes.
fn per_of_range(of: &Growth) -> f64 {
    let ends = of.levels.first().zip(of.levels.last());
    let range = ends.map_or(1.0, |(first, last)| last.level - first.level);
    let spanned = [1e6, 1e3].into_iter().find(|power| range >= 0.9 * power);
    spanned.unwrap_or(1.0)
}

/// What stands in a row that names its metric needs no unit per request.
fn without_request(text: String) -> String {
    text.replace(" us/request", "us").replace("/request", "")
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
    let value = over.difference.value;
    let above = between([value, low, high].map(amount));
    Some(match Growing::of(&over.difference) {
        Growing::NotShown => format!("; no difference from {baseline} was shown ({above})"),
        Growing::Rises => format!("; {above} more than {baseline}"),
        Growing::Falls => {
            let below = between([-value, -high, -low].map(amount));
            format!("; {below} less than {baseline}")
        }
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

/// A value and its interval, a unit per request once: `0.48 [0.40, 0.56] us/request`.
fn between([value, low, high]: [String; 3]) -> String {
    let unit = value.find(" us/").map_or("", |at| &value[at..]);
    let bare = |text: &str| text.strip_suffix(unit).unwrap_or(text).to_owned();
    format!("{} [{}, {}]{unit}", bare(&value), bare(&low), bare(&high))
}

fn with_interval(metric: Metric, slope: &Slope, per: f64) -> String {
    let amount = |v: f64| signed(metric, v * per);
    match slope.interval() {
        Some((low, high)) => between([slope.value, low, high].map(amount)),
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

/// `per route`, `per 1,000 routes`; `per unit of size` where the factor has no plural.
fn each(per: f64, factor: &str) -> String {
    let one = match factor {
        name if name.ends_with("sses") => name.strip_suffix("es"),
        name if name.ends_with("ss") => None,
        name => name.strip_suffix('s'),
    };
    match one {
        Some(one) if per == 1.0 => format!("per {one}"),
        Some(_) => format!("per {} {factor}", number_text(per)),
        None if per == 1.0 => format!("per unit of {factor}"),
        None => format!("per {} units of {factor}", number_text(per)),
    }
}

fn number_text(of: f64) -> String {
    match of.fract() == 0.0 && (0.0..1e15).contains(&of) {
        true => grouped(of as u64),
        false => three_digits(of),
    }
}
