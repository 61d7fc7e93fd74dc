//! Signals to all processes of a list, such as that of a control group.

use net::process::HeldProcess;

pub(crate) const SIGKILL: i32 = 9;
pub(crate) const SIGTERM: i32 = 15;
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
        let held: Vec<HeldProcess> = some
            .iter()
            .filter_map(|pid| HeldProcess::open(*pid))
            .collect();
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
    signal_all_listed(list, SIGKILL, 20);
}

/// Sends a signal to all processes that `list` names, in as many rounds at most: those that they fork
/// meanwhile get it in the next one. Returns those that got it.
pub(crate) fn signal_all_listed(
    list: impl Fn() -> Vec<i32>,
    signal: i32,
    rounds: usize,
) -> Vec<i32> {
    let mut done: Vec<i32> = Vec::new();
    for _ in 0..rounds {
        let rest = || {
            let mut rest = list();
            rest.retain(|pid| !done.contains(pid));
            rest
        };
        let reached = signal_listed(rest, signal);
        if reached.is_empty() {
            break;
        }
        done.extend(reached);
    }
    done
}
