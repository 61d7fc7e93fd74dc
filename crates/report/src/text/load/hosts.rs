//! The hosts that made a load together.

use readings::text::{counted, grouped};
use readings::{LoadReading, Pacing};

use crate::text::visible::one_line;
use readings::text::compact::time;

/// Hosts whose names are listed; of more only the count is.
const NAMED_MAX: usize = 8;

/// Which hosts made a load, as a sentence; `None` where one did.
pub(crate) fn made_by(load: &LoadReading) -> Option<String> {
    let count = counted(load.hosts.len(), "host");
    let names: Vec<&str> = names(load).collect();
    match names.len() {
        0 => None,
        1..=NAMED_MAX => Some(format!("{count} made the load: {}.", names.join(", "))),
        _ => Some(format!("{count} made the load.")),
    }
}

/// The names of the hosts that made a load together.
pub(crate) fn names(load: &LoadReading) -> impl Iterator<Item = &str> {
    load.hosts.iter().map(|one| one.host.as_str())
}

/// What each host contributed, a line each.
pub(crate) fn table(load: &LoadReading) -> String {
    if load.hosts.is_empty() {
        return String::new();
    }
    let is_open = matches!(load.pacing, Pacing::Open { .. });
    let names = load.hosts.iter().map(|one| one.host.chars().count());
    let wide = names.max().unwrap_or(0).clamp(4, 40);
    let lag = match is_open {
        true => "  lag p99",
        false => "",
    };
    let mut out = format!(
        "  {:<wide$} connections   answers       p50       p99    errors{lag}\n",
        "Host"
    );
    for one in &load.hosts {
        let name: String = one.host.chars().take(wide).collect();
        if let Some(why) = &one.lost {
            out.push_str(&format!("  {name:<wide$} lost: {}\n", one_line(why)));
            continue;
        }
        let latency = |us: f64| match one.response_us.count {
            0 => "-".to_owned(),
            _ => time(us),
        };
        out.push_str(&format!(
            "  {name:<wide$} {:>11} {:>9} {:>9} {:>9} {:>9}",
            grouped(one.connections),
            grouped(one.requests),
            latency(one.response_us.p50),
            latency(one.response_us.p99),
            grouped(one.errors)
        ));
        if is_open {
            out.push_str(&format!(" {:>8}", time(one.schedule_lag_us.p99)));
        }
        if one.saturated {
            out.push_str("  client saturated");
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use readings::{HostReading, Quantiles};

    fn load_of(names: &[&str]) -> LoadReading {
        let host = |name: &&str| HostReading {
            host: (*name).to_owned(),
            connections: 32,
            requests: 1_200,
            response_us: Quantiles {
                count: 1_200,
                p50: 400.0,
                p99: 9_000.0,
                ..Quantiles::default()
            },
            ..HostReading::default()
        };
        LoadReading {
            hosts: names.iter().map(host).collect(),
            ..LoadReading::empty(Pacing::Open { rate_per_s: 240.0 })
        }
    }

    #[test]
    fn each_host_has_a_line_with_its_own_p99() {
        let mut load = load_of(&["near", "far"]);
        load.hosts[0].schedule_lag_us.p99 = 80.0;
        load.hosts[0].saturated = true;
        load.hosts[1].lost = Some("it ended".into());
        let expected = "  \
  Host connections   answers       p50       p99    errors  lag p99
  near          32     1,200     400us    9.00ms         0   80.0us  client saturated
  far  lost: it ended
";
        assert_eq!(table(&load), expected);
        load.pacing = Pacing::Closed;
        assert!(!table(&load).contains("lag"), "{}", table(&load));
        assert_eq!(table(&load_of(&[])), "");
    }

    #[test]
    fn few_hosts_are_named_and_many_are_counted() {
        assert_eq!(made_by(&load_of(&[])), None);
        let few = made_by(&load_of(&["a", "b"]));
        assert_eq!(few.unwrap(), "2 hosts made the load: a, b.");
        let many = made_by(&load_of(&["a"; 40]));
        assert_eq!(many.unwrap(), "40 hosts made the load.");
    }
}
