//! Hosts that make the load of `weigh load` and `weigh capacity` together.

use std::path::Path;

use load::{Job, Progress, Wait};
use net::Address;
use run::{Fleet, FleetLoad};

use crate::cli;
use crate::failure::Failure;
use crate::recipes::own_program;
use crate::signals::Signals;

/// Opens the hosts of a file, for a load on this address.
///
/// # Errors
/// When the file has mistakes, a host cannot be opened, or the address is the host's own there.
pub fn open(file: &Path, address: &Address) -> Result<Fleet, Failure> {
    let specs = experiment::read_hosts(file).map_err(Failure::file)?;
    let mut fleet = Fleet::open(specs, &own_program()?).map_err(Failure::failed)?;
    let local = address.inet().filter(|one| {
        let ip = one.ip();
        ip.is_loopback() || ip.is_unspecified()
    });
    if let Some(local) = local
        && let Some(host) = fleet.apart_from_here().map_err(Failure::failed)?
    {
        return Err(Failure::words(format!(
            "{local} would be host `{host}` itself there, and not this machine; give an address at \
             which the hosts reach the server"
        )));
    }
    Ok(fleet)
}

/// The number of threads of each host.
///
/// # Errors
/// When there are fewer connections than hosts.
pub fn threads(
    fleet: &Fleet,
    option: &str,
    connections: u32,
    threads: u32,
) -> Result<usize, Failure> {
    let hosts = fleet.size() as u32;
    match connections / hosts {
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

/// Says what is notable of the hosts' answers before a load.
pub fn note_answers(made: &FleetLoad) {
    if made.is_varying {
        eprintln!("weigh: the answers differ from time to time; their content is not compared");
    } else if let Some(host) = &made.differs {
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
