//! `weigh load`.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use agent::AcceptQueueAt;
use load::{Arrivals, Expect, Job, Segment, Stop, Target, TimestampSource, Wait};
use net::Address;
use readings::{IdleHeld, LoadReading, Pacing};
use serde_json::{Map, Value, json};
use verdict::JudgedLoad;

use crate::cli::{self, Format, LoadArgs};
use crate::failure::Failure;
use crate::signals::Signals;
use crate::terminal::output::{note_fallback, print_json, print_text};
use crate::units;
use target::Called;

pub(super) mod body;
mod call;
pub mod changing;
mod crawl;
mod empty_page;
pub mod fit;
pub mod hosts;
mod idle;
mod redirects;
pub(super) mod requests;
pub mod target;
mod watch;
mod websocket;

/// Exit status when it was measured, but is invalid.
const INVALID: u8 = 4;

/// Puts load on a URL.
pub fn load(args: &LoadArgs) -> Result<u8, Failure> {
    if requests::write(args)? {
        return Ok(0);
    }
    let signals = Signals::listen()?;
    fit::look(args)?;
    if args.site.crawl {
        return crawl::crawl(args, &signals);
    }
    let (target, called, set) = target::target(args)?;
    fit::look_at_families(args, &target.address)?;
    let shown = called.to_string();
    if args.is_idle_alone() {
        return idle::alone(args, target, &called, &signals);
    }
    let mut job = job(args, target);
    if let Some(replay) = set.as_ref().and_then(|set| set.replay.as_ref()) {
        job.segments = vec![Segment::replay(replay)];
    }
    // What files say of answers is not their content.
    let is_of_files = set.is_some();
    let left_out = set.and_then(|set| Some(set.replay?.left_out));
    let made = match &args.client.hosts {
        None => make_here(args, job, &shown, &signals)?,
        Some(file) => make_on_hosts(args, file, job, &shown, &signals)?,
    };
    let reading = made.reading;
    if reading.duration_s == 0.0 {
        // Stopped in the ramp-up.
        signals.go_on()?;
    }
    let judged = JudgedLoad::of(&reading);
    let mut notes = made.notes;
    if reading.requests_all == 0 {
        notes.clear();
    }
    notes.extend(redirects::upgrade_note(&reading).map(str::to_owned));
    notes.extend(report::idle_streams(&reading));
    notes.extend(changing::note(std::iter::once(&reading)).map(str::to_owned));
    let idle = made.idle;
    match args.output.format {
        Format::Json => {
            let compared = !made.is_varying
                && !is_of_files
                && !args.answer.body_varies
                && args.traffic.traffic().is_answers();
            let mut extra = extra(&called, compared);
            extra.insert("stopped".into(), json!(signals.stopped()));
            extra.insert("notes".into(), json!(notes));
            extra.extend(left_out.map(|lines| ("log_lines_left_out".to_owned(), json!(lines))));
            extra.extend(idle.map(|held| ("idle".to_owned(), report::idle_json(&held))));
            print_json(&report::load_json(&judged, extra));
        }
        Format::Text => {
            if signals.stopped() {
                print_text("It was stopped; this is what was measured until then.\n\n");
            }
            print_text(&report::load_terminal(&judged, &shown, &notes));
            if let Some(held) = idle {
                print_text(&format!("\n{}", report::idle_terminal(&held, &shown)));
            }
        }
    }
    if let Some(status) = signals.status() {
        return Ok(status);
    }
    Ok(if judged.flaws.is_empty() { 0 } else { INVALID })
}

/// A load that was made.
struct Made {
    reading: LoadReading,
    /// Whether answers differ from time to time, so that content is not compared.
    is_varying: bool,
    /// Notes on good answers that may be a mistake.
    notes: Vec<String>,
    /// The idle connections beside it.
    idle: Option<IdleHeld>,
}

fn make_here(
    args: &LoadArgs,
    mut job: Job,
    called: &str,
    signals: &Signals,
) -> Result<Made, Failure> {
    let stated = expectations(&job);
    let varying = target::prepare(&mut job, signals)?;
    if !varying.is_empty() {
        eprintln!(
            "weigh: the answers to {} differ from time to time; their content is not compared",
            varying.join(", ")
        );
    }
    let queue = tcp_address(&job).and_then(AcceptQueueAt::start);
    let mut held = idle::Held::open(&job, signals)?;
    // This program holds them already.
    job.targets.iter_mut().for_each(|one| one.idle = None);
    let mut reading = watch::with_progress(&job, args, called, signals, |report| {
        let readings = load::run(&job, &signals.stop, report).map_err(Failure::failed)?;
        let first = readings.into_iter().next();
        first.ok_or_else(|| Failure::failed("nothing was measured"))
    })?;
    reading.accept_queues = queue.map(AcceptQueueAt::found).unwrap_or_default();
    note_fallback();
    let idle = held.take().map(|held| held.close(signals)).transpose()?;
    reading.idle = idle.as_ref().map(|held| held.reading.clone());
    Ok(Made {
        reading,
        idle,
        is_varying: !varying.is_empty(),
        notes: notes_on_answers(args, &job, &stated, &expectations(&job)),
    })
}

