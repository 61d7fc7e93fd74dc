//! What wrk2 prints beyond wrk: calibration, and HdrHistogram's spectrum with `--latency`.
//!
//! wrk2 counts a latency from when a request was due. With `--u_latency` a second distribution
//! follows that counts from when it was sent; it is not read, as it hides the client's own delay.
//! The spectrum's mean, deviation and maximum are in milliseconds with more digits than the table
//! of threads has. wrk2 does not print the rate that it was asked for: that is on its command line.

use crate::reading::Figures;
use crate::text::lines::Line;
use crate::text::units;
use crate::{Tool, ToolReading};

pub(crate) fn is_calibration(line: &Line) -> bool {
    line.text.starts_with("Thread calibration:")
        || (line.text.starts_with("Initialised ") && line.text.contains("thread"))
}

/// A line of the detailed spectrum.
pub(crate) fn is_spectrum(line: &Line) -> bool {
    let text = line.text.as_str();
    text.starts_with("Detailed Percentile spectrum")
        || text.starts_with("#[")
        || text.starts_with("----------")
        || is_row(&line.words())
}

fn is_row(words: &[&str]) -> bool {
    match words {
        ["Value", "Percentile", "TotalCount", _] => true,
        [value, share, count, rest] => {
            let numbers = [value, share, count];
            numbers.iter().all(|word| units::number(word).is_some())
                && (*rest == "inf" || units::number(rest).is_some())
        }
        _ => false,
    }
}

/// What only wrk2 says.
#[derive(Default)]
pub(crate) struct Extra {
    is_wrk2: bool,
    uncorrected: bool,
    mean_us: Option<f64>,
    stdev_us: Option<f64>,
    max_us: Option<f64>,
}

impl Extra {
    /// Reads a line of wrk2's own; false for all others.
    pub fn takes(&mut self, line: &Line, figures: &mut Figures) -> bool {
        if is_calibration(line) {
            self.is_wrk2 = true;
            return true;
        }
        if !is_spectrum(line) {
            return false;
        }
        if let Some(rest) = line.text.strip_prefix("#[")
            && !self.uncorrected
        {
            for part in rest.trim_end_matches(']').split(',') {
                let Some((name, value)) = part.split_once('=') else {
                    continue;
                };
                let place = match name.trim() {
                    "Mean" => &mut self.mean_us,
                    "StdDeviation" => &mut self.stdev_us,
                    "Max" => &mut self.max_us,
                    _ => continue,
                };
                *place = figures.want(line, "`#[Mean = 1.234, ...]`", units::ms(value.trim()));
            }
        }
        true
    }

    /// Notes which distribution a heading begins.
    pub fn begins(&mut self, line: &Line) {
        let text = line.text.as_str();
        if text.contains("HdrHistogram") {
            self.is_wrk2 = true;
            self.uncorrected = text.contains("Uncorr");
        }
    }

    pub fn is_uncorrected(&self) -> bool {
        self.uncorrected
    }

    pub fn complete(self, reading: &mut ToolReading) {
        if !self.is_wrk2 {
            return;
        }
        reading.tool = Tool::Wrk2;
        let latency = &mut reading.latency;
        latency.mean_us = self.mean_us.or(latency.mean_us);
        latency.stdev_us = self.stdev_us.or(latency.stdev_us);
        latency.max_us = self.max_us.or(latency.max_us);
    }
}
