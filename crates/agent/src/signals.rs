//! Signals to processes that are found by a list, such as that of a control group.

use net::process::HeldProcess;

pub(crate) const SIGKILL: i32 = 9;
/// Descriptors open at a time.
const HELD_MAX: usize = 128;

/// Sends a signal to each process that `list` names, and returns those that got it.
///
/// A number may be another process's as soon as its own one has ended. So a process is first held by
/// a descriptor and then has to be on the list still: if it lives, it was on the list.
pub(crate) fn signal_listed(list: impl Fn() -> Vec<i32>, signal: i32) -> Vec<i32> {
    let mut reached = Vec::new();
    for some in list().chunks(HELD_MAX) {
        let held = some.iter().filter_map(|pid| HeldProcess::open(*pid));
        let held: Vec<HeldProcess> = held.collect();
        let still = list();
        for one in held {
            if still.contains(&one.pid()) && one.signal(signal).is_ok() {
                reached.push(one.pid());
            }
        }
    }
    reached
}

/// Kills all that `list` names, and what is forked meanwhile.
pub(crate) fn kill_listed(list: impl Fn() -> Vec<i32>) {
    const ROUNDS: usize = 20;
    let mut killed: Vec<i32> = Vec::new();
    for _ in 0..ROUNDS {
        let new = || {
            let all = list().into_iter();
            all.filter(|pid| !killed.contains(pid)).collect::<Vec<_>>()
        };
        let reached = signal_listed(new, SIGKILL);
        if reached.is_empty() {
            return;
        }
        killed.extend(reached);
    }
}
