//! A group whose load is made by outside drivers: warm-up, then runs in rounds of random order.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use readings::{
    ClientReading, DriverReading, DriverRun, ErrorCounts, Histogram, LoadReading, Outcome, Pacing,
    Reading, ServerReading, Slice, ThreadReading,
};

use crate::agent::AgentError;
use crate::agent::wire::{DriveEnd, DriveOrder, Driven};
use crate::driver::{Driver, RunContext, read_driver_output};
use crate::experiment::{LoadSpec, Setting, Target};
use crate::plan::Group;
use crate::recipe::Availability;
use crate::run::group::{GroupResult, Ready, Runner, choose_rate};
use crate::run::{RunEvent, schedule};

/// A driver gets so much longer than it was asked to run, and the load's time limit.
const MARGIN: Duration = Duration::from_secs(2);
/// One that counts requests may be so many times slower than in its warm-up.
const SLOWER: u32 = 4;
/// A first run by count has so few requests that a slow server answers them soon.
const FIRST_REQUESTS: u64 = 200;
/// A first run that took so long tells the rate well enough.
const FIRST_ENOUGH_S: f64 = 0.5;
/// A client whose threads are busy for more than this may be what holds the throughput.
const SATURATED: f64 = 0.8;
/// Of a long text, so much of its start and of its end is kept with a trial.
const KEPT_BYTES: usize = 128 * 1024;
const LAST_WORDS_LINES: usize = 12;
const LAST_WORDS_CHARS: usize = 300;

/// What the reader of a result has to know about a driver's latencies.
pub(super) fn clock_notice(driver: &Driver) -> Option<String> {
    let clock = driver.clock.as_ref()?;
    Some(format!(
        "latency by `{}` is by its own clock, and that of a closed loop unless a rate was \
         offered: {clock}",
        driver.name
    ))
}

/// A subject with its driver, and what its runs have come to so far.
struct Outside<'a> {
    ready: &'a Ready,
    driver: &'a Driver,
    available: Availability,
    threads: u32,
    /// Requests per second as last seen.
    rate_per_s: f64,
    runs: Vec<DriverRun>,
    slices: Vec<(Pacing, Slice)>,
    bytes_read: u64,
    servers_cpu_s: BTreeMap<String, f64>,
    accepted: Option<u64>,
    files: BTreeMap<String, String>,
    failure: Option<String>,
}

/// One run that is wanted.
struct Wanted<'a> {
    /// What it is called among the trial's files.
    name: &'a str,
    pacing: Pacing,
    duration_s: u64,
    warmup_s: u64,
    requests: u64,
    limit: Duration,
}

