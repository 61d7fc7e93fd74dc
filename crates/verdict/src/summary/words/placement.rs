//! Which CPUs client and servers had, in a sentence.

use std::collections::{BTreeMap, BTreeSet};

use readings::Placement;
use readings::text::counted;

const NAMED_MAX: usize = 2;

/// Such as `client on CPU 0; servers on CPU 1`; `None` where nothing is known.
pub fn placement(all: &[Placement]) -> Option<String> {
    let mut named: Vec<String> = all.iter().map(one).collect();
    named.sort_unstable();
    named.dedup();
    match named.as_slice() {
        [] => None,
        [only] => Some(only.clone()),
        several => {
            let shown = several[..several.len().min(NAMED_MAX)].join(", or ");
            let more = match several.len() > NAMED_MAX {
                true => ", and so on",
                false => "",
            };
            Some(format!("by block, {shown}{more}"))
        }
    }
}

/// The same in one line: CPUs that were drawn for each block are only counted.
pub fn placement_in_short(all: &[Placement]) -> Option<String> {
    let (first, rest) = all.split_first()?;
    if rest.iter().all(|other| other == first) {
        return Some(one(first));
    }
    let client = first.client_cpus.len();
    let servers: BTreeSet<u32> = first.server_cpus.values().flatten().copied().collect();
    let cpus = |count: usize| match count {
        0 => "any CPU".to_owned(),
        count => counted(count, "CPU"),
    };
    Some(format!(
        "client on {}, servers on {}, drawn for each block",
        cpus(client),
        cpus(servers.len())
    ))
}

fn one(placement: &Placement) -> String {
    let mut by_cpus: BTreeMap<&[u32], Vec<&str>> = BTreeMap::new();
    for (server, cpus) in &placement.server_cpus {
        by_cpus.entry(cpus).or_default().push(server);
    }
    let servers = match by_cpus.len() {
        1 => by_cpus
            .keys()
            .map(|cpus| format!("servers on {}", words(cpus)))
            .collect(),
        _ => {
            let of_some = by_cpus.iter();
            let of_some =
                of_some.map(|(cpus, names)| format!("{} on {}", names.join(", "), words(cpus)));
            of_some.collect::<Vec<_>>().join("; ")
        }
    };
    format!("client on {}; {servers}", words(&placement.client_cpus))
}

/// `CPU 0`, `CPUs 1, 2`.
fn words(cpus: &[u32]) -> String {
    let list: Vec<String> = cpus.iter().map(u32::to_string).collect();
    match cpus.len() {
        0 => "any CPU".to_owned(),
        1 => format!("CPU {}", list[0]),
        _ => format!("CPUs {}", list.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpus_of_client_and_servers_are_told() {
        let placed = |client: u32, servers: &[(&str, u32)]| Placement {
            client_cpus: vec![client],
            server_cpus: servers
                .iter()
                .map(|(name, cpu)| ((*name).to_owned(), vec![*cpu]))
                .collect(),
        };
        let first = placed(0, &[("go", 1), ("nginx", 1)]);
        let told = |all: &[Placement]| placement(all);
        let expected = "client on CPU 0; servers on CPU 1";
        assert_eq!(
            told(std::slice::from_ref(&first)).as_deref(),
            Some(expected)
        );
        let drawn = told(&[first.clone(), placed(1, &[("go", 0), ("nginx", 0)])]);
        let expected =
            "by block, client on CPU 0; servers on CPU 1, or client on CPU 1; servers on CPU 0";
        assert_eq!(drawn.as_deref(), Some(expected));
        let both = [first.clone(), placed(1, &[("go", 0), ("nginx", 0)])];
        assert_eq!(
            placement_in_short(&both).as_deref(),
            Some("client on 1 CPU, servers on 1 CPU, drawn for each block")
        );
        assert_eq!(placement_in_short(&both[..1]), told(&both[..1]));
        let apart = told(&[placed(0, &[("go", 1), ("nginx", 2)])]);
        assert_eq!(
            apart.as_deref(),
            Some("client on CPU 0; go on CPU 1; nginx on CPU 2")
        );
        assert_eq!(told(&[]), None);
        let unbound = Placement {
            server_cpus: BTreeMap::from([("go".to_owned(), Vec::new())]),
            ..Placement::default()
        };
        assert_eq!(
            told(&[unbound]).as_deref(),
            Some("client on any CPU; servers on any CPU")
        );
    }
}
