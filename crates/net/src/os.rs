//! System calls that the standard library lacks, as safe functions.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use rustix::net::sockopt;
use rustix::process::{self, Resource, Rlimit};
use rustix::thread::{self, CpuSet};

use crate::address::{Address, from_raw};

/// Nanoseconds of CLOCK_MONOTONIC.
#[inline]
pub fn now_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds of CLOCK_MONOTONIC_COARSE: as of the kernel's last tick, some milliseconds ago at
/// most, and cheaper to read than [`now_ns`].
#[inline]
pub fn coarse_now_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC_COARSE)
}

/// Nanoseconds of CLOCK_REALTIME, since 1970.
#[inline]
pub(crate) fn real_ns() -> u64 {
    clock_ns(libc::CLOCK_REALTIME)
}

/// CPU time of the calling thread, in nanoseconds.
#[inline]
pub fn thread_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// How long one thread was ready to run and had no CPU; its `schedstat`, held open.
#[derive(Debug)]
pub struct RunQueueWait(std::fs::File);

impl RunQueueWait {
    /// That of the calling thread; `None` where the kernel does not count it.
    pub fn of_this_thread() -> Option<Self> {
        std::fs::File::open("/proc/thread-self/schedstat")
            .ok()
            .map(Self)
    }

    /// The time so far, in nanoseconds; 0 where it cannot be read.
    pub fn ns(&self) -> u64 {
        use std::os::unix::fs::FileExt;
        // Three numbers of at most 20 digits: time on CPUs, time without one, and how often it got
        // one.
        let mut text = [0; 64];
        let read = self.0.read_at(&mut text, 0).unwrap_or(0);
        let text = std::str::from_utf8(&text[..read]).unwrap_or_default();
        let waited = text.split_ascii_whitespace().nth(1);
        waited.and_then(|ns| ns.parse().ok()).unwrap_or(0)
    }
}

/// CPU time of all threads of this process, in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID)
}

#[inline]
fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut ts = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `ts` is a valid place for the result; these clocks always exist.
    unsafe { libc::clock_gettime(clock, &mut ts) };
    ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64
}