impl<F: FnMut(RunEvent)> Runner<'_, F> {
    /// Makes the trials of a group whose subjects all have outside drivers.
    pub(super) fn measure_outside(
        &mut self,
        setting: &Setting,
        group: &Group,
        ready: &[Ready],
        rate: Option<f64>,
        random: &mut fastrand::Rng,
        result: &mut GroupResult,
    ) -> Result<(), AgentError> {
        let recipes = self.options.recipes;
        let cpus = self.places.load_cpus.len().max(1) as u32;
        let mut lanes = Vec::new();
        for one in ready {
            let name = &one.subject.driver.name;
            match recipes.driver(name) {
                Some(driver) => lanes.push(Outside::new(one, driver, &setting.load, cpus)),
                None => result.outcomes.push((
                    one.lane.clone(),
                    Outcome::Failed {
                        reason: format!("no driver is called `{name}`"),
                    },
                )),
            }
        }
        let measured = self.measure_lanes(setting, group, ready, &mut lanes, rate, random, result);
        for lane in lanes {
            result
                .logs
                .push((lane.ready.lane.trial, lane.files.clone()));
            if measured.is_ok() || lane.failure.is_some() {
                let version = self.versions.get(&lane.driver.name).cloned().flatten();
                let outcome = lane.outcome(&setting.load, &self.places.load_cpus, version);
                result.outcomes.push((lane.ready.lane.clone(), outcome));
            }
        }
        measured
    }

    #[allow(clippy::too_many_arguments)] // one caller, and each is used once
    fn measure_lanes(
        &mut self,
        setting: &Setting,
        group: &Group,
        ready: &[Ready],
        lanes: &mut [Outside<'_>],
        rate: Option<f64>,
        random: &mut fastrand::Rng,
        result: &mut GroupResult,
    ) -> Result<(), AgentError> {
        let design = self.options.experiment.design.clone();
        let warmup_s = schedule::outside_warm_up_s(design.warmup);
        self.phase("warming up");
        for lane in lanes.iter_mut() {
            self.warm_up(setting, lane, warmup_s)?;
        }
        self.phase("throughput");
        let (count, seconds) = schedule::outside_runs(design.window, design.slice);
        let closed = (Pacing::Closed, count, seconds, warmup_s);
        self.rounds(setting, lanes, closed, random)?;
        let all_open = lanes.iter().all(|lane| lane.driver.has_open_loop());
        if design.latency_window.is_zero() || !all_open || self.stopped() {
            return Ok(());
        }
        let readings: Vec<LoadReading> = lanes
            .iter()
            .filter(|lane| lane.failure.is_none())
            .map(|lane| lane.load(Pacing::Closed, &setting.load, &[]))
            .collect();
        let rate = rate.or_else(|| {
            let all = readings.len() == ready.len();
            all.then(|| choose_rate(group, ready, setting, &readings, result))?
        });
        if let Some(rate_per_s) = rate {
            self.phase(&format!("latency at {rate_per_s} requests/s"));
            let (count, seconds) = schedule::outside_runs(design.latency_window, design.slice);
            let open = (Pacing::Open { rate_per_s }, count, seconds, warmup_s);
            self.rounds(setting, lanes, open, random)?;
        }
        Ok(())
    }

    /// A run that is thrown away, unless the driver warms up by itself; with one that counts
    /// requests it also tells how many a second there are.
    fn warm_up(
        &mut self,
        setting: &Setting,
        lane: &mut Outside<'_>,
        warmup_s: u64,
    ) -> Result<(), AgentError> {
        let counts = lane.driver.counts_requests();
        if (warmup_s == 0 || lane.driver.warms_up()) && !counts {
            return Ok(());
        }
        let duration_s = warmup_s.max(1);
        let first = u64::from(setting.load.connections).saturating_mul(2);
        let mut wanted = Wanted {
            name: "warm-up",
            pacing: Pacing::Closed,
            duration_s,
            warmup_s: 0,
            requests: first.max(FIRST_REQUESTS),
            limit: lane.limit(&setting.load, 10 * duration_s),
        };
        let run = self.drive(setting, lane, &wanted)?;
        if let Some((run, _)) = run.filter(|(run, _)| counts && run.duration_s < FIRST_ENOUGH_S) {
            lane.rate_per_s = run.requests as f64 / run.duration_s;
            wanted.requests = lane.requests_in(duration_s, &setting.load);
            self.drive(setting, lane, &wanted)?;
        }
        Ok(())
    }

    fn rounds(
        &mut self,
        setting: &Setting,
        lanes: &mut [Outside<'_>],
        (pacing, count, seconds, warmup_s): (Pacing, usize, u64, u64),
        random: &mut fastrand::Rng,
    ) -> Result<(), AgentError> {
        let mut order: Vec<usize> = (0..lanes.len()).collect();
        let words = match pacing {
            Pacing::Closed => "closed",
            Pacing::Open { .. } => "open",
        };
        for round in 1..=count {
            random.shuffle(&mut order);
            for &at in &order {
                let lane = &mut lanes[at];
                let wanted = Wanted {
                    name: &format!("{words}-{round}"),
                    pacing,
                    duration_s: seconds,
                    warmup_s,
                    requests: lane.requests_in(seconds, &setting.load),
                    limit: lane.limit(&setting.load, seconds + warmup_s),
                };
                if let Some((run, driven)) = self.drive(setting, lane, &wanted)? {
                    lane.take(run, &driven);
                }
            }
        }
        Ok(())
    }

    /// Runs a lane's driver once. `None` when it failed, now or before, or the run was stopped.
    fn drive(
        &mut self,
        setting: &Setting,
        lane: &mut Outside<'_>,
        wanted: &Wanted<'_>,
    ) -> Result<Option<(DriverRun, Driven)>, AgentError> {
        if lane.failure.is_some() || self.stopped() {
            return Ok(None);
        }
        let context = self.context(setting, lane, wanted);
        let filled = lane
            .driver
            .command(&context)
            .and_then(|command| Ok((command, lane.driver.environment(&context)?)));
        let (command, env) = match filled {
            Ok(filled) => filled,
            Err(error) => {
                lane.failure = Some(error.to_string());
                return Ok(None);
            }
        };
        let order = DriveOrder {
            command: command.clone(),
            env,
            cpus: self.places.load_cpus.clone(),
            limit_ms: wanted.limit.as_millis() as u64,
            watch: setting.servers.iter().map(|s| s.name.clone()).collect(),
        };
        let driven = match self.agent.drive(order, self.stop) {
            Ok(driven) => driven,
            // A driver that cannot be started is that subject's failure; a server that has ended
            // is everyone's.
            Err(AgentError::Failed(reason)) if reason.starts_with("cannot start") => {
                lane.failure = Some(format!("driver `{}`: {reason}", lane.driver.name));
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        lane.keep(wanted.name, &command, &driven);
        if self.stopped() {
            return Ok(None);
        }
        match lane.read(wanted, command, &driven) {
            Ok(run) => {
                (self.tell)(RunEvent::Load {
                    subject: lane.ready.lane.subject.clone(),
                    requests: run.requests,
                    errors: run.errors.total(),
                });
                Ok(Some((run, driven)))
            }
            Err(reason) => {
                lane.failure = Some(reason);
                Ok(None)
            }
        }
    }

    fn context(&self, setting: &Setting, lane: &Outside<'_>, wanted: &Wanted<'_>) -> RunContext {
        let load = &setting.load;
        let subject = &lane.ready.subject;
        let expect = &self.options.experiment.expect;
        RunContext {
            scheme: subject.scheme.clone(),
            host: host(&subject.target, lane.ready.address),
            port: lane.ready.address.port(),
            path: subject.path.clone(),
            connections: load.connections,
            threads: lane.threads,
            duration_s: wanted.duration_s,
            warmup_s: wanted.warmup_s,
            requests: wanted.requests,
            rate_per_s: match wanted.pacing {
                Pacing::Closed => None,
                Pacing::Open { rate_per_s } => Some(rate_per_s),
            },
            keepalive: load.keepalive,
            requests_per_connection: load.requests_per_connection,
            timeout: load.timeout,
            method: load.method.clone(),
            headers: load.headers.clone(),
            body: load.body.clone(),
            expect_status: expect.status,
            expect_contains: expect.contains.clone(),
            params: subject.driver.params.clone(),
            programs: lane.available.programs.clone(),
            weigh: self.options.weigh.to_path_buf(),
        }
    }
}

/// The name that a subject is asked by: its own where it runs already, so that a server can tell
/// its names apart, and the address of a server that was started.
fn host(target: &Target, address: SocketAddr) -> String {
    match target {
        Target::Address(text) => text
            .rsplit_once(':')
            .map_or(text.as_str(), |(host, _)| host)
            .to_owned(),
        Target::Server(_) => address.ip().to_string(),
    }
}

impl<'a> Outside<'a> {
    fn new(ready: &'a Ready, driver: &'a Driver, load: &LoadSpec, cpus: u32) -> Self {
        Self {
            ready,
            driver,
            available: driver.available(),
            threads: driver.threads(load, cpus),
            rate_per_s: 0.0,
            runs: Vec::new(),
            slices: Vec::new(),
            bytes_read: 0,
            servers_cpu_s: BTreeMap::new(),
            accepted: Some(0),
            files: BTreeMap::new(),
            failure: None,
        }
    }

    fn limit(&self, load: &LoadSpec, seconds: u64) -> Duration {
        let asked = Duration::from_secs(seconds);
        let asked = if self.driver.counts_requests() {
            asked * SLOWER
        } else {
            asked
        };
        asked + load.timeout + MARGIN
    }

    /// How many requests fill a time, at the rate that was last seen.
    fn requests_in(&self, seconds: u64, load: &LoadSpec) -> u64 {
        let count = (self.rate_per_s * seconds as f64).round() as u64;
        count.max(u64::from(load.connections))
    }

    /// Notes a run of the measured window.
    fn take(&mut self, run: DriverRun, driven: &Driven) {
        let start_s = self.slices.iter().map(|(_, s)| s.duration_s).sum();
        self.slices.push((
            run.pacing,
            Slice {
                start_s,
                duration_s: run.duration_s,
                requests: good(&run),
                errors: run.errors.total(),
                client_cpu_s: run.cpu_s,
            },
        ));
        if run.pacing == Pacing::Closed {
            for (server, cpu_s) in &driven.servers_cpu_s {
                *self.servers_cpu_s.entry(server.clone()).or_insert(0.0) += cpu_s;
            }
            self.accepted = self.accepted.zip(driven.accepted).map(|(a, b)| a + b);
        }
        self.runs.push(run);
    }

    /// Keeps what a run printed with the trial.
    fn keep(&mut self, name: &str, command: &[String], driven: &Driven) {
        let text = format!("$ {}\n{}", shell(command), shortened(&driven.output));
        self.files.insert(format!("driver-{name}.txt"), text);
        if !driven.errors.is_empty() {
            let file = format!("driver-{name}-errors.txt");
            self.files.insert(file, shortened(&driven.errors));
        }
    }

    fn read(
        &mut self,
        wanted: &Wanted<'_>,
        command: Vec<String>,
        driven: &Driven,
    ) -> Result<DriverRun, String> {
        let name = &self.driver.name;
        let ended = match driven.end {
            DriveEnd::Status(status) if self.driver.statuses.contains(&status) => None,
            DriveEnd::Status(status) => Some(format!("ended with status {status}")),
            DriveEnd::Signal(signal) => Some(format!("was ended by signal {signal}")),
            DriveEnd::Late => Some(format!(
                "did not end within {:.1} s and was killed",
                wanted.limit.as_secs_f64()
            )),
            DriveEnd::Talkative => Some("printed without an end and was killed".to_owned()),
            DriveEnd::Stopped => Some("was stopped".to_owned()),
        };
        if let Some(ended) = ended {
            return Err(format!("driver `{name}` {ended}{}", last_words(driven)));
        }
        let said = read_driver_output(self.driver.reader, &driven.output).map_err(|why| {
            format!(
                "driver `{name}` gave no result that can be read: {why}{}",
                last_words(driven)
            )
        })?;
        let (requests, duration_s) = (
            said.requests.unwrap_or(0),
            said.duration_s.unwrap_or(driven.wall_s),
        );
        if requests > 0 {
            self.rate_per_s = requests as f64 / duration_s;
        }
        self.bytes_read += said.bytes_read.unwrap_or(0);
        Ok(DriverRun {
            pacing: wanted.pacing,
            command,
            requests,
            duration_s,
            errors: said.errors,
            latency: said.latency,
            wall_s: driven.wall_s,
            cpu_s: driven.cpu_s,
            max_rss_bytes: driven.max_rss_bytes,
        })
    }

    /// The runs of one loop as one load. There are no histograms: a driver tells quantiles at
    /// the most.
    fn load(&self, pacing: Pacing, load: &LoadSpec, cpus: &[u32]) -> LoadReading {
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
            };
            vec![thread; self.threads as usize]
        };
        LoadReading {
            pacing,
            connections: u64::from(load.connections),
            requests,
            duration_s: runs().map(|run| run.duration_s).sum(),
            bytes_read: self.bytes_read,
            errors,
            errors_all: errors,
            requests_all: requests,
            // What a driver does not tell is taken to be as it was asked for.
            connects: u64::from(load.connections),
            connections_open_min: u64::from(load.connections),
            statuses: Vec::new(),
            response: Histogram::new(),
            service: Histogram::new(),
            connect: Histogram::new(),
            first_byte: Histogram::new(),
            transfer: Histogram::new(),
            schedule_lag: Histogram::new(),
            client: ClientReading {
                cpu_s,
                saturated: !self.driver.polls && busy > SATURATED,
                threads,
                io: String::new(),
                cpus: cpus.to_vec(),
            },
            slices: self
                .slices
                .iter()
                .filter(|(of, _)| *of == pacing)
                .map(|(_, slice)| *slice)
                .collect(),
            wrong: Vec::new(),
        }
    }

    fn outcome(&self, load: &LoadSpec, cpus: &[u32], version: Option<String>) -> Outcome {
        if let Some(reason) = &self.failure {
            return Outcome::Failed {
                reason: reason.clone(),
            };
        }
        let throughput = self.load(Pacing::Closed, load, cpus);
        let open = self
            .runs
            .iter()
            .map(|run| run.pacing)
            .find(|pacing| *pacing != Pacing::Closed);
        let closed_runs = self.runs.len() - self.runs_of(open);
        let answered = throughput.requests_all + throughput.errors_all.wrong_answers();
        // With a connection per request nobody knows which of them were the driver's.
        let kept = load.keepalive && load.requests_per_connection.is_none();
        let upstream = self.accepted.filter(|_| kept && answered > 0).map(|count| {
            let own = u64::from(load.connections) * closed_runs as u64;
            count.saturating_sub(own) as f64 / answered as f64
        });
        let choice = &self.ready.subject.driver;
        Outcome::Done(Box::new(Reading {
            throughput: Some(throughput),
            latency: open.map(|pacing| self.load(pacing, load, cpus)),
            servers: self
                .ready
                .subject
                .through
                .iter()
                .map(|server| ServerReading {
                    server: server.clone(),
                    cpu_s: self.servers_cpu_s.get(server).copied().unwrap_or(0.0),
                })
                .collect(),
            upstream_connections_per_request: upstream,
            warnings: Vec::new(),
            driver: Some(DriverReading {
                driver: choice.name.clone(),
                settings: choice
                    .params
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect(),
                version,
                latency_step_us: self.driver.latency_step.map(|s| s.as_secs_f64() * 1e6),
                runs: self.runs.clone(),
            }),
        }))
    }

    fn runs_of(&self, pacing: Option<Pacing>) -> usize {
        let of = |run: &&DriverRun| Some(run.pacing) == pacing;
        self.runs.iter().filter(of).count()
    }
}

/// Complete answers that were not the wrong ones.
fn good(run: &DriverRun) -> u64 {
    run.requests.saturating_sub(run.errors.wrong_answers())
}

/// A command line as a person would type it.
fn shell(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%".contains(c);
    let quoted: Vec<String> = words
        .iter()
        .map(|word| match !word.is_empty() && word.chars().all(plain) {
            true => word.clone(),
            false => format!("'{}'", word.replace('\'', "'\\''")),
        })
        .collect();
    quoted.join(" ")
}

/// A long text without its middle.
fn shortened(text: &str) -> String {
    if text.len() <= 2 * KEPT_BYTES {
        return text.to_owned();
    }
    // A character takes at most four bytes, so one ends within them.
    let boundary = |at: usize| (at..at + 4).find(|at| text.is_char_boundary(*at));
    let start = boundary(KEPT_BYTES).unwrap_or(0);
    let end = boundary(text.len() - KEPT_BYTES).unwrap_or(text.len());
    let left_out = end - start;
    format!(
        "{}\n[{left_out} bytes left out]\n{}",
        &text[..start],
        &text[end..]
    )
}

/// The last lines that a driver printed, for a message.
fn last_words(driven: &Driven) -> String {
    let lines: Vec<String> = driven
        .output
        .lines()
        .chain(driven.errors.lines())
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.chars().take(LAST_WORDS_CHARS).collect())
        .collect();
    if lines.is_empty() {
        return "; it printed nothing".to_owned();
    }
    let from = lines.len().saturating_sub(LAST_WORDS_LINES);
    format!("; its last words:\n  {}", lines[from..].join("\n  "))
}
