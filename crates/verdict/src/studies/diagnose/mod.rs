//! What the figures of other load generators say, and what they do not.
//!
//! [`diagnose`] looks at each reading on its own and at readings of the same target side by side.
//! It measures nothing: every finding follows from figures that the tools printed, and has them.
//!
//! Sources: J. D. C. Little, A proof for the queuing formula L = λW, Operations Research 9 (1961);
//! RFC 6298 for the steps in which a SYN is sent again (1 s, then twice as long each time, so that
//! a connection opens 1, 3 or 7 s late).

pub mod words;

mod between;
mod finding;
mod known;
mod little;
mod single;
mod syn;
mod target;

use readings::{FigureTable, ProcessLine, ToolReading};

pub use known::{Fact, State, state};

pub use finding::{
    Concurrency, CountedFailures, Diagnosis, Figure, Finding, FindingKind, LateConnects,
    LevelFigures, ShownBy, Steadiness,
};

/// What it means that a text lists a load generator with its share of a machine's CPU: it ran on the
/// machine whose processes were looked at. `source` names the text, where there are several.
pub fn process_listed(
    readings: &[ToolReading],
    process: &ProcessLine,
    source: Option<&str>,
) -> Finding {
    let ours = |i: &usize| {
        let r = &readings[*i];
        r.tool == process.tool && r.source.as_deref() == source
    };
    Finding::new(
        (0..readings.len()).filter(ours).collect(),
        Diagnosis::ProcessListed {
            process: process.clone(),
            source: source.map(str::to_owned),
        },
    )
}

/// What a table says that compares subjects by one figure each: the second figure column against the
/// first, the third against the first, and so on. `source` names the text, where there are several.
pub fn table_compared(table: &FigureTable, source: Option<&str>) -> Vec<Finding> {
    let compared = |column: usize| {
        let ratios: Vec<f64> = table
            .rows
            .iter()
            .filter_map(|row| Some(row.get(column)? / row.get(1)?))
            .collect();
        Finding::new(
            Vec::new(),
            Diagnosis::TableOnce {
                lines: table.lines,
                source: source.map(str::to_owned),
                first: table.head[1].clone(),
                column: table.head[column].clone(),
                ratios,
            },
        )
    };
    (2..table.head.len()).map(compared).collect()
}

/// What readings say, ordered by the first reading that a finding is about. A finding that needs a fact
/// that nothing says is a possibility, or left out ([`FindingKind::needs`]).
pub fn diagnose(readings: &[ToolReading]) -> Vec<Finding> {
    let between = between::findings(readings);
    let saturated = |i: usize| {
        // What is saturated waits in a queue, however even its latency looks.
        between
            .iter()
            .any(|f| f.kind() == FindingKind::Saturated && f.readings.contains(&i))
    };
    let mut found: Vec<Finding> = Vec::new();
    for i in 0..readings.len() {
        found.extend(little::findings(readings, i, saturated(i)));
        found.extend(syn::finding(readings, i));
        found.extend(single::findings(readings, i));
    }
    found.extend(single::same_machine(readings));
    found.extend(single::corrected(readings));
    found.extend(between);
    let mut found: Vec<Finding> = found
        .into_iter()
        .filter_map(|finding| known::checked(finding, readings))
        .collect();
    // Stable: findings on the same readings stay in the order above.
    found.sort_by_key(|f| f.readings.first().copied());
    found
}

#[cfg(test)]
mod tests;
