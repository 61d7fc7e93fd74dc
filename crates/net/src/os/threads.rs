//! Threads that the system may refuse to start.
//!
//! [`std::thread::spawn`] panics then. Everything outside tests starts its threads here, and says
//! what was lacking.

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::io;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use rustix::process::{Resource, getrlimit};

/// What the standard library gives a thread, whatever `RUST_MIN_STACK` says.
const STACK_BYTES: usize = 2 << 20;

/// The system refused to start a thread.
#[derive(Debug, thiserror::Error)]
#[error("cannot start a thread ({purpose}): {source}{}", Lacking(source))]
pub struct StartThreadError {
    purpose: &'static str,
    source: io::Error,
}

impl From<StartThreadError> for io::Error {
    fn from(error: StartThreadError) -> Self {
        io::Error::new(error.source.kind(), error)
    }
}

/// Starts a thread. `purpose` says in an error what it was for, such as `which reads orders`.
///
/// # Errors
/// When the system refuses it: a limit of processes is reached, or memory for its stack is lacking.
pub fn start_thread<T: Send + 'static>(
    purpose: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, StartThreadError> {
    let started = Builder::new().stack_size(STACK_BYTES).spawn(work);
    started.map_err(|source| StartThreadError { purpose, source })
}

/// As [`start_thread`], within a scope, whose end joins the thread.
pub fn start_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    purpose: &'static str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, StartThreadError> {
    let thread = Builder::new().stack_size(STACK_BYTES);
    let started = thread.spawn_scoped(scope, work);
    started.map_err(|source| StartThreadError { purpose, source })
}

/// What an error of starting a thread or a process lacked, with its limits, for the end of a message;
/// nothing for other errors.
pub struct Lacking<'e>(pub &'e io::Error);

impl Display for Lacking<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // EAGAIN.
        if self.0.kind() != io::ErrorKind::WouldBlock {
            return Ok(());
        }
        let limit = |limit: Option<u64>| limit.map_or("none".to_owned(), |limit| limit.to_string());
        write!(
            f,
            ": the limit of processes is reached (RLIMIT_NPROC: {}; pids.max: {}), or memory for a \
             stack is lacking; raise the limit (ulimit -u, or the control group's), or end other \
             programs",
            limit(getrlimit(Resource::Nproc).current),
            limit(pids_max())
        )
    }
}

/// The lowest `pids.max` of this process's control group and of those above it.
fn pids_max() -> Option<u64> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = own.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let is_of_pids = controllers.is_empty() || controllers.split(',').any(|one| one == "pids");
        is_of_pids.then_some(path.trim_start_matches('/'))
    })?;
    let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/pids"].map(std::path::Path::new);
    let groups = roots.iter().flat_map(|root| {
        let all = std::path::Path::new(path).ancestors();
        all.map(|group| root.join(group).join("pids.max"))
    });
    let limits = groups.filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok());
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_starts_and_a_refusal_names_the_limits() {
        let thread = start_thread("of a test", || 7).unwrap();
        assert_eq!(thread.join().unwrap(), 7);
        let scoped = std::thread::scope(|scope| {
            let thread = start_scoped(scope, "of a test", || 8).unwrap();
            thread.join().unwrap()
        });
        assert_eq!(scoped, 8);
        let refused = StartThreadError {
            purpose: "of a test",
            source: io::Error::from_raw_os_error(11),
        };
        let refused = io::Error::from(refused);
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        let told = refused.to_string();
        assert!(
            told.starts_with("cannot start a thread (of a test): "),
            "{told}"
        );
        assert!(
            told.contains("RLIMIT_NPROC: ") && told.contains("pids.max: "),
            "{told}"
        );
        let other = io::Error::from_raw_os_error(2);
        assert_eq!(Lacking(&other).to_string(), "");
    }
}
