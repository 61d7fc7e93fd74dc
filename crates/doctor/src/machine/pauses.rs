//! How long a thread that only polls the clock is kept from its CPU.

use std::time::Duration;

/// How long the clock is polled on each CPU.
const LOOK: Duration = Duration::from_secs(1);
/// Interrupts and the kernel's own work take less.
const PAUSE_NS: u64 = 100_000;
/// Pauses of threads that only polled the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Pauses {
    /// The longest time between two readings, ns; 0 when none was long.
    pub longest_ns: u64,
    /// How many were long.
    pub count: u32,
    /// The share of the time that they took together, on the CPU where it was most.
    pub share: f64,
}

impl Pauses {
    /// Keeps each of these CPUs busy for a second. `None` where a thread cannot be started or bound to
    /// one.
    pub fn measure(cpus: &[u32]) -> Option<Self> {
        let looks = std::thread::scope(|scope| {
            let start = |&cpu: &u32| {
                net::os::start_scoped(scope, "which polls the clock", move || look(cpu)).ok()
            };
            let threads: Option<Vec<_>> = cpus.iter().map(start).collect();
            let threads = threads?;
            let looks = threads.into_iter().map(|thread| thread.join().ok()?);
            looks.collect::<Option<Vec<Self>>>()
        })?;
        looks.into_iter().reduce(|a, b| Self {
            longest_ns: a.longest_ns.max(b.longest_ns),
            count: a.count + b.count,
            share: a.share.max(b.share),
        })
    }
}

fn look(cpu: u32) -> Option<Pauses> {
    net::os::bind_to_cpus(&[cpu]).ok()?;
    let begin = net::os::now_ns();
    let mut seen = Pauses::default();
    let (mut last, mut paused_ns) = (begin, 0);
    while last - begin < LOOK.as_nanos() as u64 {
        let now = net::os::now_ns();
        let pause = now - last;
        if pause >= PAUSE_NS {
            seen.longest_ns = seen.longest_ns.max(pause);
            seen.count += 1;
            paused_ns += pause;
        }
        last = now;
    }
    seen.share = paused_ns as f64 / (last - begin) as f64;
    Some(seen)
}
