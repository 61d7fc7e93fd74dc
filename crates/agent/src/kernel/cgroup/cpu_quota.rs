//! A limit on the CPU time of a control group.

use std::fs;
use std::io;
use std::path::Path;

/// Short, so that nothing is throttled for long. The kernel's default is 100 ms.
const PERIOD_US: u64 = 10_000;
/// The kernel's longest period...
const PERIOD_US_MAX: u64 = 1_000_000;
const QUOTA_US_MIN: u64 = 1_000;

/// Where cgroup v1 has its CPU controller, if it has one.
pub fn v1() -> Option<&'static Path> {
    let folder = Path::new("/sys/fs/cgroup/cpu");
    let files = ["cpu.cfs_quota_us", "cpu.shares"];
    let is_there = files.iter().any(|file| folder.join(file).exists());
    is_there.then_some(folder)
}

/// Limits a group to this many CPUs; `None` for no limit.
///
/// # Errors
/// When the group has no CPU controller, or this process may not write to it.
pub fn set(folder: &Path, cpus: Option<f64>) -> io::Result<()> {
    let share = cpus.map(share);
    let quota = folder.join("cpu.cfs_quota_us");
    if !quota.exists() {
        let text = share.map_or_else(
            || "max".to_owned(),
            |(quota_us, period_us)| format!("{quota_us} {period_us}"),
        );
        return fs::write(folder.join("cpu.max"), text);
    }
    // The old quota may be too small for a longer period.
    fs::write(&quota, "-1")?;
    if let Some((quota_us, period_us)) = share {
        fs::write(folder.join("cpu.cfs_period_us"), period_us.to_string())?;
        fs::write(&quota, quota_us.to_string())?;
    }
    Ok(())
}

/// Quota and period, us.
fn share(cpus: f64) -> (u64, u64) {
    let cpus = cpus.max(QUOTA_US_MIN as f64 / PERIOD_US_MAX as f64);
    let period_us = PERIOD_US.max((QUOTA_US_MIN as f64 / cpus) as u64);
    let quota_us = ((cpus * period_us as f64).round() as u64).max(QUOTA_US_MIN);
    (quota_us, period_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_shares_have_longer_periods() {
        assert_eq!(share(1.5), (15_000, 10_000));
        assert_eq!(share(0.1), (1_000, 10_000));
        assert_eq!(share(0.05), (1_000, 20_000));
        assert_eq!(share(0.0), (1_000, 1_000_000));
    }
}
