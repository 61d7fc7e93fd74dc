//! CPUs, limits and the user of this process.

use std::io;

use rustix::process::{self, Resource, Rlimit};
use rustix::thread::{self, CpuSet};

use super::calls::check;

/// Binds the calling thread, and what it starts from now on, to some CPUs.
///
/// # Errors
/// When none of them exists or may be used.
pub fn bind_to_cpus(cpus: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if (cpu as usize) < CpuSet::MAX_CPU {
            set.set(cpu as usize);
        }
    }
    Ok(thread::sched_setaffinity(None, &set)?)
}

/// The CPUs that this process may use.
///
/// # Errors
/// When the kernel refuses.
pub fn allowed_cpus() -> io::Result<Vec<u32>> {
    let set = thread::sched_getaffinity(None)?;
    let cpus = 0..CpuSet::MAX_CPU as u32;
    Ok(cpus.filter(|&cpu| set.is_set(cpu as usize)).collect())
}

/// Bytes of a page of memory.
pub fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// How many files this process may have open.
pub fn open_files() -> u64 {
    process::getrlimit(Resource::Nofile)
        .current
        .unwrap_or(u64::MAX)
}

/// How many bytes of memory all programs of this user may lock; `None` without a limit.
pub fn locked_memory() -> Option<u64> {
    process::getrlimit(Resource::Memlock).current
}

/// Raises the limit of open files as far as the system allows; returns the new limit.
pub fn raise_open_files() -> u64 {
    let limit = process::getrlimit(Resource::Nofile);
    let hard = limit.maximum.unwrap_or(u64::MAX);
    let most = std::fs::read_to_string("/proc/sys/fs/nr_open")
        .ok()
        .and_then(|text| text.trim().parse::<u64>().ok())
        .unwrap_or(hard)
        .min(1 << 20);
    for wanted in [most.max(hard), hard] {
        let new = Rlimit {
            current: Some(wanted),
            maximum: Some(wanted.max(hard)),
        };
        if process::setrlimit(Resource::Nofile, new).is_ok() {
            return wanted;
        }
    }
    open_files()
}

/// Sets the timer slack of the calling thread to 1 ns; the default of 50 us delays its timers.
pub fn sharpen_timers() {
    // Without it timers are late, which shows as schedule lag.
    let _ = thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// Gives the calling thread the highest nice level, for a thread that works in short bursts.
///
/// Not real-time priority: with that, Linux 6.18 charges the thread nine tenths of the CPU time
/// that others use on its CPU.
///
/// # Errors
/// When this process may not.
pub fn run_first() -> io::Result<()> {
    const HIGHEST: i32 = -20;
    Ok(process::setpriority_process(None, HIGHEST)?)
}

/// Whether this process runs as root.
pub fn is_root() -> bool {
    process::geteuid().is_root()
}

/// The number of the user that this process runs as.
pub fn user_id() -> u32 {
    process::geteuid().as_raw()
}

/// Switches to another user and that user's group, in all threads and for good.
///
/// # Errors
/// Without the privilege; the switch may be partial then, so do not go on.
pub fn become_user(user: u32, group: u32) -> io::Result<()> {
    // SAFETY: the pointer and the count describe one group. The C library has every thread do
    // each of these.
    check(unsafe { libc::setgroups(1, &group) })?;
    // SAFETY: takes a number, touches no memory.
    check(unsafe { libc::setgid(group) })?;
    // SAFETY: takes a number, touches no memory.
    check(unsafe { libc::setuid(user) }).map(drop)
}

/// The user and group numbers of a user's name, from the system's user database.
pub fn user_ids(name: &str) -> Option<(u32, u32)> {
    let passwd = std::fs::read_to_string("/etc/passwd").ok()?;
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next()? != name {
            return None;
        }
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        Some((uid, gid))
    })
}

/// Columns of the terminal that standard error or output goes to, if it is one.
pub fn terminal_columns() -> Option<u16> {
    let out = rustix::termios::tcgetwinsize(std::io::stdout());
    let sizes = [out, rustix::termios::tcgetwinsize(std::io::stderr())];
    let mut columns = sizes.into_iter().flatten().map(|size| size.ws_col);
    columns.find(|columns| *columns > 0)
}
