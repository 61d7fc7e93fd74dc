//! Runs the checks of the fuzz targets without a fuzzer: over the corpora, and over randomly
//! mutated copies of them.

#[path = "../../../../fuzz/replay.rs"]
mod replay;
#[path = "../../../../fuzz/tool_checks.rs"]
mod tool_checks;

const TOOL_OUTPUT: &[&str] = &["crates/tools/tests/outputs", "crates/tools/tests/reports"];

#[test]
fn every_output_is_read_without_a_figure_that_is_none() {
    replay::files_hold(TOOL_OUTPUT, tool_checks::tool_output);
}

#[test]
fn mutated_outputs_are_too() {
    replay::mutated_copies_hold(TOOL_OUTPUT, tool_checks::tool_output, 3);
}
