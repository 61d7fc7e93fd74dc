//! Which event loop runs.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Io, IoOptions, Uring};

/// The event loop to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IoKind {
    Uring,
    Epoll,
}

/// Whether io_uring got no memory in this process.
static URING_LACKED_MEMORY: AtomicBool = AtomicBool::new(false);

/// Why io_uring cannot be used here; `None` when it can. Tried once per process.
pub fn uring_unavailable() -> Option<&'static str> {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    REASON
        .get_or_init(|| {
            let options = IoOptions {
                outgoing: 4,
                accepted: 4,
                buffers: 4,
                buffer_size: 4096,
                ..IoOptions::default()
            };
            let error = Uring::open(options).err()?;
            if error.kind() == io::ErrorKind::OutOfMemory {
                URING_LACKED_MEMORY.store(true, Ordering::Relaxed);
            }
            Some(error.to_string())
        })
        .as_deref()
}

/// Whether io_uring got no memory in this process, so that epoll is used ([`IoKind::choose`]). The
/// error does not say whether it was `RLIMIT_MEMLOCK` that kept it from that.
pub fn uring_lacked_memory() -> bool {
    URING_LACKED_MEMORY.load(Ordering::Relaxed)
}

impl IoKind {
    /// io_uring if the kernel allows it and has not lacked memory so far, epoll otherwise.
    pub fn best() -> Self {
        match uring_lacked_memory() || uring_unavailable().is_some() {
            false => IoKind::Uring,
            true => IoKind::Epoll,
        }
    }

    /// Starts something on the event loop that was asked for. If none was, starts it on the best
    /// one, and on epoll if io_uring then gets no memory (`RLIMIT_MEMLOCK` limits what it locks for
    /// each user). `refusal` says why a loop could not be opened.
    pub fn choose<T, E>(
        asked: Option<IoKind>,
        refusal: impl Fn(&E) -> Option<&io::Error>,
        mut start: impl FnMut(IoKind) -> Result<T, E>,
    ) -> Result<T, E> {
        let kind = asked.unwrap_or_else(IoKind::best);
        let result = start(kind);
        let lacks_memory = |error: &E| {
            refusal(error).is_some_and(|error| error.kind() == io::ErrorKind::OutOfMemory)
        };
        match (asked, kind, &result) {
            (None, IoKind::Uring, Err(error)) if lacks_memory(error) => {
                // Later loops use epoll too, so that what is compared runs on the same loop.
                URING_LACKED_MEMORY.store(true, Ordering::Relaxed);
                start(IoKind::Epoll)
            }
            _ => result,
        }
    }
}

impl fmt::Display for IoKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IoKind::Uring => "io_uring",
            IoKind::Epoll => "epoll",
        })
    }
}

impl FromStr for IoKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "uring" | "io_uring" => Ok(IoKind::Uring),
            "epoll" => Ok(IoKind::Epoll),
            other => Err(format!("expected `uring` or `epoll`, found `{other}`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn itself(error: &io::Error) -> Option<&io::Error> {
        Some(error)
    }

    /// Refuses io_uring with an error. Returns the loops that were tried, and the result.
    fn tried(asked: Option<IoKind>, errno: i32) -> (Vec<IoKind>, Result<IoKind, io::Error>) {
        let mut tried = Vec::new();
        let result = IoKind::choose(asked, itself, |kind| {
            tried.push(kind);
            match kind {
                IoKind::Uring => Err(io::Error::from_raw_os_error(errno)),
                IoKind::Epoll => Ok(kind),
            }
        });
        (tried, result)
    }

    #[test]
    fn epoll_takes_the_place_of_an_io_uring_without_memory_unless_that_was_asked_for() {
        let (kinds, result) = tried(Some(IoKind::Uring), libc::ENOMEM);
        assert_eq!(kinds, [IoKind::Uring]);
        assert!(result.is_err());
        if uring_unavailable().is_some() {
            return;
        }
        let (kinds, result) = tried(None, libc::EMFILE);
        assert_eq!(kinds, [IoKind::Uring], "another error");
        assert!(result.is_err());
        assert_eq!(IoKind::best(), IoKind::Uring);
        let (kinds, result) = tried(None, libc::ENOMEM);
        assert_eq!(kinds, [IoKind::Uring, IoKind::Epoll]);
        assert!(result.is_ok());
        // From now on epoll is used at once.
        assert_eq!(tried(None, libc::ENOMEM).0, [IoKind::Epoll]);
    }
}
