//! Carries a job out on its threads.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;

use net::{Epoll, Io, IoKind, Uring};
use readings::LoadReading;
use tls::{ClientTls, Secure};

use crate::barrier::Barrier;
use crate::exchange::{Kind, Lasting};
use crate::http::Http;
use crate::idle::IdleHolder;
use crate::job::Job;
use crate::job::target::Target;
use crate::pacing::clock::Monotonic;
use crate::prepare::prepare;
use crate::progress::{LoadError, Message, Progress};
use crate::record::Recorder;
use crate::record::merge::merge;
use crate::record::rows::Rows;
use crate::worker::{self, Worker};

/// Runs a job, after [`prepare()`] where it is not prepared, to its end, or until `stop` is set:
/// then the segment under way ends early and what was measured is returned.
///
/// `report` is called on the calling thread. The readings are in the order of their numbers.
///
/// # Errors
/// When the job makes no sense, or the system refuses what it needs.
pub fn run(
    job: &Job,
    stop: &Arc<AtomicBool>,
    report: impl FnMut(Progress),
) -> Result<Vec<LoadReading>, LoadError> {
    run_between(job, stop, Arc::new(|| ()), report)
}

/// The same, with something to do before each segment.
///
/// # Errors
/// As [`run`].
pub fn run_between(
    job: &Job,
    stop: &Arc<AtomicBool>,
    between: Between,
    mut report: impl FnMut(Progress),
) -> Result<Vec<LoadReading>, LoadError> {
    run_job(job, stop, &between, &mut report)
}

/// What is done before each segment, when all threads have ended the one before: on one of them, while
/// the others wait. It has to be quick.
pub type Between = Arc<dyn Fn() + Send + Sync>;

/// [`run`] without generics: otherwise each caller's crate would compile the engine again, with its
/// own optimisation level.
fn run_job(
    job: &Job,
    stop: &Arc<AtomicBool>,
    between: &Between,
    report: &mut dyn FnMut(Progress),
) -> Result<Vec<LoadReading>, LoadError> {
    job.validate()?;
    quic_clients(job, &clients(job)?)?;
    let mut job = job.clone();
    // Once for all threads and for the result.
    for http3 in job.targets.iter_mut().filter_map(|one| one.http3.as_mut()) {
        http3.congestion = Some(quic::congestion(http3.congestion));
    }
    prepare(&mut job, stop)?;
    net::os::raise_open_files();
    let job = Arc::new(job);
    let mut idle = IdleHolder::start(&job)?;
    if let Some(idle) = &mut idle {
        idle.open(1.0, stop)?;
    }
    // If the loop cannot be opened, no request has been sent yet, so another loop can be tried.
    let mut readings = IoKind::choose(job.io, LoadError::refusal, |io| {
        run_on(io, &job, stop, between, report)
    })?;
    if let Some(idle) = idle {
        let of_targets = idle.close()?;
        for (number, reading) in readings.iter_mut().enumerate() {
            let mut segments = job.segments.iter();
            let segment = segments.find(|one| one.reading == Some(number));
            reading.idle = segment.and_then(|one| of_targets[one.target].clone());
        }
    }
    Ok(readings)
}

