//! What an experiment asks of the machine.

use experiment::{Apart, Experiment, LoadSpec};

/// What an experiment asks of the machine; the default is what is wanted without one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// Connections that may be open at once, over all subjects; without an experiment none are
    /// known, and general limits apply.
    pub connections: Option<u64>,
    /// Of these, the ones to one subject.
    pub of_one_subject: u64,
    /// CPUs that the experiment names and this process may not use: the host, and the CPU.
    pub absent_cpus: Vec<(String, u32)>,
    /// CPUs of the load; empty where they are not known.
    pub load_cpus: Vec<u32>,
    /// CPUs of the servers; empty where they are not known.
    pub server_cpus: Vec<u32>,
    /// Servers and their fixed ports.
    pub ports: Vec<(String, u16)>,
    /// Kernel settings that the experiment recommends.
    pub sysctls: Vec<(String, String)>,
    /// What the machine lacks for hosts that are apart, a sentence each; `None` where none are.
    pub hosts_lack: Option<Vec<String>>,
}

impl Needs {
    /// Reads an experiment; `have` are the CPUs that this process may use.
    pub fn of(experiment: &Experiment, have: &[u32]) -> Self {
        let most = experiment
            .conditions()
            .iter()
            .map(|condition| {
                let resolved = experiment.under(condition);
                let beside = resolved.beside.iter().map(|one| one.load.connections);
                beside.fold(resolved.load.connections, u32::saturating_add)
            })
            .max()
            .unwrap_or(LoadSpec::default().connections);
        // Every subject is up at the same time, and the baseline twice.
        let loads = match experiment.design.apart {
            Apart::Always => 1,
            Apart::Auto | Apart::Never => experiment.subjects.len() as u64 + 1,
        };
        let absent_cpus = experiment
            .hosts
            .iter()
            .filter(|host| !host.is_elsewhere())
            .flat_map(|host| host.cpus.iter().map(|&cpu| (host.name.clone(), cpu)))
            .filter(|(_, cpu)| !have.contains(cpu))
            .collect();
        let (load_cpus, server_cpus) = match experiment.hosts_are_machines() {
            // Those are mostly other machines' CPUs.
            true => (Vec::new(), Vec::new()),
            false => places(experiment, have),
        };
        Self {
            connections: Some(u64::from(most) * loads),
            of_one_subject: u64::from(most),
            absent_cpus,
            load_cpus,
            server_cpus,
            ports: experiment
                .start_order()
                .iter()
                .filter(|server| !experiment.is_elsewhere(server.host.as_deref()))
                .filter_map(|server| Some((server.name.clone(), server.port?)))
                .collect(),
            sysctls: experiment.sysctls.clone(),
            hosts_lack: experiment
                .hosts_are_apart()
                .then(|| hosts::lacking(&experiment.hosts)),
        }
    }

    /// The value that the experiment recommends for a kernel setting.
    pub fn sysctl(&self, name: &str) -> Option<&str> {
        self.sysctls
            .iter()
            .find(|(listed, _)| listed == name)
            .map(|(_, value)| value.as_str())
    }
}

