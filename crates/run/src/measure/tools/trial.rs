//! The runs of one subject's outside driver, and their reading.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use readings::{
    ClientReading, Condition, DriverReading, DriverRun, ErrorCounts, LoadReading, Outcome, Pacing,
    Reading, Slice, SystemMetrics, ThreadReading, at_condition,
};

use super::output::{output_tail, shell, shortened};
use crate::measure::schedule::ANSWERS_PER_RUN_MIN;
use crate::measure::slices::server_reading;
use crate::measure::upstream_connections::may_be_opened;
use crate::testbed::ReadySubject;
use crate::testbed::copies::of_path;
use agent::wire::{DriveEnd, Driven};
use experiment::driver::{Driver, read_driver_output};
use experiment::{LoadSpec, ResolvedCondition};

/// Time beyond the requested duration and the load's timeout after which a driver is killed.
const MARGIN: Duration = Duration::from_secs(2);
/// Factor by which a driver that counts requests may be slower than in its warm-up.
const SLOWER: u32 = 4;
/// Thread utilisation above which the client may be the bottleneck.
const SATURATED: f64 = 0.8;

pub(super) struct ToolTrial<'a> {
    pub(super) ready: &'a ReadySubject,
    pub(super) driver: &'a Driver,
    pub(super) programs: BTreeMap<String, PathBuf>,
    pub(super) threads: u32,
    /// Requests per second of the latest run.
    pub(super) rate_per_s: f64,
    pub(super) runs: Vec<DriverRun>,
    pub(super) slices: Vec<(Pacing, Slice)>,
    pub(super) bytes_read: u64,
    pub(super) closed_measured: agent::Measured,
    pub(super) accepted: Option<u64>,
    /// Samples during the closed loop's runs, and the open loop's.
    pub(super) probed: [Option<SystemMetrics>; 2],
    pub(super) files: BTreeMap<String, String>,
    pub(super) failure: Option<String>,
}

pub(super) struct ToolRun<'a> {
    pub(super) name: &'a str,
    pub(super) pacing: Pacing,
    pub(super) duration_s: u64,
    pub(super) warmup_s: u64,
    pub(super) requests: u64,
    pub(super) limit: Duration,
}

impl<'a> ToolTrial<'a> {
    pub(super) fn new(
        ready: &'a ReadySubject,
        driver: &'a Driver,
        programs: BTreeMap<String, PathBuf>,
        load: &LoadSpec,
        cpus: u32,
    ) -> Self {
        Self {
            ready,
            driver,
            programs,
            threads: driver.threads(load, cpus),
            rate_per_s: 0.0,
            runs: Vec::new(),
            slices: Vec::new(),
            bytes_read: 0,
            closed_measured: agent::Measured::default(),
            accepted: Some(0),
            probed: [None, None],
            files: BTreeMap::new(),
            failure: None,
        }
    }

    pub(super) fn limit(&self, load: &LoadSpec, seconds: u64) -> Duration {
        let asked = Duration::from_secs(seconds);
        let asked = if self.driver.counts_requests() {
            asked * SLOWER
        } else {
            asked
        };
        asked + load.timeout + MARGIN
    }

    /// The requests that fill `seconds` at the latest rate.
    pub(super) fn requests_in(&self, seconds: u64, load: &LoadSpec) -> u64 {
        let count = (self.rate_per_s * seconds as f64).round() as u64;
        count.max(u64::from(load.connections))
    }

    /// Requests that are under way at once.
    fn at_once(&self, load: &LoadSpec) -> f64 {
        f64::from(load.connections) * f64::from(self.ready.subject.streams.unwrap_or(1))
    }

    /// The mean response time in a run, s: at least its length if it has no answer.
    pub(super) fn answer_s(&self, run: &DriverRun, load: &LoadSpec) -> f64 {
        match run.requests {
            0 => run.duration_s,
            requests => self.at_once(load) * run.duration_s / requests as f64,
        }
    }

