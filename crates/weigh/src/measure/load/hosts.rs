//! Hosts that make the load of `weigh load` and `weigh capacity` together.

use std::path::Path;

use load::{Job, Progress, Wait};
use net::Address;
use readings::HostSpec;
use run::{Fleet, FleetLoad};

use crate::cli;
use crate::failure::Failure;
use crate::recipes::own_program;
use crate::signals::Signals;

/// Reads a file of hosts.
///
/// # Errors
/// When it has mistakes.
pub fn read(file: &Path) -> Result<Vec<HostSpec>, Failure> {
    experiment::read_hosts(file).map_err(Failure::file)
}

/// Opens hosts, for a load on this address.
///
/// # Errors
/// When a host cannot be opened, a loopback address means another machine on one of them, or a signal
/// came meanwhile.
pub fn open(hosts: Vec<HostSpec>, address: &Address, signals: &Signals) -> Result<Fleet, Failure> {
    // A second signal ends the agents as well, until a live view gives the signals back.
    signals.before_the_end(agent::end_all)?;
    let opened = Fleet::open(hosts, &own_program()?, &signals.stop);
    signals.go_on()?;
    let mut fleet = opened.map_err(Failure::failed)?;
    let local = address.inet().filter(|one| {
        let ip = one.ip();
        ip.is_loopback() || ip.is_unspecified()
    });
    if let Some(local) = local
        && let Some(host) = fleet.first_in_other_network().map_err(Failure::failed)?
    {
        return Err(Failure::words(format!(
            "on host `{host}` the address {local} means that host itself; give an address by which \
             all hosts reach the server"
        )));
    }
    Ok(fleet)
}

/// The number of threads of each of so many hosts.
///
/// # Errors
/// When there are fewer connections than hosts.
pub fn threads(
    hosts: usize,
    option: &str,
    connections: u32,
    threads: u32,
) -> Result<usize, Failure> {
    match connections / hosts as u32 {
        0 => Err(Failure::words(format!(
            "{option} {connections}: {hosts} hosts make the load; expected at least {hosts} connections"
        ))),
        each => Ok(threads.min(each) as usize),
    }
}

/// How the hosts wait: they may have CPUs in common, among themselves or with servers.
pub fn wait(wait: cli::Wait) -> Wait {
    match wait {
        cli::Wait::Spin => Wait::Spin,
        cli::Wait::Sleep | cli::Wait::Auto => Wait::Sleep,
    }
}

/// What the hosts measured together.
///
/// # Errors
/// When a host cannot make the load, all were lost, or a signal came before there was anything.
pub fn load(
    fleet: &mut Fleet,
    job: &Job,
    signals: &Signals,
    report: &mut dyn FnMut(Progress),
) -> Result<FleetLoad, Failure> {
    fleet.load(job, &signals.stop, report).or_else(|error| {
        signals.go_on()?;
        Err(Failure::failed(error))
    })
}

/// Warns where reference answers vary, or differ between hosts.
pub fn warn_of_answers(made: &FleetLoad) {
    if made.is_varying {
        eprintln!("weigh: the answers differ from time to time; their content is not compared");
    } else if let Some(host) = &made.host_with_other_answers {
        eprintln!(
            "weigh: host `{host}` gets other answers than the first host; each host compares with \
             those that it got before the load"
        );
    }
}

/// Ends the hosts' agents, and says which of them did not confirm that.
pub fn close(fleet: Fleet) {
    for unconfirmed in fleet.close() {
        eprintln!("weigh: {unconfirmed}");
    }
}
