//! Connections that are held open without being used.
//!
//! They have threads and event loops of their own, which sleep once all are open, but for pings: the
//! load beside them costs what it costs without them. A connection is opened, has one request and its
//! answer unless it is silent, and is left alone; HTTP/2 answers SETTINGS and PING, and pings are sent if
//! that is asked for. At most [`OPENING_MAX`] of a thread are being opened at a time, so that they fit into
//! a short accept queue.

mod error;
mod opening;
mod sources;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use net::{Epoll, Io, IoKind, IoOptions, Uring, os};
use readings::IdleReading;
use tls::Secure;

use crate::job::Job;
use crate::job::share::ThreadShare;
use crate::progress::LoadError;
use crate::run::clients;
pub use error::IdleError;
use worker::IdleWorker;

/// The most connections of a thread that are being opened at a time.
const OPENING_MAX: usize = 32;
/// The most connections of a thread.
const OWN_MAX: u64 = 20_000;
/// Open files that are left for all else.
const OTHER_FILES: u64 = 256;
/// Slots beyond the connections: one is free again only when the kernel has released it.
const SPARE_SLOTS: u32 = 2 * OPENING_MAX as u32;
/// Parts of all connections that are told apart.
const WHOLE: u32 = 1_000_000;
/// Interval at which a stop from outside is noticed.
const STOP_CHECK: Duration = Duration::from_millis(20);

/// What the threads and their holder share.
struct Shared {
    /// How many of all connections are wanted, in parts of [`WHOLE`].
    wanted: AtomicU32,
    is_over: AtomicBool,
    /// Connections that are open and idle.
    open: AtomicU64,
}

/// Of a thread: it has as many connections as were wanted.
struct Reached(u32);

/// Holds the idle connections of a job's targets until [`IdleHolder::close`].
pub struct IdleHolder {
    shared: Arc<Shared>,
    reached: Receiver<Reached>,
    threads: Vec<JoinHandle<Result<Vec<Option<IdleReading>>, LoadError>>>,
}

impl IdleHolder {
    /// Starts the threads, without any connection yet; `None` for a job without idle connections.
    ///
    /// # Errors
    /// When ports or open files are too few for the connections, or the system refuses an event loop.
    pub fn start(job: &Job) -> Result<Option<Self>, LoadError> {
        let all = own_connections(job);
        if all == 0 {
            return Ok(None);
        }
        os::raise_open_files();
        let sources = sources::of_targets(job)?;
        let start = |io| Self::start_on(io, job, all, &sources);
        IoKind::choose(job.io, LoadError::refusal, start).map(Some)
    }

    fn start_on(
        io: IoKind,
        job: &Job,
        all: u64,
        sources: &[Vec<std::net::SocketAddr>],
    ) -> Result<Self, LoadError> {
        let files = os::open_files().saturating_sub(OTHER_FILES);
        let own_max = match io {
            // The ring's own table, which the same limit bounds.
            IoKind::Uring => OWN_MAX.min(files.saturating_sub(u64::from(SPARE_SLOTS))),
            IoKind::Epoll if all > files => {
                return Err(IdleError::files(all, os::open_files()).into());
            }
            IoKind::Epoll => OWN_MAX,
        };
        let count = all.div_ceil(own_max.max(1)) as usize;
        let shared = Arc::new(Shared {
            wanted: AtomicU32::new(0),
            is_over: AtomicBool::new(false),
            open: AtomicU64::new(0),
        });
        let (sender, reached) = mpsc::channel();
        let (opened, is_open) = mpsc::channel();
        let mut threads = Vec::new();
        for thread in 0..count {
            let (job, sources) = (job.clone(), sources.to_vec());
            let (shared, sender) = (shared.clone(), sender.clone());
            let opened = opened.clone();
            let work = move || {
                let part = Part {
                    job: &job,
                    sources: &sources,
                    thread,
                    threads: count,
                };
                match io {
                    IoKind::Uring => part.keep::<Uring>(&shared, &sender, opened),
                    IoKind::Epoll => part.keep::<Epoll>(&shared, &sender, opened),
                }
            };
            threads.push(os::start_thread("of idle connections", work)?);
        }
        drop((sender, opened));
        let mut holder = Self {
            shared,
            reached,
            threads,
        };
        // A thread that ends early has a reason.
        match is_open.iter().count() == count {
            true => Ok(holder),
            false => Err(holder.failure()),
        }
    }