    /// A warning if the start and the end of closed-loop runs distort their throughput. A driver
    /// that warms up by itself has connected before it begins to count.
    pub(super) fn few_answers(
        &self,
        load: &LoadSpec,
        condition: &Condition,
        has_warm_up: bool,
    ) -> Option<String> {
        let (planned, driver) = (&self.ready.planned, &self.driver);
        let runs = || self.runs.iter().filter(|run| run.pacing == Pacing::Closed);
        let count = runs().count();
        if planned.baseline_copy || self.failure.is_some() || driver.warms_up() || count == 0 {
            return None;
        }
        let requests: u64 = runs().map(|run| run.requests).sum();
        let answers_each = requests as f64 / count as f64 / self.at_once(load);
        let advice = match has_warm_up {
            true => "",
            false => " and a `design.warmup`, which shows how long the runs have to be",
        };
        let per = match self.ready.subject.streams {
            Some(_) => "per stream",
            None => "per connection",
        };
        // The text has no measured number, so that it is shown once.
        (answers_each < ANSWERS_PER_RUN_MIN).then(|| {
            format!(
                "`{}`{}: a run of `{}` has fewer than {ANSWERS_PER_RUN_MIN} answers {per}, so \
                 the throughput is underestimated: connecting, and the requests unanswered at the \
                 end, are part of the run. Set a longer `design.window`{advice}, and no shorter \
                 `design.slice`",
                planned.subject,
                at_condition(condition),
                driver.name
            )
        })
    }

    pub(super) fn add_run(&mut self, run: DriverRun, driven: &Driven) {
        let start_s = self.slices.iter().map(|(_, s)| s.duration_s).sum();
        self.slices.push((
            run.pacing,
            Slice {
                start_s,
                duration_s: run.duration_s,
                requests: good(&run),
                errors: run.errors.total(),
                client_cpu_s: run.cpu_s,
                ..Slice::default()
            },
        ));
        if let Some(mut seen) = driven.measured.metrics.clone() {
            seen.requests = good(&run);
            let of_loop = usize::from(run.pacing != Pacing::Closed);
            self.probed[of_loop].get_or_insert_default().add(&seen);
        }
        if run.pacing == Pacing::Closed {
            let (sum, one) = (&mut self.closed_measured, &driven.measured);
            for (server, cpu_s) in &one.cpu_s {
                *sum.cpu_s.entry(server.clone()).or_insert(0.0) += cpu_s;
            }
            sum.cpu_in_ticks.extend(one.cpu_in_ticks.iter().cloned());
            self.accepted = self
                .accepted
                .zip(driven.measured.accepted)
                .map(|(a, b)| a + b);
        }
        self.runs.push(run);
    }

    /// Stores a run's output with the trial.
    pub(super) fn save_output(&mut self, name: &str, command: &[String], driven: &Driven) {
        let text = format!("$ {}\n{}", shell(command), shortened(&driven.output));
        self.files.insert(format!("driver-{name}.txt"), text);
        if !driven.errors.is_empty() {
            let file = format!("driver-{name}-errors.txt");
            self.files.insert(file, shortened(&driven.errors));
        }
    }

    pub(super) fn read(
        &mut self,
        tool_run: &ToolRun<'_>,
        command: Vec<String>,
        driven: &Driven,
    ) -> Result<DriverRun, String> {
        let name = &self.driver.name;
        let ended = match driven.end {
            DriveEnd::Status(status) if self.driver.statuses.contains(&status) => None,
            DriveEnd::Status(status) => Some(format!("ended with status {status}")),
            DriveEnd::Signal(signal) => Some(format!("was ended by signal {signal}")),
            DriveEnd::TimedOut => Some(format!(
                "did not end within {:.1} s and was killed",
                tool_run.limit.as_secs_f64()
            )),
            DriveEnd::TooMuchOutput => Some("printed without end and was killed".to_owned()),
            DriveEnd::Stopped => Some("was stopped".to_owned()),
        };
        if let Some(ended) = ended {
            return Err(format!("driver `{name}` {ended}{}", output_tail(driven)));
        }
        let output = read_driver_output(self.driver.reader, &driven.output).map_err(|why| {
            format!(
                "driver `{name}` printed no readable result: {why}{}",
                output_tail(driven)
            )
        })?;
        let (requests, duration_s) = (
            output.requests.unwrap_or(0),
            output.duration_s.unwrap_or(driven.wall_s),
        );
        if requests > 0 {
            self.rate_per_s = requests as f64 / duration_s;
        }
        self.bytes_read += output.bytes_read.unwrap_or(0);
        Ok(DriverRun {
            pacing: tool_run.pacing,
            command,
            requests,
            duration_s,
            errors: output.errors,
            latency: output.latency,
            wall_s: driven.wall_s,
            cpu_s: driven.cpu_s,
            max_rss_bytes: driven.max_rss_bytes,
        })
    }

