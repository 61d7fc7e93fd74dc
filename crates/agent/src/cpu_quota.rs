//! A bound on the CPU time of what runs in a control group.

use std::fs;
use std::io;
use std::path::Path;

/// In each of these stretches a group gets its share: short, so that nothing stands still for long.
/// The kernel's own is 100 ms.
const PERIOD_US: u64 = 10_000;
/// The kernel takes no longer stretches...
const PERIOD_US_MAX: u64 = 1_000_000;
/// ...and no smaller share of one.
const QUOTA_US_MIN: u64 = 1_000;

/// Where version 1 of control groups has the controller of CPU time, if it has it.
pub fn v1() -> Option<&'static Path> {
    let folder = Path::new("/sys/fs/cgroup/cpu");
    let files = ["cpu.cfs_quota_us", "cpu.shares"];
    let is_there = files.iter().any(|file| folder.join(file).exists());
    is_there.then_some(folder)
}

/// Bounds what runs in a group to so many CPUs together; `None` for no bound.
///
/// # Errors
/// When the group has not got the controller, or this process may not.
pub fn set(folder: &Path, cpus: Option<f64>) -> io::Result<()> {
    let turn = cpus.map(turn);
    let quota = folder.join("cpu.cfs_quota_us");
    if !quota.exists() {
        let text = turn.map_or_else(
            || "max".to_owned(),
            |(quota_us, period_us)| format!("{quota_us} {period_us}"),
        );
        return fs::write(folder.join("cpu.max"), text);
    }
    // A quota of the last period may be too small for a longer one.
    fs::write(&quota, "-1")?;
    if let Some((quota_us, period_us)) = turn {
        fs::write(folder.join("cpu.cfs_period_us"), period_us.to_string())?;
        fs::write(&quota, quota_us.to_string())?;
    }
    Ok(())
}

/// The share, and of what stretch, us.
fn turn(cpus: f64) -> (u64, u64) {
    let cpus = cpus.max(QUOTA_US_MIN as f64 / PERIOD_US_MAX as f64);
    let period_us = PERIOD_US.max((QUOTA_US_MIN as f64 / cpus) as u64);
    let quota_us = ((cpus * period_us as f64).round() as u64).max(QUOTA_US_MIN);
    (quota_us, period_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_shares_have_longer_stretches() {
        assert_eq!(turn(1.5), (15_000, 10_000));
        assert_eq!(turn(0.1), (1_000, 10_000));
        assert_eq!(turn(0.05), (1_000, 20_000));
        assert_eq!(turn(0.0), (1_000, 1_000_000));
    }
}