    /// Opens or closes nothing that is there, and opens what lacks until so large a part, 0 to 1, of
    /// all connections is open. False if `stop` was set before.
    ///
    /// # Errors
    /// When connections cannot be opened.
    pub fn open(&mut self, part: f64, stop: &AtomicBool) -> Result<bool, LoadError> {
        let wanted = (part.clamp(0.0, 1.0) * f64::from(WHOLE)).round() as u32;
        if self.shared.wanted.swap(wanted, Ordering::AcqRel) == wanted {
            return Ok(true);
        }
        let mut left = self.threads.len();
        while left > 0 {
            match self.reached.recv_timeout(STOP_CHECK) {
                Ok(Reached(part)) => left -= usize::from(part == wanted),
                Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => return Ok(false),
                Err(RecvTimeoutError::Timeout) => {
                    if self.threads.iter().any(JoinHandle::is_finished) {
                        return Err(self.failure());
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.failure()),
            }
        }
        Ok(true)
    }

    /// Connections that are open and idle now.
    pub fn open_now(&self) -> u64 {
        self.shared.open.load(Ordering::Relaxed)
    }

    /// Closes all connections. The readings are those of the targets, in their order; `None` for one
    /// without idle connections.
    ///
    /// # Errors
    /// When an event loop failed meanwhile.
    pub fn close(mut self) -> Result<Vec<Option<IdleReading>>, LoadError> {
        self.end()
    }

    /// As [`IdleHolder::close`], for a holder that is kept.
    ///
    /// # Errors
    /// As there.
    pub fn end(&mut self) -> Result<Vec<Option<IdleReading>>, LoadError> {
        self.shared.is_over.store(true, Ordering::Release);
        let mut sum: Vec<Option<IdleReading>> = Vec::new();
        let mut failure = None;
        for thread in self.threads.drain(..) {
            match thread.join().unwrap_or(Err(LoadError::Thread)) {
                Ok(own) if sum.is_empty() => sum = own,
                Ok(own) => {
                    for (sum, own) in sum.iter_mut().zip(own) {
                        match (sum.as_mut(), own) {
                            (Some(sum), Some(own)) => sum.add(&own),
                            (_, own) => *sum = sum.take().or(own),
                        }
                    }
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(sum), Err)
    }

    /// Ends all threads for what one of them has met.
    fn failure(&mut self) -> LoadError {
        self.end().err().unwrap_or(LoadError::Thread)
    }
}

impl Drop for IdleHolder {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
    }
}

/// Idle connections of the job's own threads, to all targets.
fn own_connections(job: &Job) -> u64 {
    (0..job.targets.len())
        .map(|target| own_of(job, target))
        .sum()
}

/// Those to one target: of a load over several machines this one's part.
fn own_of(job: &Job, target: usize) -> u64 {
    let Some(idle) = job.targets[target].idle else {
        return 0;
    };
    let shares = (0..job.threads).map(|thread| ThreadShare {
        connections: u64::from(idle.connections),
        ..job.share(target, thread)
    });
    shares.map(ThreadShare::own_connections).sum()
}

/// One thread's part.
struct Part<'j> {
    job: &'j Job,
    /// By target.
    sources: &'j [Vec<std::net::SocketAddr>],
    thread: usize,
    threads: usize,
}

impl Part<'_> {
    /// The part of so many connections to a target.
    fn of(&self, connections: u64) -> u64 {
        ThreadShare {
            thread: self.thread as u64,
            threads: self.threads as u64,
            connections,
        }
        .own_connections()
    }

    fn keep<I: Io>(
        &self,
        shared: &Shared,
        reached: &Sender<Reached>,
        opened: Sender<()>,
    ) -> Result<Vec<Option<IdleReading>>, LoadError> {
        let cpus = &self.job.cpus;
        if !cpus.is_empty() {
            os::bind_to_cpus(cpus).map_err(|source| LoadError::Bind {
                cpu: cpus[0],
                source,
            })?;
        }
        let targets = 0..self.job.targets.len();
        let own: u64 = targets.map(|one| self.of(own_of(self.job, one))).sum();
        let options = IoOptions {
            outgoing: own as u32 + SPARE_SLOTS,
            buffers: 64,
            ..IoOptions::default()
        };
        let open = |source| IdleError::Loop {
            connections: own,
            source,
        };
        let io = I::open(options).map_err(open)?;
        let io = Secure::over(io, &options).with_clients(clients(self.job)?);
        // The holder waits until all have sent or ended.
        let _ = opened.send(());
        drop(opened);
        let worker = IdleWorker::new(io, self, options.slots());
        worker.run(shared, reached)
    }
}
