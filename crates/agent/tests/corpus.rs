//! Runs the checks of the fuzz targets without a fuzzer: over the corpora, and over randomly
//! mutated copies of them.
#![allow(clippy::unwrap_used)]

#[path = "../../../fuzz/agent_checks.rs"]
mod agent_checks;
#[path = "../../../fuzz/replay.rs"]
mod replay;

const AGENT_WIRE: &[&str] = &["fuzz/corpus/agent_wire"];

#[test]
fn every_line_is_refused_or_arrives_as_it_was_sent() {
    replay::files_hold(AGENT_WIRE, agent_checks::agent_wire);
}

#[test]
fn mutated_lines_do_too() {
    replay::mutated_copies_hold(AGENT_WIRE, agent_checks::agent_wire, 100);
}
