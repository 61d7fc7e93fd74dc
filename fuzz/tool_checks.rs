//! What has to hold for any text in which outputs of load generators are looked for.

use tools::{Tool, read_output, read_text};

/// Any text: figures are numbers, and the lines of every finding exist in the text.
pub fn tool_output(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let lines = text.lines().count().max(1);
    let found = read_text(&text);
    for reading in &found.readings {
        let (first, last) = reading.lines;
        assert!(1 <= first && first <= last && last <= lines, "{reading:?}");
        let figures = [
            reading.duration_s,
            reading.requests_per_s,
            reading.latency.mean_us,
            reading.latency.max_us,
        ];
        for figure in figures.into_iter().flatten() {
            assert!(figure.is_finite(), "{reading:?}");
        }
    }
    for problem in found.problems {
        assert!(!problem.to_string().is_empty());
    }
    for tool in Tool::ALL {
        if let Err(error) = read_output(tool, &text) {
            assert!(!error.to_string().is_empty());
        }
    }
}
