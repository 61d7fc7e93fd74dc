//! The outputs that the tests read.
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use tools::{Tool, ToolLatency, ToolReading, read_output};

pub fn outputs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/outputs")
}

pub fn output(name: &str) -> String {
    let path = outputs().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The tool of an output by its file's name.
pub fn tool_of(name: &str) -> Tool {
    Tool::ALL
        .into_iter()
        .filter(|tool| {
            let rest = name.strip_prefix(tool.name());
            rest.is_some_and(|rest| rest.starts_with(['.', '-']))
        })
        .max_by_key(|tool| tool.name().len())
        .unwrap_or_else(|| panic!("no tool has printed {name}"))
}

/// The names of all outputs that end with a result.
pub fn results() -> &'static [String] {
    static NAMES: LazyLock<Vec<String>> = LazyLock::new(find_results);
    &NAMES
}

fn find_results() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(outputs())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md" && read_output(tool_of(name), &output(name)).is_ok())
        .collect();
    names.sort();
    names
}

pub fn read(name: &str) -> Vec<ToolReading> {
    read_output(tool_of(name), &output(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

pub fn quantile(latency: &ToolLatency, share: f64) -> Option<f64> {
    latency
        .quantiles_us
        .iter()
        .find(|(other, _)| *other == share)
        .map(|(_, us)| *us)
}
