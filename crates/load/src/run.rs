//! Carries a job out on its threads.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;

use net::{Epoll, Io, IoKind, Uring};
use readings::LoadReading;

use crate::barrier::Barrier;
use crate::job::{Job, JobError};
use crate::merge::merge;
use crate::record::Recorder;
use crate::rows::{Row, Rows, Told};
use crate::worker::Worker;

/// What a running load tells, a few times a second; never from the hot path.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// A stint begins (told by the first thread).
    StintBegins {
        /// Number of the stint.
        stint: usize,
    },
    /// A stint has ended, its last answer has come (told by the first thread).
    StintEnds {
        /// Number of the stint.
        stint: usize,
    },
    /// A stint's measured window begins (told by the first thread).
    WindowOpens {
        /// Number of the stint.
        stint: usize,
    },
    /// A stint's measured window has ended (told by the first thread).
    WindowCloses {
        /// Number of the stint.
        stint: usize,
    },
    /// What one thread counted since its last tick.
    Tick {
        /// The thread.
        thread: usize,
        /// Number of the stint.
        stint: usize,
        /// Good answers.
        requests: u64,
        /// Failures.
        errors: u64,
    },
    /// A row is over, on all threads (only if the job asks for rows).
    Row(Box<Row>),
}

/// What a thread tells the one that waits for it.
pub(crate) enum Message {
    Progress(Progress),
    Rows(Told),
}

/// Why a load could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The job makes no sense.
    #[error(transparent)]
    Job(#[from] JobError),
    /// An event loop could not be opened.
    #[error("cannot open an event loop with {connections} connections: {source}")]
    Open {
        /// Connections per thread.
        connections: u64,
        /// Why not.
        source: io::Error,
    },
    /// An event loop failed.
    #[error("the event loop failed: {0}")]
    Loop(#[source] io::Error),
    /// A thread could not be bound to its CPU.
    #[error("cannot bind a thread to CPU {cpu}: {source}")]
    Bind {
        /// The CPU.
        cpu: u32,
        /// Why not.
        source: io::Error,
    },
    /// A thread died.
    #[error("a load thread died; this is a defect of the program")]
    Thread,
}

/// Runs a job to its end, or until `stop` is set: then the stint under way is cut short and what
/// was measured is returned.
///
/// `tell` is called on the calling thread. The readings are in the order of their numbers.
///
/// # Errors
/// When the job makes no sense, or the system refuses what it needs.
pub fn run(
    job: &Job,
    stop: &Arc<AtomicBool>,
    mut tell: impl FnMut(Progress),
) -> Result<Vec<LoadReading>, LoadError> {
    run_job(job, stop, &mut tell)
}

/// [`run`], not generic: otherwise each caller's crate would compile the engine once more, and with
/// its own optimisation.
fn run_job(
    job: &Job,
    stop: &Arc<AtomicBool>,
    tell: &mut dyn FnMut(Progress),
) -> Result<Vec<LoadReading>, LoadError> {
    job.validate()?;
    net::os::raise_open_files();
    let shared = Arc::new(job.clone());
    let barrier = Arc::new(Barrier::new(job.threads));
    let (sender, receiver) = mpsc::channel();
    let threads: Vec<_> = (0..job.threads)
        .map(|thread| {
            let (job, barrier) = (shared.clone(), barrier.clone());
            let (stop, sender) = (stop.clone(), sender.clone());
            std::thread::spawn(move || {
                let guard = BreakUp(&barrier);
                let result = match job.io {
                    IoKind::Uring => work::<Uring>(&job, thread, &barrier, &stop, sender),
                    IoKind::Epoll => work::<Epoll>(&job, thread, &barrier, &stop, sender),
                };
                if result.is_ok() {
                    std::mem::forget(guard);
                }
                result
            })
        })
        .collect();
    drop(sender);
    let mut rows = Rows::new(job.threads, job.readings());
    for message in receiver {
        match message {
            Message::Progress(progress) => tell(progress),
            Message::Rows(told) => {
                rows.take(told, &mut |row| tell(Progress::Row(Box::new(row))));
            }
        }
    }
    rows.finish(&mut |row| tell(Progress::Row(Box::new(row))));
    let mut notes: Vec<Vec<Recorder>> = Vec::new();
    notes.resize_with(job.readings(), Vec::new);
    let mut failure = None;
    for thread in threads {
        match thread.join().unwrap_or(Err(LoadError::Thread)) {
            Ok(recorders) => {
                for (reading, recorder) in recorders.into_iter().enumerate() {
                    notes[reading].push(recorder);
                }
            }
            Err(e) => failure = failure.or(Some(e)),
        }
    }
    if let Some(e) = failure {
        return Err(e);
    }
    Ok(notes
        .into_iter()
        .zip(rows.kept)
        .filter_map(|(parts, rows)| {
            let lane = parts.first()?.lane;
            let connections = u64::from(job.lanes[lane].connections);
            merge(parts, rows, connections, &job.io.to_string(), &job.cpus)
        })
        .collect())
}

/// Releases the other threads when this one ends early, also by a panic.
struct BreakUp<'a>(&'a Barrier);

impl Drop for BreakUp<'_> {
    fn drop(&mut self) {
        self.0.break_up();
    }
}

fn work<I: Io>(
    job: &Arc<Job>,
    thread: usize,
    barrier: &Barrier,
    stop: &AtomicBool,
    tell: mpsc::Sender<Message>,
) -> Result<Vec<Recorder>, LoadError> {
    net::os::sharpen_timers();
    if !job.cpus.is_empty() {
        let cpu = job.cpus[thread % job.cpus.len()];
        net::os::bind_to_cpus(&[cpu]).map_err(|source| LoadError::Bind { cpu, source })?;
    }
    Worker::<I>::open(job.clone(), thread, tell)?.run(barrier, stop)
}
