//! Checks what an agent reports of a load against its order.

use std::time::Duration;

use load::{Row, Segment, Stop};
use readings::{LoadReading, LoadRow};

use crate::protocol::wire::{Answer, LoadOrder, Loaded};

/// A share of the length of a row; by more than that, each row begins after the one before.
const ROW_MARGIN: f64 = 0.5;

/// What was ordered, and what was reported so far.
pub(crate) struct LoadCheck {
    segments: Vec<Segment>,
    readings: usize,
    targets: usize,
    /// Requests of the first target, where its expectations are to be reported.
    expectations: usize,
    threads: usize,
    /// With `profile`, the agent makes no load if it cannot record; then there is no reading.
    may_be_left_out: bool,
    /// Length of a row, where these are to be reported, s.
    row_s: Option<f64>,
    /// The longest time that the load can take, s.
    longest_s: f64,
    /// Segments whose window has opened, and closed.
    opened: usize,
    closed: usize,
    /// Segment and start of the last row.
    last_row: Option<(usize, f64)>,
}

impl LoadCheck {
    /// For a load that takes no longer than `longest`.
    pub(crate) fn of(order: &LoadOrder, longest: Duration) -> Self {
        let job = &order.job;
        let first = job.targets.first().filter(|_| order.report_expectations);
        Self {
            segments: job.segments.clone(),
            readings: job.readings(),
            targets: job.targets.len(),
            expectations: first.map_or(0, |target| target.requests.len()),
            threads: job.threads,
            may_be_left_out: order.profile.is_some(),
            row_s: job
                .rows
                .filter(|_| order.report_rows)
                .map(|row| row.as_secs_f64()),
            longest_s: longest.as_secs_f64(),
            opened: 0,
            closed: 0,
            last_row: None,
        }
    }

    /// Takes note of an answer.
    ///
    /// # Errors
    /// When the load cannot have it.
    pub(crate) fn take(&mut self, answer: &Answer) -> Result<(), String> {
        match answer {
            Answer::Progress { segment, .. } => self.segment(*segment).map(drop),
            Answer::WindowOpens { segment, .. } => {
                self.segment(*segment)?;
                is_next(&mut self.opened, *segment, "opens")
            }
            Answer::WindowCloses { segment } => {
                self.segment(*segment)?;
                is_next(&mut self.closed, *segment, "closes")
            }
            Answer::Row(row) => self.row(row),
            Answer::Loaded(loaded) => self.loaded(loaded),
            _ => Ok(()),
        }
    }

    fn segment(&self, number: usize) -> Result<&Segment, String> {
        let count = self.segments.len();
        let found = self.segments.get(number);
        found.ok_or_else(|| {
            format!(
                "it reports segment {number}, but the last of its load is {}",
                count.max(1) - 1
            )
        })
    }

    fn row(&mut self, row: &Row) -> Result<(), String> {
        let Some(row_s) = self.row_s else {
            return Err("it reports rows, which were not asked for".to_owned());
        };
        let segment = self.segment(row.segment)?;
        if segment.reading != Some(row.reading) {
            let expected = segment
                .reading
                .map_or("no row".to_owned(), |n| n.to_string());
            return Err(format!(
                "it reports a row of reading {}; expected {expected}",
                row.reading
            ));
        }
        let window_s = match segment.stop {
            Stop::After(window) => window.as_secs_f64(),
            Stop::Requests(_) | Stop::EachConnection(_) => self.longest_s,
        };
        self.times_of_row(&row.row)?;
        let start_s = row.row.start_s;
        if start_s > window_s + row_s * ROW_MARGIN {
            return Err(format!(
                "it reports a row at {start_s} s, but the window ends after {window_s} s"
            ));
        }
        if let Some((segment, last_s)) = self.last_row
            && (row.segment < segment
                || row.segment == segment && start_s < last_s + row_s * ROW_MARGIN)
        {
            return Err(format!(
                "it reports a row at {start_s} s of segment {}, after one at {last_s} s of segment \
                 {segment}",
                row.segment
            ));
        }
        self.last_row = Some((row.segment, start_s));
        Ok(())
    }

    fn loaded(&self, loaded: &Loaded) -> Result<(), String> {
        let count = loaded.readings.len();
        if count != self.readings && !(self.may_be_left_out && count == 0) {
            return Err(format!(
                "it sent {count} readings of its load; expected {}",
                self.readings
            ));
        }
        let count = loaded.expectations.len();
        if count != self.expectations {
            return Err(format!(
                "it sent rules for the answers to {count} requests; expected {}",
                self.expectations
            ));
        }
        if let Some(target) = loaded.varying.iter().find(|one| **one >= self.targets) {
            return Err(format!(
                "it reports varying answers of target {target}, but there are only {} targets",
                self.targets
            ));
        }
        for (what, ns) in [
            ("late_ns", loaded.late_ns),
            ("ready_ns", loaded.ready_ns),
            ("drain_ns", loaded.drain_ns),
        ] {
            self.time(what, ns as f64 / 1e9)?;
        }
        loaded.readings.iter().try_for_each(|one| self.reading(one))
    }

