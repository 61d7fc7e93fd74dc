//! How a child process is set up between fork and exec.

use std::io;
use std::os::fd::AsRawFd;

use rustix::process::{self, Resource, Rlimit};
use rustix::thread;

use super::calls::check;
use super::system::bind_to_cpus;

/// How a child process is set up before exec.
#[derive(Debug, Default)]
pub struct ChildSetup {
    /// The `cgroup.procs` file of the control group that the child enters.
    pub enter: Option<std::fs::File>,
    /// CPUs that it and its descendants may use; empty leaves them as they are.
    pub cpus: Vec<u32>,
    /// A session of its own: no terminal, and a process group to signal as a whole.
    pub own_session: bool,
    /// Killed when the thread that starts it ends.
    pub die_with_parent: bool,
    /// As `enter`, for control groups with limits: if it cannot enter them it does not start.
    pub confine: Vec<std::fs::File>,
    /// Namespaces that it enters, in this order; one of users comes first.
    pub namespaces: Vec<std::fs::File>,
    /// The folder that it works in once it is in a mount namespace, where it would be the root.
    pub folder: Option<std::ffi::CString>,
    /// Whether programs that it starts cannot gain privileges, neither by the set-user-ID bit nor
    /// by file capabilities (`no_new_privs`).
    pub no_new_privileges: bool,
    /// Whether it writes no core files.
    pub no_core_files: bool,
    /// Whether it gets only standard input, output and error, and none of the other descriptors
    /// that this process has inherited.
    pub no_other_descriptors: bool,
    /// How many processes and threads its user may have, including those that run already.
    pub processes_max: Option<u64>,
}

impl ChildSetup {
    /// Only: the child dies with the thread that starts it.
    pub fn dying_with_parent() -> Self {
        Self {
            die_with_parent: true,
            ..Self::default()
        }
    }
}

/// Sets up a command's child between fork and exec.
pub fn set_up_child(command: &mut std::process::Command, setup: ChildSetup) {
    use std::os::unix::process::CommandExt;
    let parent = std::process::id();
    // SAFETY: between fork and exec the closure makes plain system calls on memory that was
    // allocated before, nothing that takes a lock or allocates.
    unsafe {
        command.pre_exec(move || {
            if let Some(file) = &setup.enter {
                // A group for accounting is optional.
                let _ = libc::write(file.as_raw_fd(), c"0".as_ptr().cast(), 1);
            }
            for file in &setup.confine {
                check(libc::write(file.as_raw_fd(), c"0".as_ptr().cast(), 1) as i32)?;
            }
            for namespace in &setup.namespaces {
                check(libc::setns(namespace.as_raw_fd(), 0))?;
            }
            if let Some(folder) = &setup.folder {
                check(libc::chdir(folder.as_ptr()))?;
            }
            if setup.own_session {
                check(libc::setsid())?;
                // nohup and shells have background programs ignore them, and exec keeps that.
                for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
                    libc::signal(signal, libc::SIG_DFL);
                }
            }
            if setup.die_with_parent {
                die_with_parent(parent)?;
            }
            if !setup.cpus.is_empty() {
                bind_to_cpus(&setup.cpus)?;
            }
            if setup.no_core_files {
                lower_limit(Resource::Core, 0)?;
            }
            if let Some(processes) = setup.processes_max {
                lower_limit(Resource::Nproc, processes)?;
            }
            if setup.no_new_privileges {
                thread::set_no_new_privs(true)?;
            }
            if setup.no_other_descriptors {
                close_others_on_exec();
            }
            Ok(())
        });
    }
}

/// Kills the calling process when the thread that started it ends. To be called in the child before
/// exec. `parent` is the process of that thread.
///
/// # Errors
/// When the parent has ended already, so that no signal would come.
pub fn die_with_parent(parent: u32) -> io::Result<()> {
    // Only system calls, which are safe between fork and exec.
    let _ = process::set_parent_process_death_signal(Some(process::Signal::KILL));
    match process::getppid() {
        Some(now) if now.as_raw_pid() as u32 != parent => {
            Err(io::Error::from_raw_os_error(libc::ESRCH))
        }
        // A parent in another pid namespace has no process ID here.
        _ => Ok(()),
    }
}

/// Makes exec close all descriptors except the standard ones. To be called in the child before
/// exec.
fn close_others_on_exec() {
    const FIRST: u32 = 3;
    // Tried one by one before Linux 5.11, which lacks the call below: a shell rarely leaves higher
    // ones open.
    const LAST_TRIED: i32 = 1024;
    // SAFETY: takes numbers, touches no memory.
    let closed = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            FIRST,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    if closed != 0 {
        for fd in FIRST as i32..LAST_TRIED {
            // SAFETY: takes numbers, touches no memory. It fails if the descriptor is not open.
            unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
}

/// Lowers a soft and hard limit, unless it is lower already.
fn lower_limit(resource: Resource, most: u64) -> io::Result<()> {
    let most = |now: Option<u64>| Some(now.map_or(most, |now| now.min(most)));
    let now = process::getrlimit(resource);
    let new = Rlimit {
        current: most(now.current),
        maximum: most(now.maximum),
    };
    Ok(process::setrlimit(resource, new)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_whose_parent_has_ended_does_not_start() {
        use std::os::unix::process::CommandExt;
        let with_parent = |parent: u32| {
            let mut command = std::process::Command::new("true");
            // SAFETY: system calls and nothing else.
            unsafe { command.pre_exec(move || die_with_parent(parent)) };
            command.status()
        };
        assert!(with_parent(std::process::id()).unwrap().success());
        // The same as after the parent's end, when another process has adopted the child.
        let error = with_parent(std::process::id() + 1).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH));
    }
}
