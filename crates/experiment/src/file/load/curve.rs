//! `load.curve` and `load.bounds`: latency against offered rate.

use std::time::Duration;

use crate::spec::{CurveSpec, Experiment};
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::{Node, Tree};
use config::units::{self, shown};
use readings::RATE_MAX_PER_S;

/// More points would take more time than anyone has.
const POINTS_MAX: usize = 64;
const BOUNDS_MAX: usize = 16;

const FORM: &str = "rates such as 2000 or \"2000/s\", and shares of each subject's own capacity such \
                    as \"50%\"";

/// Reads the curve of `[load]`, where one is asked for.
pub(crate) fn curve(reader: &mut Reader, load: &Section<'_>) -> Option<CurveSpec> {
    let bounds = load.entry("bounds");
    let wanted = load.entry("curve").map(|(entry, path)| (&entry.node, path));
    let mut spec = match wanted {
        None => None,
        Some((node, path)) => match &node.tree {
            Tree::Boolean(false) => None,
            Tree::Boolean(true) => Some(CurveSpec::auto()),
            Tree::Array(items) => Some(points(reader, node, items, &path)?),
            _ => {
                reader.expected(node, &path, "true, false or a list of rates and shares");
                return None;
            }
        },
    };
    if let Some((entry, path)) = bounds {
        let Some(spec) = &mut spec else {
            reader.advise(
                entry.place,
                format!("`{path}` without a curve"),
                "bounds of the 99th percentile are for a curve",
                "add curve = true to [load], or remove this key",
            );
            return None;
        };
        if let Some(bounds) = read_bounds(reader, &entry.node, &path) {
            spec.bounds = bounds;
        }
    }
    spec
}

fn points(reader: &mut Reader, node: &Node, items: &[Node], path: &str) -> Option<CurveSpec> {
    let (mut rates, mut shares) = (Vec::new(), Vec::new());
    if items.is_empty() || items.len() > POINTS_MAX {
        reader.advise(
            node.place,
            format!("`{path}` has {} points", items.len()),
            format!("expected 1 to {POINTS_MAX}"),
            "write curve = true to have the rates chosen from the first block",
        );
        return None;
    }
    for item in items {
        match &item.tree {
            Tree::Integer(number) => rates.push((*number as f64, item)),
            Tree::Float(number) => rates.push((*number, item)),
            Tree::Text(text) if text.trim_end().ends_with('%') => {
                let share = reader.quantity(item, path, "share", units::SHARE_FORM, units::share);
                shares.push((share?, item));
            }
            Tree::Text(text) => match units::rate(text) {
                Ok(per_s) => rates.push((per_s, item)),
                Err(reason) => {
                    reader.advise(
                        item.place,
                        format!("`{path}`: `{}` is neither a rate nor a share", shown(text)),
                        reason,
                        format!("expected {FORM}"),
                    );
                    return None;
                }
            },
            _ => {
                reader.expected(item, path, "a rate or a share");
                return None;
            }
        }
    }
    let rates = ascending(
        reader,
        rates,
        path,
        (0.01, RATE_MAX_PER_S),
        &format!("0.01 to {RATE_MAX_PER_S} per second"),
    )?;
    let shares = ascending(reader, shares, path, (0.001, 1.5), "0.1% to 150%")?;
    Some(CurveSpec {
        rates_per_s: Some(rates),
        shares,
        ..CurveSpec::auto()
    })
}

/// The values in ascending order, each once and in its range.
fn ascending(
    reader: &mut Reader,
    values: Vec<(f64, &Node)>,
    path: &str,
    (low, high): (f64, f64),
    range: &str,
) -> Option<Vec<f64>> {
    let mut sorted: Vec<f64> = Vec::new();
    for (value, node) in values {
        if !(low..=high).contains(&value) {
            reader.report(Problem::at(
                node.place,
                format!("`{path}` is out of range: {value}"),
                format!("expected {range}"),
            ));
            return None;
        }
        if sorted.contains(&value) {
            reader.report(Problem::at(
                node.place,
                format!("`{path}` lists a point twice"),
                "the second",
            ));
            return None;
        }
        sorted.push(value);
    }
    sorted.sort_by(f64::total_cmp);
    Some(sorted)
}

fn read_bounds(reader: &mut Reader, node: &Node, path: &str) -> Option<Vec<Duration>> {
    let Tree::Array(items) = &node.tree else {
        reader.expected(
            node,
            path,
            "a list of durations, such as [\"1ms\", \"5ms\"]",
        );
        return None;
    };
    if items.len() > BOUNDS_MAX {
        reader.report(Problem::at(
            node.place,
            format!("`{path}` has {} bounds", items.len()),
            format!("expected at most {BOUNDS_MAX}"),
        ));
        return None;
    }
    let range = Duration::from_micros(1)..=Duration::from_secs(3600);
    let bounds = items
        .iter()
        .map(|item| reader.duration(item, path, range.clone()));
    let mut bounds: Vec<Duration> = bounds.collect::<Option<_>>()?;
    bounds.sort_unstable();
    bounds.dedup();
    Some(bounds)
}

/// A curve needs the built-in engine and servers to which nothing happens.
pub(crate) fn check(reader: &mut Reader, top: &Section<'_>, experiment: &Experiment) {
    if experiment.load.curve.is_none() {
        return;
    }
    let place = top.place_of(&["load", "curve"]).unwrap_or_default();
    if !experiment.events.is_empty() {
        reader.advise(
            place,
            "`load.curve` cannot be combined with `events`",
            "an event would change the latency at some rates only",
            "remove one of the two",
        );
    }
    let conditions = experiment.conditions();
    let outside = conditions.iter().find_map(|condition| {
        let subjects = experiment.under(condition).subjects;
        let found = subjects.into_iter().find(|one| !one.driver.is_engine())?;
        Some((found.name, found.driver.name))
    });
    if let Some((subject, driver)) = outside {
        reader.advise(
            place,
            format!(
                "`load.curve` needs the built-in engine, but the subject `{subject}` has the \
                     driver `{driver}`"
            ),
            "an outside driver cannot alternate between subjects at given rates",
            "remove `driver` or `curve`",
        );
    }
}
