//! Where idle connections come from, so that there are ports for all.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::{IdleError, own_of};
use crate::job::Job;

/// The share of an address's ports that is used where further addresses are to be had: beyond it the
/// kernel searches long for a free one.
const SHARE: f64 = 0.5;
/// The addresses chosen on loopback, from 127.0.0.2 on.
const CHOSEN_MAX: u64 = 200;

/// The source addresses of each target: those of the job, or, to loopback, as many as are needed.
/// None where the kernel's choice has enough ports.
pub(super) fn of_targets(job: &Job) -> Result<Vec<Vec<SocketAddr>>, IdleError> {
    let ports = ports();
    (0..job.targets.len())
        .map(|target| of_target(job, target, ports))
        .collect()
}

fn of_target(job: &Job, number: usize, ports: u64) -> Result<Vec<SocketAddr>, IdleError> {
    let target = &job.targets[number];
    let idle = own_of(job, number);
    if idle > 0 && target.http3.is_some() {
        return Err(IdleError::Quic);
    }
    let Some(address) = target.address.inet() else {
        return Ok(Vec::new());
    };
    let needed = idle + u64::from(target.connections);
    let chosen = match (job.sources.is_empty(), address.ip()) {
        (false, _) => job.sources.clone(),
        (true, IpAddr::V4(ip)) if ip.is_loopback() => {
            let each = (ports as f64 * SHARE).max(1.0) as u64;
            match needed.div_ceil(each) {
                1 => Vec::new(),
                count => loopback(count.min(CHOSEN_MAX)),
            }
        }
        (true, _) => Vec::new(),
    };
    let sources = chosen.len().max(1) as u64;
    if idle > 0 && needed > sources * ports {
        return Err(IdleError::Ports {
            address: target.address.clone(),
            connections: idle,
            sources,
            ports: sources * ports,
        });
    }
    Ok(chosen)
}

fn loopback(count: u64) -> Vec<SocketAddr> {
    let numbers = (2..).take(count as usize);
    let address = |last| SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)), 0);
    numbers.map(address).collect()
}

/// Ports that the kernel chooses from: `net.ipv4.ip_local_port_range`; its default where that cannot
/// be read.
fn ports() -> u64 {
    const DEFAULT: u64 = 28_232;
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let text = text.unwrap_or_default();
    let mut ends = text.split_whitespace().map(str::parse::<u64>);
    match (ends.next(), ends.next()) {
        (Some(Ok(first)), Some(Ok(last))) if first <= last => last - first + 1,
        _ => DEFAULT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::expect::Expect;
    use crate::job::target::{Idle, Target};

    fn job(address: &str, connections: u32) -> Job {
        let address: SocketAddr = address.parse().unwrap();
        let mut target = Target::new(address, Vec::new(), Expect::default());
        target.idle = Some(Idle {
            connections,
            is_silent: false,
            ping_every: None,
        });
        Job::to(target)
    }

    #[test]
    fn loopback_gets_as_many_addresses_as_it_needs_and_others_are_told() {
        let few = of_target(&job("127.0.0.1:80", 100), 0, 1_000);
        assert_eq!(few.unwrap(), []);
        let many = of_target(&job("127.0.0.1:80", 1_999), 0, 1_000).unwrap();
        let texts: Vec<String> = many.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            ["127.0.0.2:0", "127.0.0.3:0", "127.0.0.4:0", "127.0.0.5:0"]
        );
        let far = of_target(&job("192.0.2.1:80", 1_000), 0, 1_000).unwrap_err();
        let text = far.to_string();
        for part in [
            "1000 idle",
            "192.0.2.1:80",
            "1 source address has 1000",
            "--source",
        ] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
        let mut given = job("192.0.2.1:80", 1_500);
        given.sources = loopback(2);
        assert_eq!(of_target(&given, 0, 1_000).unwrap().len(), 2);
        let plain = job("192.0.2.1:80", 1);
        assert_eq!(of_target(&plain, 0, 1_000).unwrap(), []);
    }
}
