//! Counters of the kernel for threads and all that they start (`perf_event_open`, Linux 2.6.31).

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::{AddAssign, Sub};
use std::os::fd::{FromRawFd, OwnedFd};

/// What is counted. From `linux/perf_event.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Instructions that the processor retired; only where it has counters that the kernel may use.
    Instructions,
    /// Time on a CPU, ns; counted by the kernel itself, on every machine.
    TaskClock,
}

impl Event {
    /// `PERF_TYPE_…` and `PERF_COUNT_…`.
    fn kind_and_config(self) -> (u32, u64) {
        match self {
            Event::Instructions => (0, 1),
            Event::TaskClock => (1, 1),
        }
    }
}

/// A reading of one counter or the sum of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub value: u64,
    /// Time in which its threads ran and it should have counted, ns.
    pub enabled_ns: u64,
    /// Time of that in which it counted, ns. It is less where more events are wanted than the
    /// processor has counters, or on CPUs of another kind.
    pub running_ns: u64,
}

impl Count {
    /// The value, scaled to all of the time in which it should have counted. `None` where it did not
    /// count for at least half of that: then the rest is a guess.
    pub fn scaled(self) -> Option<u64> {
        let (enabled, running) = (self.enabled_ns, self.running_ns);
        if running >= enabled {
            return Some(self.value);
        }
        (running >= enabled / 2 && running > 0)
            .then(|| (self.value as f64 * enabled as f64 / running as f64).round() as u64)
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.value = self.value.saturating_add(other.value);
        self.enabled_ns = self.enabled_ns.saturating_add(other.enabled_ns);
        self.running_ns = self.running_ns.saturating_add(other.running_ns);
    }
}

impl Sub for Count {
    type Output = Self;

    /// What was counted since `before`.
    fn sub(self, before: Self) -> Self {
        Self {
            value: self.value.saturating_sub(before.value),
            enabled_ns: self.enabled_ns.saturating_sub(before.enabled_ns),
            running_ns: self.running_ns.saturating_sub(before.running_ns),
        }
    }
}

/// Counts from when it is opened until it is dropped, for one thread and for all threads and
/// processes that it starts from then on, also after it has ended.
#[derive(Debug)]
pub struct Counter(File);

/// `perf_event_attr` as it was at first (`PERF_ATTR_SIZE_VER0`), which every kernel takes.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
}

const _: () = assert!(std::mem::size_of::<Attributes>() == 64);

/// `PERF_FORMAT_TOTAL_TIME_ENABLED` and `PERF_FORMAT_TOTAL_TIME_RUNNING`.
const BOTH_TIMES: u64 = 0b11;
/// Bits of the flags, in the order of the header's bit field.
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const CLOSE_ON_EXEC: libc::c_ulong = 8;
const ANY_CPU: libc::c_long = -1;
const NO_GROUP: libc::c_long = -1;

impl Counter {
    /// Opens a counter on a thread; 0 is the calling one. `with_kernel` also counts what the kernel
    /// does for it, which takes a privilege where `kernel.perf_event_paranoid` is above 1.
    ///
    /// # Errors
    /// When the thread has ended (`ESRCH`), the event cannot be counted here (`ENOENT`,
    /// `EOPNOTSUPP`), or it is not permitted (`EACCES`, `EPERM`).
    pub fn open(thread: i32, event: Event, with_kernel: bool) -> io::Result<Self> {
        // -1 would be every thread of a CPU.
        if thread < 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let (kind, config) = event.kind_and_config();
        let kernel = if with_kernel { 0 } else { EXCLUDE_KERNEL };
        let flags = INHERIT | EXCLUDE_HYPERVISOR | kernel;
        let attributes = Attributes {
            kind,
            size: std::mem::size_of::<Attributes>() as u32,
            config,
            read_format: BOTH_TIMES,
            // A bit field begins at the lowest bit, or at the highest one.
            flags: match cfg!(target_endian = "big") {
                true => flags.reverse_bits(),
                false => flags,
            },
            ..Attributes::default()
        };
        // SAFETY: `attributes` has the layout of the first version of `perf_event_attr` and says
        // so in `size`; the kernel only reads it.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                libc::c_long::from(thread),
                ANY_CPU,
                NO_GROUP,
                CLOSE_ON_EXEC,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just made this descriptor, and nobody else owns it. Descriptors
        // fit into an i32.
        let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
        Ok(Self(File::from(fd)))
    }