/// The CPUs of the load and of the servers that are started, as a run places them: a load without
/// CPUs of its own gets the last one that no server's host names, and servers without get what
/// the load leaves.
fn places(experiment: &Experiment, have: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let of_host = |name: Option<&String>| -> Vec<u32> {
        experiment
            .hosts
            .iter()
            .find(|host| Some(&host.name) == name)
            .map(|host| host.cpus.clone())
            .unwrap_or_default()
    };
    let started = experiment.start_order();
    let named: Vec<u32> = experiment
        .servers
        .iter()
        .flat_map(|server| of_host(server.host.as_ref()))
        .collect();
    let mut load = of_host(experiment.load.host.as_ref());
    if load.is_empty() {
        let free = have.iter().rev().find(|cpu| !named.contains(cpu));
        load.extend(free.filter(|_| have.len() > 1));
    }
    let left: Vec<u32> = have
        .iter()
        .copied()
        .filter(|cpu| !load.contains(cpu))
        .collect();
    let mut servers: Vec<u32> = started
        .iter()
        .flat_map(|server| match of_host(server.host.as_ref()) {
            cpus if cpus.is_empty() => left.clone(),
            cpus => cpus,
        })
        .collect();
    servers.sort_unstable();
    servers.dedup();
    // Unbound programs may be anywhere.
    if load.is_empty() {
        load = have.to_vec();
    }
    if servers.is_empty() && !started.is_empty() {
        servers = have.to_vec();
    }
    (load, servers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::Recipes;

    fn experiment(text: &str) -> Experiment {
        let text = format!("title = \"x\"\n{text}");
        Experiment::parse("x.toml", &text, &[], false, &Recipes::embedded().unwrap()).unwrap()
    }

    const SERVER: &str = "[servers.web]\nrecipe = \"origin\"\n";
    const SUBJECT: &str = "[subjects]\ndirect = \"http://web/\"\n";

    #[test]
    fn the_most_connections_of_any_condition_for_each_subject_and_the_second_baseline() {
        let needs = Needs::of(
            &experiment(&format!(
                "{SERVER}{SUBJECT}[factors]\nconnections = [96, 400]\n"
            )),
            &[0, 1],
        );
        assert_eq!((needs.connections, needs.of_one_subject), (Some(800), 400));
        let needs = Needs::of(&experiment(&format!("{SERVER}{SUBJECT}")), &[0, 1]);
        assert_eq!(needs.connections, Some(128));
    }

    #[test]
    fn the_load_and_the_servers_are_kept_apart_where_that_can_be() {
        let hosts = "[hosts.a]\ncpus = [0]\n[hosts.b]\ncpus = [0, 5]\n";
        type Case<'a> = (&'a str, &'a [u32], &'a [u32], &'a [u32]);
        let cases: [Case<'_>; 6] = [
            // The text between the hosts and the subjects, CPUs, the load's, the servers'.
            (SERVER, &[0, 1, 2], &[2], &[0, 1]),
            (SERVER, &[3], &[3], &[3]),
            (
                "[servers.web]\nrecipe = \"origin\"\nhost = \"a\"\n",
                &[0, 1],
                &[1],
                &[0],
            ),
            (
                "[servers.web]\nrecipe = \"origin\"\nhost = \"a\"\n[load]\nhost = \"b\"\n",
                &[0, 5],
                &[0, 5],
                &[0],
            ),
            (
                "[servers.web]\nrecipe = \"origin\"\nhost = \"b\"\n",
                &[0, 5],
                &[0, 5],
                &[0, 5],
            ),
            // A server that no subject reaches is not started.
            (
                "[servers.web]\nrecipe = \"origin\"\nhost = \"a\"\n\
                 [servers.other]\nrecipe = \"origin\"\n",
                &[0, 1],
                &[1],
                &[0],
            ),
        ];
        for (servers, have, load, server) in cases {
            let needs = Needs::of(&experiment(&format!("{hosts}{servers}{SUBJECT}")), have);
            assert_eq!(needs.load_cpus, load, "{servers}");
            assert_eq!(needs.server_cpus, server, "{servers}");
        }
    }

    #[test]
    fn cpus_ports_and_settings_that_are_named() {
        let needs = Needs::of(
            &experiment(&format!(
                "[hosts.a]\ncpus = [0, 7]\n[servers.web]\nrecipe = \"origin\"\nport = 8080\n\
                 {SUBJECT}[sysctls]\n\"net.core.somaxconn\" = 65535\n"
            )),
            &[0, 1],
        );
        assert_eq!(needs.absent_cpus, [("a".to_owned(), 7)]);
        assert_eq!(needs.ports, [("web".to_owned(), 8080)]);
        assert_eq!(needs.sysctl("net.core.somaxconn"), Some("65535"));
        assert_eq!(needs.sysctl("other"), None);
    }
}