    /// The runs of one pacing as one load. There are no histograms: drivers report quantiles at
    /// most.
    pub(super) fn load(&self, pacing: Pacing, load: &LoadSpec, cpus: &[u32]) -> LoadReading {
        let runs = || self.runs.iter().filter(|run| run.pacing == pacing);
        let mut errors = ErrorCounts::default();
        runs().for_each(|run| errors.add(&run.errors));
        let requests = runs().map(good).sum();
        let cpu_s: f64 = runs().map(|run| run.cpu_s).sum();
        let wall_s: f64 = runs().map(|run| run.wall_s).sum();
        let busy = (cpu_s / wall_s.max(1e-9) / f64::from(self.threads)).clamp(0.0, 1.0);
        let threads = if self.driver.polls {
            Vec::new()
        } else {
            let share = requests / u64::from(self.threads);
            let thread = ThreadReading {
                cpu: busy,
                requests: share,
                ..ThreadReading::default()
            };
            vec![thread; self.threads as usize]
        };
        LoadReading {
            connections: u64::from(load.connections),
            requests,
            duration_s: runs().map(|run| run.duration_s).sum(),
            bytes_read: self.bytes_read,
            errors,
            errors_all: errors,
            requests_all: requests,
            // Drivers do not report connections; the requested number is assumed.
            connects: u64::from(load.connections),
            connections_open_min: u64::from(load.connections),
            client: ClientReading {
                cpu_s,
                saturated: !self.driver.polls && busy > SATURATED,
                threads,
                io: String::new(),
                cpus: cpus.to_vec(),
                ..ClientReading::default()
            },
            slices: self
                .slices
                .iter()
                .filter(|(of, _)| *of == pacing)
                .map(|(_, slice)| *slice)
                .collect(),
            ..LoadReading::empty(pacing)
        }
    }

    pub(super) fn outcome(
        &self,
        resolved: &ResolvedCondition,
        cpus: &[u32],
        version: Option<String>,
    ) -> Outcome {
        let load = &resolved.load;
        if let Some(reason) = &self.failure {
            return Outcome::Failed {
                reason: reason.clone(),
                // What servers are at fault for fails the group.
                cause: readings::FailureCause::Other,
            };
        }
        let throughput = self.load(Pacing::Closed, load, cpus);
        let mut pacings = self.runs.iter().map(|run| run.pacing);
        let open = pacings.find(|pacing| *pacing != Pacing::Closed);
        let closed = |run: &&DriverRun| run.pacing == Pacing::Closed;
        let closed_runs = self.runs.iter().filter(closed).count();
        let answered = throughput.requests_all + throughput.errors_all.wrong_answers();
        // With a connection per request the driver's own cannot be told apart.
        let is_known = load.keepalive
            && load.requests_per_connection.is_none()
            && may_be_opened(resolved, &self.ready.subject);
        let upstream = self
            .accepted
            .filter(|_| is_known && answered > 0)
            .map(|count| {
                let own = u64::from(load.connections) * closed_runs as u64;
                count.saturating_sub(own) as f64 / answered as f64
            });
        let choice = &self.ready.subject.driver;
        let through = &self.ready.subject.through;
        let [probed, latency_probed] =
            (self.probed.clone()).map(|seen| seen.map(|seen| of_path(seen, through)));
        Outcome::Done(Box::new(Reading {
            throughput: Some(throughput),
            latency: open.map(|pacing| self.load(pacing, load, cpus)),
            servers: through
                .iter()
                .map(|server| server_reading(server, Some(&self.closed_measured)))
                .collect(),
            upstream_connections_per_request: upstream,
            uncounted_upstreams: self.ready.outside.uncounted.clone(),
            driver: Some(DriverReading {
                driver: choice.name.clone(),
                settings: choice.settings.clone(),
                version,
                latency_step_us: self.driver.latency_step.map(|s| s.as_secs_f64() * 1e6),
                runs: self.runs.clone(),
            }),
            probed,
            latency_probed,
            ..Reading::default()
        }))
    }
}

/// Complete answers without wrong ones.
fn good(run: &DriverRun) -> u64 {
    run.requests.saturating_sub(run.errors.wrong_answers())
}