    /// What it has counted so far.
    ///
    /// # Errors
    /// When the kernel gives no figures, as of an event that could never be placed on a CPU.
    pub fn read(&self) -> io::Result<Count> {
        let mut bytes = [0; 24];
        (&self.0).read_exact(&mut bytes)?;
        let number = |at: usize| {
            let mut one = [0; 8];
            one.copy_from_slice(&bytes[at..at + 8]);
            u64::from_ne_bytes(one)
        };
        Ok(Count {
            value: number(0),
            enabled_ns: number(8),
            running_ns: number(16),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::{Duration, Instant};

    use crate::os::thread_cpu_ns;

    /// A counter of CPU time on the calling thread, which each test has for itself. Where a
    /// container forbids the call there is none.
    fn counter() -> Option<Counter> {
        match Counter::open(0, Event::TaskClock, false) {
            Ok(counter) => Some(counter),
            Err(e) => {
                testing::skip(&format!("the kernel refuses perf_event_open: {e}"));
                None
            }
        }
    }

    /// Keeps the calling thread busy until it has used so much CPU time.
    fn work(ms: u64) {
        let end_ns = thread_cpu_ns() + ms * 1_000_000;
        while thread_cpu_ns() < end_ns {
            std::hint::spin_loop();
        }
    }

    fn ms(count: Count) -> f64 {
        count.value as f64 / 1e6
    }

    #[test]
    fn a_counter_agrees_with_the_cpu_time_of_its_thread() {
        let Some(counter) = counter() else { return };
        let before_ns = thread_cpu_ns();
        let first = counter.read().unwrap();
        work(20);
        // Sleep takes no CPU time.
        std::thread::sleep(Duration::from_millis(20));
        let counted = counter.read().unwrap() - first;
        let used_ms = (thread_cpu_ns() - before_ns) as f64 / 1e6;
        assert!((ms(counted) - used_ms).abs() < 1.0, "{counted:?} {used_ms}");
        assert_eq!(counted.scaled(), Some(counted.value));
        let another_thread = std::thread::spawn(|| {
            // It was started later, so it is counted too.
            work(30);
        });
        another_thread.join().unwrap();
        let with_thread = counter.read().unwrap() - first;
        // The CPU time of a thread that is just ending may be counted up to its last tick only, which is
        // 10 ms ago at most.
        assert!(ms(with_thread) >= used_ms + 20.0, "{with_thread:?}");
    }

    #[test]
    fn threads_that_began_before_have_counters_of_their_own() {
        let (tid, begin) = (std::sync::mpsc::channel(), std::sync::mpsc::channel());
        let worker = std::thread::spawn(move || {
            tid.0
                .send(rustix::thread::gettid().as_raw_nonzero())
                .unwrap();
            if begin.1.recv().is_ok() {
                work(25);
            }
        });
        let number = tid.1.recv().unwrap().get();
        if let (Some(own), Ok(other)) = (counter(), Counter::open(number, Event::TaskClock, false))
        {
            begin.0.send(()).unwrap();
            worker.join().unwrap();
            // Also after it has ended.
            let other = other.read().unwrap();
            // Two clocks, so it may be a little less.
            assert!((24.0..60.0).contains(&ms(other)), "{other:?}");
            let own = own.read().unwrap();
            assert!(ms(own) < 20.0, "{own:?}");
        }
    }

    #[test]
    fn children_are_counted_also_when_they_have_ended() {
        let Some(counter) = counter() else { return };
        let first = counter.read().unwrap();
        let busy = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sh -c 'exit 0'";
        let begin = Instant::now();
        assert!(
            Command::new("sh")
                .args(["-c", busy])
                .status()
                .unwrap()
                .success()
        );
        let counted = counter.read().unwrap() - first;
        assert!(ms(counted) > 1.0, "{counted:?}");
        // They ran one after the other.
        let most_ms = begin.elapsed().as_secs_f64() * 1e3;
        assert!(ms(counted) < most_ms + 5.0, "{counted:?} in {most_ms} ms");
    }

    #[test]
    fn a_thread_that_is_not_there_and_all_threads_are_refused() {
        assert!(Counter::open(-1, Event::TaskClock, false).is_err());
        assert!(Counter::open(i32::MAX, Event::TaskClock, false).is_err());
    }

    #[test]
    fn a_counter_that_shared_its_place_is_scaled_and_one_that_hardly_counted_is_refused() {
        let scaled = |value, enabled_ns, running_ns| {
            let count = Count {
                value,
                enabled_ns,
                running_ns,
            };
            count.scaled()
        };
        assert_eq!(scaled(1_000, 100, 100), Some(1_000));
        assert_eq!(scaled(600, 100, 60), Some(1_000));
        assert_eq!(scaled(100, 100, 10), None);
        assert_eq!(scaled(0, 100, 0), None);
        // A thread that did not run.
        assert_eq!(scaled(0, 0, 0), Some(0));
        assert_eq!(scaled(0, 1, 0), None);
    }
}