fn make_on_hosts(
    args: &LoadArgs,
    file: &Path,
    job: Job,
    called: &str,
    signals: &Signals,
) -> Result<Made, Failure> {
    let specs = hosts::read(file)?;
    let count = specs.len();
    let threads = hosts::threads(count, "--connections", args.connections(), args.threads)?;
    let mut fleet = hosts::open(specs, &job.targets[0].address, signals)?;
    let job = Job {
        threads,
        wait: hosts::wait(args.pacing.wait),
        ..job
    };
    let shown = Job {
        threads: threads * count,
        ..job.clone()
    };
    let made = watch::with_progress(&shown, args, called, signals, |report| {
        hosts::load(&mut fleet, &job, signals, report)
    });
    hosts::close(fleet);
    let made = made?;
    hosts::warn_of_answers(&made);
    Ok(Made {
        is_varying: made.is_varying,
        notes: notes_on_answers(args, &job, &expectations(&job), &made.expectations),
        reading: made.reading,
        idle: None,
    })
}

/// Notes on answers that count as good and may be a mistake: empty pages and redirects. `stated` are
/// the expectations before the target was asked.
fn notes_on_answers(
    args: &LoadArgs,
    job: &Job,
    stated: &[Expect],
    expectations: &[Expect],
) -> Vec<String> {
    let empty = empty_page::note(args, job, expectations);
    let redirects = redirects::note(args, stated, expectations);
    empty.into_iter().chain(redirects).collect()
}

/// Which answers of a job's target count as good, by request.
fn expectations(job: &Job) -> Vec<Expect> {
    let requests = job.targets.iter().take(1).flat_map(|one| &one.requests);
    requests.map(|one| one.expect.clone()).collect()
}

/// The address that the load opens TCP connections to.
fn tcp_address(job: &Job) -> Option<SocketAddr> {
    let target = job.targets.first().filter(|one| one.http3.is_none())?;
    match &target.address {
        Address::Inet(address) => Some(*address),
        Address::Unix(_) => None,
    }
}

/// The job that the options describe.
pub fn job(args: &LoadArgs, target: Target) -> Job {
    let asked: f64 = args.pacing.stages.iter().map(load::Stage::requests).sum();
    let staged: Duration = args.pacing.stages.iter().map(|stage| stage.duration).sum();
    let messages = &args.traffic.websocket;
    let of_each = messages.message_rate.filter(|_| messages.fan_out.is_none());
    let of_all = of_each.map(|rate| rate * f64::from(args.connections()));
    let pacing = match args.pacing.rate.or(of_all) {
        Some(rate_per_s) => Pacing::Open { rate_per_s },
        None if !args.pacing.stages.is_empty() => Pacing::Open {
            rate_per_s: asked / staged.as_secs_f64(),
        },
        None => Pacing::Closed,
    };
    let count = args.length.count.or(messages.messages);
    let stop = match (count, args.length.each_connection) {
        (Some(count), _) => Stop::Requests(count),
        (None, Some(each)) => Stop::EachConnection(each),
        (None, None) if !args.pacing.stages.is_empty() => Stop::After(staged),
        (None, None) => Stop::After(args.length.duration.unwrap_or(Duration::from_secs(10))),
    };
    let segment = Segment {
        pacing,
        stages: args.pacing.stages.clone(),
        ramp_up: args.length.warmup,
        ..Segment::closed(stop)
    };
    Job {
        threads: target.threads(args.threads.min(args.connections())) as usize,
        requests_per_connection: match args.reuse.no_keepalive {
            true => Some(1),
            false => args.reuse.requests_per_connection,
        },
        connect_timeout: args.limits.connect_timeout.unwrap_or(args.limits.timeout),
        timeout: args.limits.timeout,
        arrivals: match args.pacing.arrivals {
            cli::Arrivals::Even => Arrivals::Even,
            cli::Arrivals::Poisson => Arrivals::Poisson,
        },
        cpus: units::cpus(&args.client.cpus),
        sources: args
            .client
            .source
            .iter()
            .map(|ip| SocketAddr::new(*ip, 0))
            .collect(),
        io: args.client.io,
        wait: match args.pacing.wait {
            cli::Wait::Spin => Wait::Spin,
            cli::Wait::Sleep => Wait::Sleep,
            cli::Wait::Auto => {
                let cpus = net::os::allowed_cpus().map_or(1, |cpus| cpus.len());
                match (args.threads as usize) < cpus {
                    true => Wait::Spin,
                    false => Wait::Sleep,
                }
            }
        },
        timestamps: match args.timestamps {
            cli::TimestampSource::Auto => TimestampSource::Auto,
            cli::TimestampSource::Kernel => TimestampSource::Kernel,
            cli::TimestampSource::Userspace => TimestampSource::Userspace,
        },
        rows: Some(args.output.interval),
        seed: fastrand::u64(..),
        ..Job::to(target).segment(segment)
    }
}

fn extra(called: &Called, compared: bool) -> Map<String, Value> {
    let mut extra = Map::new();
    extra.insert("url".into(), json!(called.url));
    extra.insert("address".into(), json!(called.chosen));
    extra.insert("content_compared".into(), json!(compared));
    extra
}
