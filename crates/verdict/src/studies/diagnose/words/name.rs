//! How a diagnosis names tools and lines, and writes figures.

use readings::ToolReading;
use readings::text::{grouped, listed, number, once, percent};

/// A reading's name in a sentence: `wrk with 96 connections (lines 180 to 186)`.
pub fn name(reading: &ToolReading) -> String {
    let mut name = reading.tool.name().to_owned();
    if let Some(operation) = &reading.operation {
        name.push_str(&format!(", {operation}"));
    }
    if let Some(connections) = reading.connections {
        let plural = if connections == 1 { "" } else { "s" };
        name.push_str(&format!(
            " with {} connection{plural}",
            grouped(connections)
        ));
    }
    if let Some(lines) = lines(&[reading]) {
        name.push_str(&format!(" ({lines})"));
    }
    name
}

const PLACES: usize = 4;

/// `lines 12 to 20 and 31 to 39`, or `within lines 12 to 90` for many; nothing where no reading has
/// lines. Where there are several texts, each is named: `a.txt lines 1 to 5 and b.txt line 3`.
pub fn lines(readings: &[&ToolReading]) -> Option<String> {
    let mut sources: Vec<&Option<String>> = readings.iter().map(|r| &r.source).collect();
    sources.dedup();
    if sources.iter().all(|source| source.is_none()) {
        return lines_of_one(readings);
    }
    let of_source = |source: &Option<String>| {
        let rows: Vec<&ToolReading> = readings
            .iter()
            .copied()
            .filter(|r| r.source == *source)
            .collect();
        let name = source.as_deref().unwrap_or("");
        Some(format!("{name} {}", lines_of_one(&rows)?).trim().to_owned())
    };
    let each = once(sources.into_iter().filter_map(of_source));
    (!each.is_empty()).then(|| listed(&each))
}

fn lines_of_one(readings: &[&ToolReading]) -> Option<String> {
    let mut ranges: Vec<String> = readings
        .iter()
        .filter(|r| r.lines.0 > 0)
        .map(|r| match r.lines {
            (from, to) if from == to => from.to_string(),
            (from, to) => format!("{from} to {to}"),
        })
        .collect();
    ranges.dedup();
    if ranges.len() > PLACES {
        let first = readings
            .iter()
            .map(|r| r.lines.0)
            .filter(|l| *l > 0)
            .min()?;
        let last = readings.iter().map(|r| r.lines.1).max()?;
        return Some(format!("within lines {first} to {last}"));
    }
    (!ranges.is_empty()).then(|| {
        let single = ranges.len() == 1 && !ranges[0].contains(' ');
        format!("line{} {}", if single { "" } else { "s" }, listed(&ranges))
    })
}

/// A time as people write it: microseconds below 1 ms, seconds from 1 s, no needless zeros.
pub fn time(us: f64) -> String {
    let (value, unit) = match us {
        _ if us >= 1e6 => (us / 1e6, "s"),
        _ if us >= 1e3 => (us / 1e3, "ms"),
        _ => (us, "us"),
    };
    let decimals = if us >= 1e6 { 3 } else { 2 };
    let text = number(value, decimals, false);
    format!("{} {unit}", trimmed(&text))
}

/// A throughput with the digits that tools print, grouped.
pub fn per_s(value: f64) -> String {
    let whole = grouped(value.trunc() as u64);
    let rest = format!("{:.2}", value.fract());
    if let Some(next) = rest.strip_prefix('1') {
        // The fraction was rounded up.
        return format!("{}{}", grouped(value.trunc() as u64 + 1), trimmed(next));
    }
    trimmed(&format!("{whole}{}", &rest[1..])).to_owned()
}

/// A number without needless zeros after its point.
fn trimmed(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

/// A share of a count, which is never shown as nothing.
pub fn part(value: f64) -> String {
    match value {
        _ if value < 0.0005 => "less than 0.1%".to_owned(),
        _ if value >= 0.9995 => "100%".to_owned(),
        _ => percent(value * 100.0, 1, false),
    }
}

/// A share as a whole percentage.
pub fn share(value: f64) -> String {
    format!("{:.0}%", value * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use readings::Tool;

    fn reading() -> ToolReading {
        let mut reading = ToolReading::new(Tool::Ab);
        reading.connections = Some(50);
        reading
    }

    #[test]
    fn figures_are_written_as_tools_write_them() {
        assert_eq!(per_s(2302.67), "2,302.67");
        assert_eq!(per_s(1999.999), "2,000");
        assert_eq!(per_s(56.5), "56.5");
        assert_eq!(per_s(561.0), "561");
        assert_eq!(time(168_580.0), "168.58 ms");
        assert_eq!(time(1_980_000.0), "1.98 s");
        assert_eq!(time(1_095_000.0), "1.095 s");
        assert_eq!(time(98_000.0), "98 ms");
        assert_eq!(time(850.0), "850 us");
        assert_eq!(time(100.0), "100 us");
    }

    #[test]
    fn places_are_named_in_the_right_number() {
        let mut a = reading();
        assert_eq!(name(&a), "ab with 50 connections");
        a.lines = (7, 7);
        assert_eq!(name(&a), "ab with 50 connections (line 7)");
        let mut b = a.clone();
        b.lines = (9, 12);
        assert_eq!(lines(&[&a, &b]).unwrap(), "lines 7 and 9 to 12");
        a.source = Some("a.txt".into());
        assert_eq!(lines(&[&a]).unwrap(), "a.txt line 7");
        b.source = Some("b.txt".into());
        assert_eq!(
            lines(&[&a, &b]).unwrap(),
            "a.txt line 7 and b.txt lines 9 to 12"
        );
    }
}
