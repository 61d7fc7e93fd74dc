//! What a running load reports, and why it ends early.

use std::io;

use tls::TlsError;

use crate::job::JobError;
use crate::prepare::PrepareError;
use crate::record::rows::{Row, RowMessage};

/// The progress of a running load, a few times a second; never from the hot path.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// A segment begins (as the first thread sees it).
    SegmentBegins {
        /// Number of the segment.
        segment: usize,
    },
    /// A segment begins later than at the time that several machines have in common (as the first
    /// thread sees it).
    StartsLate {
        /// Number of the segment.
        segment: usize,
        late_ns: u64,
    },
    /// A segment has ended with its last answer, or when the time to wait for it was over (as the
    /// first thread sees it).
    SegmentEnds {
        /// Number of the segment.
        segment: usize,
    },
    /// A segment's measured window begins (as the first thread sees it).
    WindowOpens {
        /// Number of the segment.
        segment: usize,
    },
    /// A segment's measured window has ended (as the first thread sees it).
    WindowCloses {
        /// Number of the segment.
        segment: usize,
    },
    /// Counts of one thread since its last tick.
    Tick {
        thread: usize,
        /// Number of the segment.
        segment: usize,
        /// Good answers.
        requests: u64,
        /// Failures.
        errors: u64,
        /// Messages of exchanges that last.
        messages: u64,
    },
    /// A row is over, on all threads (only if the job asks for rows).
    Row(Box<Row>),
}

/// What a thread sends to the caller's thread.
pub(crate) enum Message {
    Progress(Progress),
    Rows(RowMessage),
}

/// Why a load could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The job makes no sense.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The TLS settings of a target cannot be used.
    #[error("{address}: {source}")]
    Tls {
        address: net::Address,
        #[source]
        source: TlsError,
    },
    /// A target does not answer as it should.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// An event loop could not be opened.
    #[error(
        "cannot open an event loop with {connections} connections: {source}{}",
        cure(source)
    )]
    Open {
        /// Connections per thread.
        connections: u64,
        /// Why not.
        source: io::Error,
    },
    /// An event loop failed.
    #[error("the event loop failed: {0}")]
    Loop(#[source] io::Error),
    /// So many requests of an open loop wait for a connection that no more of them are kept.
    #[error(
        "{waiting} requests are due and wait for a free connection, and a thread has no room for \
         more of them: the rate is far above what the target answers, or what this client can send; \
         give a lower rate, or a shorter time limit of answers (--timeout), after which requests no \
         longer wait"
    )]
    Backlog {
        /// Requests of the thread that wait.
        waiting: u64,
    },
    /// A thread could not be bound to its CPU.
    #[error("cannot bind a thread to CPU {cpu}: {source}")]
    Bind {
        cpu: u32,
        /// Why not.
        source: io::Error,
    },
    /// A thread cannot be started.
    #[error(transparent)]
    NoThread(#[from] net::os::StartThreadError),
    /// A thread died.
    #[error("a load thread panicked; this is a defect of the program")]
    Thread,
}

/// EMFILE: the process has no file descriptors left.
const NO_DESCRIPTORS: i32 = 24;

/// What to do about the refusal of an event loop, where that is known.
fn cure(refusal: &io::Error) -> String {
    if refusal.raw_os_error() != Some(NO_DESCRIPTORS) {
        return String::new();
    }
    format!(
        "; the limit of open files is {}, and each connection takes one or two: raise it \
         (ulimit -n), or open fewer connections",
        net::os::open_files()
    )
}

impl LoadError {
    /// Why an event loop could not be opened.
    pub(crate) fn refusal(&self) -> Option<&io::Error> {
        match self {
            LoadError::Open { source, .. } => Some(source),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_of_descriptors_is_told_with_its_cure() {
        let refused = |errno| {
            let source = io::Error::from_raw_os_error(errno);
            let connections = 25_000;
            LoadError::Open {
                connections,
                source,
            }
            .to_string()
        };
        let text = refused(NO_DESCRIPTORS);
        let limit = format!("the limit of open files is {}", net::os::open_files());
        for part in ["with 25000 connections: Too many", &limit, "(ulimit -n)"] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
        // ENOMEM
        assert!(!refused(12).contains("ulimit"));
    }
}