fn run_on(
    io: IoKind,
    job: &Arc<Job>,
    stop: &Arc<AtomicBool>,
    between: &Between,
    report: &mut dyn FnMut(Progress),
) -> Result<Vec<LoadReading>, LoadError> {
    let barrier = Arc::new(Barrier::new(job.threads, between.clone()));
    let work = match (io, job.targets.iter().all(|one| one.traffic.is_answers())) {
        (IoKind::Uring, true) => work::<Uring, Http>,
        (IoKind::Epoll, true) => work::<Epoll, Http>,
        (IoKind::Uring, false) => work::<Uring, Lasting>,
        (IoKind::Epoll, false) => work::<Epoll, Lasting>,
    };
    let (sender, receiver) = mpsc::channel();
    let mut failure = None;
    let threads: Vec<_> = (0..job.threads)
        .map_while(|thread| {
            let (job, own_barrier) = (job.clone(), barrier.clone());
            let (stop, sender) = (stop.clone(), sender.clone());
            let started = net::os::start_thread("of the load", move || {
                let barrier = own_barrier;
                let guard = AbortOnDrop(&barrier);
                let result = work(&job, thread, &barrier, &stop, sender);
                if result.is_ok() {
                    std::mem::forget(guard);
                }
                result
            });
            // Those that have started wait for it.
            let refused = |refused| {
                barrier.abort();
                failure = Some(LoadError::from(refused));
            };
            started.map_err(refused).ok()
        })
        .collect();
    drop(sender);
    let mut rows = Rows::new(job.threads, job.readings());
    for message in receiver {
        match message {
            Message::Progress(progress) => report(progress),
            Message::Rows(message) => {
                rows.take(message, &mut |row| report(Progress::Row(Box::new(row))));
            }
        }
    }
    rows.finish(&mut |row| report(Progress::Row(Box::new(row))));
    let mut recordings: Vec<Vec<Recorder>> = Vec::new();
    recordings.resize_with(job.readings(), Vec::new);
    for thread in threads {
        match thread.join().unwrap_or(Err(LoadError::Thread)) {
            Ok(recorders) => {
                for (reading, recorder) in recorders.into_iter().enumerate() {
                    recordings[reading].push(recorder);
                }
            }
            Err(e) => failure = failure.or(Some(e)),
        }
    }
    if let Some(e) = failure {
        return Err(e);
    }
    let tcp_congestion = net::os::tcp_congestion();
    Ok(recordings
        .into_iter()
        .zip(rows.readings)
        .filter_map(|(parts, rows)| {
            let number = parts.first()?.target;
            let connections = job.own_connections(number);
            let target = &job.targets[number];
            let mut reading = merge(
                parts,
                rows,
                connections,
                target.streams(),
                &io.to_string(),
                &job.cpus,
            )?;
            if job.part.is_none() {
                reading.keep_quantiles_only();
            }
            if target.address.inet().is_some() {
                reading.tcp_congestion.clone_from(&tcp_congestion);
            }
            if let (Some(quic), Some(http3)) = (&mut reading.quic, target.http3) {
                quic.congestion = http3.congestion.map(|one| one.name().to_owned());
            }
            Some(reading)
        })
        .collect())
}

/// Releases the other threads when this one ends early, also by a panic.
struct AbortOnDrop<'a>(&'a Barrier);

impl Drop for AbortOnDrop<'_> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn work<I: Io, K: Kind>(
    job: &Arc<Job>,
    thread: usize,
    barrier: &Barrier,
    stop: &AtomicBool,
    events: mpsc::Sender<Message>,
) -> Result<Vec<Recorder>, LoadError> {
    net::os::sharpen_timers();
    if !job.cpus.is_empty() {
        let cpu = job.cpus[thread % job.cpus.len()];
        net::os::bind_to_cpus(&[cpu]).map_err(|source| LoadError::Bind { cpu, source })?;
    }
    let options = worker::io_options(job, thread);
    // Each thread has its own: it keeps the sessions that later connections resume.
    let clients = clients(job)?;
    let io = I::open(options).map_err(|source| LoadError::Open {
        connections: (0..job.targets.len())
            .map(|target| job.share(target, thread).own_connections())
            .sum(),
        source,
    })?;
    let quic = quic_clients(job, &clients)?;
    let io = Secure::over(io, &options).with_clients(clients);
    Worker::<_, _, K>::new(io, Monotonic::of_this_thread(), job.clone(), thread, events)
        .with_quic(quic)
        .run(barrier, stop)
}

/// The QUIC of each target with HTTP/3.
fn quic_clients(
    job: &Job,
    clients: &[Option<ClientTls>],
) -> Result<Vec<Option<quic::ClientSettings>>, LoadError> {
    let both = job.targets.iter().zip(clients);
    both.map(|(target, tls)| {
        let Some(tls) = tls.as_ref().filter(|_| target.http3.is_some()) else {
            return Ok(None);
        };
        let congestion = quic::congestion(target.http3.and_then(|http3| http3.congestion));
        let settings = quic::ClientSettings::new(tls, congestion, job.quic_connections());
        settings.map(Some).map_err(|source| LoadError::Tls {
            address: target.address.clone(),
            source,
        })
    })
    .collect()
}

/// The TLS of each target.
pub(crate) fn clients(job: &Job) -> Result<Vec<Option<ClientTls>>, LoadError> {
    let client = |target: &Target| {
        let settings = target.tls.as_ref();
        let client = settings.map(ClientTls::new).transpose();
        client.map_err(|source| LoadError::Tls {
            address: target.address.clone(),
            source,
        })
    };
    job.targets.iter().map(client).collect()
}
