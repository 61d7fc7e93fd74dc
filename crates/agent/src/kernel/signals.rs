//! Signals to all processes of a list, such as that of a control group.

use net::process::HeldProcess;

pub(crate) const SIGKILL: i32 = 9;
/// The most pidfds that are open at a time.
const HELD_MAX: usize = 128;

/// Sends a signal to each process that `list` names, and returns those that got it.
///
/// A process ID can be reused once its process has ended. So each process is first opened as a
/// pidfd; then the list is read again, and only processes that are still on it get the signal. A
/// process that the signal reaches was therefore on the list.
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

/// Kills all processes that `list` names, and those that they fork meanwhile.
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
