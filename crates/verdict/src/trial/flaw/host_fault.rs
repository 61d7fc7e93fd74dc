//! Faults of hosts that make one load together.

use readings::{LoadReading, START_LATE_US};

/// A host of a load was lost or began late.
#[derive(Clone, Debug, PartialEq)]
pub enum HostFault {
    /// Its part of the load is missing.
    Lost { host: String, why: String },
    /// It began more than [`START_LATE_US`] after the common start.
    Late { host: String, late_us: f64 },
}

/// The first fault of a load's hosts; one that was lost comes before those that were late.
pub(crate) fn host_fault(load: &LoadReading) -> Option<HostFault> {
    let lost = load.hosts.iter().find_map(|one| {
        Some(HostFault::Lost {
            host: one.host.clone(),
            why: one.lost.clone()?,
        })
    });
    lost.or_else(|| {
        let by_lateness = |a: &&readings::HostReading, b: &&readings::HostReading| {
            a.start_late_us.total_cmp(&b.start_late_us)
        };
        let latest = load.hosts.iter().max_by(by_lateness)?;
        (latest.start_late_us > START_LATE_US).then(|| HostFault::Late {
            host: latest.host.clone(),
            late_us: latest.start_late_us,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use readings::HostReading;

    #[test]
    fn the_host_that_spoils_a_load_is_named() {
        let host = |name: &str, start_late_us: f64, lost: Option<&str>| HostReading {
            host: name.to_owned(),
            start_late_us,
            lost: lost.map(str::to_owned),
            ..HostReading::default()
        };
        let of = |hosts: &[HostReading]| {
            host_fault(&LoadReading {
                hosts: hosts.to_vec(),
                ..LoadReading::default()
            })
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[host("a", 4_900.0, None), host("b", 0.0, None)]), None);
        let late = of(&[host("a", 6_000.0, None), host("b", 9_000.0, None)]);
        let host_b = || "b".to_owned();
        let expected = HostFault::Late {
            host: host_b(),
            late_us: 9_000.0,
        };
        assert_eq!(late, Some(expected));
        let lost = of(&[host("a", 9_000.0, None), host("b", 0.0, Some("it ended"))]);
        let why = "it ended".to_owned();
        let expected = HostFault::Lost {
            host: host_b(),
            why,
        };
        assert_eq!(lost, Some(expected));
    }
}
