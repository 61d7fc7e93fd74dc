//! Clocks, and times of threads and processes.

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