    fn reading(&self, reading: &LoadReading) -> Result<(), String> {
        self.at_most("threads", reading.client.threads.len(), self.threads)?;
        self.at_most("slices", reading.slices.len(), self.segments.len())?;
        self.at_most("rows", reading.rows.len(), load::ROWS_MAX)?;
        self.time("duration_s", reading.duration_s)?;
        for slice in &reading.slices {
            self.time("slices.start_s", slice.start_s)?;
            self.time("slices.duration_s", slice.duration_s)?;
        }
        reading
            .rows
            .iter()
            .try_for_each(|row| self.times_of_row(row))
    }

    fn times_of_row(&self, row: &LoadRow) -> Result<(), String> {
        self.time("start_s", row.start_s)?;
        self.time("duration_s", row.duration_s)
    }

    fn time(&self, what: &str, time_s: f64) -> Result<(), String> {
        let longest_s = self.longest_s;
        match (0.0..=longest_s).contains(&time_s) {
            true => Ok(()),
            false => Err(format!(
                "its load has `{what}` of {time_s:e} s; expected 0 to {longest_s:.0} s"
            )),
        }
    }

    fn at_most(&self, what: &str, count: usize, most: usize) -> Result<(), String> {
        match count <= most {
            true => Ok(()),
            false => Err(format!(
                "its load has {count} {what}; expected at most {most}"
            )),
        }
    }
}

/// Counts a segment whose window opens or closes.
fn is_next(count: &mut usize, segment: usize, does: &str) -> Result<(), String> {
    if segment < *count {
        return Err(format!(
            "it reports again that the window of segment {segment} {does}"
        ));
    }
    *count = segment + 1;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::wire::{CallGraph, ProfileOrder};
    use readings::Histogram;

    const SECOND: Duration = Duration::from_secs(1);

    fn order() -> LoadOrder {
        let address: std::net::SocketAddr = "192.0.2.1:80".parse().unwrap();
        let target = load::Target::new(address, Vec::new(), load::Expect::default());
        let stop = Stop::After(2 * SECOND);
        let mut job = load::Job::to(target).segment(Segment::closed(stop));
        job.rows = Some(SECOND);
        LoadOrder {
            report_rows: true,
            ..LoadOrder::of(job)
        }
    }

    fn check() -> LoadCheck {
        LoadCheck::of(&order(), 20 * SECOND)
    }

    fn row(segment: usize, start_s: f64) -> Answer {
        let row = LoadRow {
            start_s,
            duration_s: 1.0,
            ..LoadRow::default()
        };
        Answer::Row(Box::new(Row {
            segment,
            reading: 0,
            row,
            response: Histogram::new(),
        }))
    }

    fn loaded(readings: Vec<LoadReading>) -> Answer {
        Answer::Loaded(Box::new(Loaded {
            readings,
            ..Loaded::default()
        }))
    }

    #[test]
    fn rows_come_once_each_and_in_order() {
        let mut check = check();
        for start_s in [0.0, 1.0, 2.0] {
            check.take(&row(0, start_s)).unwrap();
        }
        for (segment, start_s) in [
            (0, 2.0),
            (0, 0.0),
            (0, 3.0),
            (0, 1e300),
            (0, -1.0),
            (1, 0.0),
        ] {
            assert!(
                check.take(&row(segment, start_s)).is_err(),
                "{segment} {start_s}"
            );
        }
        let mut unasked = LoadCheck::of(&LoadOrder::of(order().job), SECOND);
        assert!(unasked.take(&row(0, 0.0)).is_err());
    }

    #[test]
    fn a_window_opens_and_closes_once() {
        let mut check = check();
        let opens = Answer::WindowOpens {
            segment: 0,
            at_ns: 5,
        };
        let closes = Answer::WindowCloses { segment: 0 };
        for answer in [opens, closes] {
            check.take(&answer).unwrap();
            assert!(check.take(&answer).is_err());
        }
        let progress = |segment| Answer::Progress {
            segment,
            requests: 1,
            errors: 0,
        };
        assert!(check.take(&progress(0)).is_ok());
        assert!(check.take(&progress(1)).is_err());
    }

    #[test]
    fn there_are_as_many_readings_as_ordered() {
        let one = LoadReading::default();
        let error = |readings| check().take(&loaded(readings)).unwrap_err();
        assert_eq!(error(vec![]), "it sent 0 readings of its load; expected 1");
        let two = vec![one.clone(), one.clone()];
        assert_eq!(error(two), "it sent 2 readings of its load; expected 1");
        assert!(check().take(&loaded(vec![one])).is_ok());
        let mut profiled = order();
        profiled.profile = Some(ProfileOrder {
            servers: Vec::new(),
            frequency_hz: 99,
            call_graph: CallGraph::Fp,
        });
        let mut check = LoadCheck::of(&profiled, SECOND);
        assert!(check.take(&loaded(vec![])).is_ok());
    }

    #[test]
    fn times_are_those_of_a_load() {
        let of = |duration_s| LoadReading {
            duration_s,
            ..LoadReading::default()
        };
        for duration_s in [-1.0, 21.0, 1e308, f64::NAN] {
            let error = check().take(&loaded(vec![of(duration_s)])).unwrap_err();
            assert!(error.contains("`duration_s`"), "{error}");
        }
        assert!(check().take(&loaded(vec![of(2.0)])).is_ok());
    }
}