/// CPU time of all ended and awaited children of this process, in nanoseconds.
pub fn children_cpu_ns() -> u64 {
    // SAFETY: an rusage is plain numbers, all zero is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a valid place for the answer.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage) };
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000;
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

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

/// Makes this process the parent of its descendants' orphans.
pub fn adopt_orphans() {
    // Without it init adopts them.
    let _ = process::set_child_subreaper(Some(process::getpid()));
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
    let (pid, status) = process::wait(process::WaitOptions::NOHANG).ok()??;
    Some((pid.as_raw_pid(), status.as_raw()))
}

/// Opens a listening socket: address reuse, and several threads' sockets on one port when
/// `share_port`; `TCP_NODELAY` passes on to what it accepts.
///
/// # Errors
/// When the address is in use, not of this machine, or not allowed.
pub fn listen(address: SocketAddr, backlog: i32, share_port: bool) -> io::Result<TcpListener> {
    let mut attempts = if address.port() == 0 { 8 } else { 1 };
    loop {
        attempts -= 1;
        match listen_once(address, backlog, share_port) {
            // The kernel may give a free port to two sockets that do not listen yet; the later one
            // tries again.
            Err(e) if e.kind() == io::ErrorKind::AddrInUse && attempts > 0 => {}
            result => return result,
        }
    }
}

fn listen_once(address: SocketAddr, backlog: i32, share_port: bool) -> io::Result<TcpListener> {
    let fd = stream_socket(Address::Inet(address).family(), false)?;
    sockopt::set_socket_reuseaddr(&fd, true)?;
    sockopt::set_socket_reuseport(&fd, share_port)?;
    sockopt::set_tcp_nodelay(&fd, true)?;
    rustix::net::bind(&fd, &address)?;
    rustix::net::listen(&fd, backlog)?;
    Ok(TcpListener::from(fd))
}

/// The congestion control that the kernel gives new TCP connections in the network namespace of this
/// thread (`net.ipv4.tcp_congestion_control`), such as `cubic`; `None` if there are no sockets.
pub fn tcp_congestion() -> Option<String> {
    let socket = stream_socket(libc::AF_INET, false).ok()?;
    sockopt::tcp_congestion(&socket).ok()
}

/// Maps zeroed memory that is allocated when it is touched; [`unmap_memory`] frees it.
pub(crate) fn map_memory(bytes: usize) -> io::Result<*mut u8> {
    // SAFETY: a new mapping, of no file, wherever there is room.
    let memory = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(memory.cast())
}

/// Unmaps memory of [`map_memory`], which must not be used any more.
pub(crate) fn unmap_memory(memory: *mut u8, bytes: usize) {
    // SAFETY: the caller owns this mapping and has no reference into it.
    unsafe { libc::munmap(memory.cast(), bytes) };
}

/// A stream socket of an address family.
pub(crate) fn stream_socket(family: i32, nonblocking: bool) -> io::Result<OwnedFd> {
    let mut kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    if nonblocking {
        kind |= libc::SOCK_NONBLOCK;
    }
    // SAFETY: takes numbers, touches no memory.
    let fd = check(unsafe { libc::socket(family, kind, 0) })?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The address of a socket's peer, if it has an IP address.
pub(crate) fn peer(fd: RawFd) -> Option<SocketAddr> {
    // SAFETY: the call writes an address of at most the given length.
    ask_address(|storage, len| unsafe { libc::getpeername(fd, storage, len) })
}

/// The address of a socket's own end, if it has an IP address.
pub(crate) fn local(fd: RawFd) -> Option<SocketAddr> {
    // SAFETY: the call writes an address of at most the given length.
    ask_address(|storage, len| unsafe { libc::getsockname(fd, storage, len) })
}

fn ask_address(
    ask: impl FnOnce(*mut libc::sockaddr, &mut libc::socklen_t) -> i32,
) -> Option<SocketAddr> {
    // SAFETY: a sockaddr_storage is plain bytes, all zero is valid.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let mut len = std::mem::size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    let got = ask((&raw mut storage).cast(), &mut len);
    (got == 0).then(|| from_raw(&storage)).flatten()
}

/// Makes closing the socket send a reset.
pub(crate) fn reset_when_closed(fd: RawFd) {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    // SAFETY: the pointer and length describe `linger`. Where it fails, closing is as usual.
    unsafe {
        libc::setsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            std::mem::size_of::<libc::linger>() as libc::socklen_t,
        )
    };
}

/// Sets a socket's receive buffer, above the system's limit if need be.
///
/// # Errors
/// Without `CAP_NET_ADMIN` in the initial user namespace.
pub fn force_receive_buffer(fd: RawFd, bytes: usize) -> io::Result<()> {
    let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
    set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes)
}

pub(crate) fn set_option(fd: RawFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: the pointer and length describe `value`.
    check(unsafe {
        libc::setsockopt(
            fd,
            level,
            name,
            (&raw const value).cast(),
            std::mem::size_of::<i32>() as libc::socklen_t,
        )
    })
    .map(drop)
}

/// Receives without blocking; the number of bytes, or the `errno`.
pub(crate) fn receive(fd: RawFd, buffer: &mut [u8]) -> Result<usize, i32> {
    again(|| {
        // SAFETY: pointer and length describe the buffer.
        unsafe {
            libc::recv(
                fd,
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                libc::MSG_DONTWAIT,
            )
        }
    })
}

/// Whether a receive would return at once, with data, the end or an error.
pub(crate) fn is_receivable(fd: RawFd) -> bool {
    let mut byte = 0_u8;
    let peeked = again(|| {
        // SAFETY: the pointer is that of one writable byte.
        unsafe {
            libc::recv(
                fd,
                (&raw mut byte).cast(),
                1,
                libc::MSG_DONTWAIT | libc::MSG_PEEK,
            )
        }
    });
    peeked != Err(libc::EAGAIN)
}

/// Repeats a system call while signals interrupt it; its result, or the `errno`.
pub(crate) fn again(mut call: impl FnMut() -> isize) -> Result<usize, i32> {
    loop {
        let n = call();
        if n >= 0 {
            return Ok(n as usize);
        }
        match io::Error::last_os_error().raw_os_error().unwrap_or(0) {
            libc::EINTR => {}
            errno => return Err(errno),
        }
    }
}

pub(crate) fn check(result: i32) -> io::Result<i32> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
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

/// Columns of the terminal that standard error or output goes to, if it is one.
pub fn terminal_columns() -> Option<u16> {
    let out = rustix::termios::tcgetwinsize(std::io::stdout());
    let sizes = [out, rustix::termios::tcgetwinsize(std::io::stderr())];
    let mut columns = sizes.into_iter().flatten().map(|size| size.ws_col);
    columns.find(|columns| *columns > 0)
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
