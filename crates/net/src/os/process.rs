//! Signals that cannot reach the wrong process, although process IDs are reused.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, pidfd_open, pidfd_send_signal,
    waitid, waitpid,
};

use super::calls::check;

/// A process held by a pidfd: a signal reaches this process or none.
#[derive(Debug)]
pub struct HeldProcess {
    pid: i32,
    /// The pidfd; `None` before Linux 5.3, and where a container forbids the call.
    descriptor: Option<OwnedFd>,
}

impl HeldProcess {
    /// Opens the process that has this ID now; `None` if there is none.
    pub fn open(pid: i32) -> Option<Self> {
        match pidfd_open(number(pid)?, PidfdFlags::empty()) {
            Ok(descriptor) => Some(Self {
                pid,
                descriptor: Some(descriptor),
            }),
            Err(Errno::SRCH | Errno::INVAL) => None,
            Err(_) => Some(Self {
                pid,
                descriptor: None,
            }),
        }
    }

    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// When the process has ended and was reaped, or may not be signalled.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        match (&self.descriptor, Signal::from_named_raw(signal)) {
            (Some(descriptor), Some(signal)) => Ok(pidfd_send_signal(descriptor, signal)?),
            _ => kill(self.pid, signal),
        }
    }
}

/// The exit status of a child, once it has ended. The child is not reaped: until it is, no other
/// process can get its ID or the ID of its group.
///
/// # Errors
/// When it is not a child of this process, or was reaped already.
pub fn status_unreaped(child: i32) -> io::Result<Option<ExitStatus>> {
    let pid = number(child).ok_or(io::ErrorKind::InvalidInput)?;
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(pid), options)?;
    Ok(status.map(|status| {
        // As waitpid(2) packs it.
        let code = status.exit_status().map(|code| (code & 0xff) << 8);
        let signal = status.terminating_signal();
        ExitStatus::from_raw(code.or(signal).unwrap_or(0))
    }))
}

/// Checks that an ID means a single process: zero and negative IDs mean groups or every process.
fn number(pid: i32) -> Option<Pid> {
    (pid > 0).then(|| Pid::from_raw(pid)).flatten()
}

/// Reaps one child if it has ended.
pub fn reap_child(child: i32) {
    if let Some(pid) = number(child) {
        // It fails where another thread has waited for it.
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

/// Makes this process the parent of its descendants' orphans.
pub fn adopt_orphans() {
    // Without it init adopts them.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Sends a signal to a process, or with a negative number to a process group.
///
/// # Errors
/// When there is no such process, or it may not be signalled. 0 and -1, which mean this process's
/// own group and every process, are refused.
pub fn kill(pid: i32, signal: i32) -> io::Result<()> {
    if matches!(pid, 0 | -1) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: takes numbers, touches no memory.
    check(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// Reaps an ended child without waiting; `None` if there is none.
pub fn reap() -> Option<(i32, i32)> {
    let (pid, status) = rustix::process::wait(WaitOptions::NOHANG).ok()??;
    Some((pid.as_raw_pid(), status.as_raw()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn ended(child: i32) -> ExitStatus {
        loop {
            if let Some(status) = status_unreaped(child).unwrap() {
                return status;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    #[test]
    fn the_status_of_a_child_can_be_read_more_than_once() {
        let mut child = Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        let pid = child.id() as i32;
        let held = HeldProcess::open(pid).unwrap();
        assert_eq!(ended(pid).code(), Some(3));
        assert_eq!(ended(pid).code(), Some(3));
        assert_eq!(child.wait().unwrap().code(), Some(3));
        assert!(status_unreaped(pid).is_err());
        assert!(held.signal(9).is_err());
    }

    #[test]
    fn a_signal_is_told_apart_from_a_status() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id() as i32;
        assert!(status_unreaped(pid).unwrap().is_none());
        HeldProcess::open(pid).unwrap().signal(9).unwrap();
        assert_eq!(ended(pid).signal(), Some(9));
        reap_child(pid);
        assert!(child.try_wait().is_err());
    }

    #[test]
    fn groups_and_all_processes_are_no_process() {
        for pid in [0, -1, i32::MIN, i32::MAX] {
            assert!(HeldProcess::open(pid).is_none(), "{pid}");
        }
        // They mean this process's own group, and every process.
        assert!(kill(0, 0).is_err());
        assert!(kill(-1, 0).is_err());
    }
}
