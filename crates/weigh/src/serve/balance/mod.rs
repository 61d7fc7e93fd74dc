//! `weigh balance`: runs a balancer, or sends a request to one.

mod asking;
mod shown;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use balance::control::SocketError::{Give, Live, Make, NoSocket, Stranger};
use balance::control::{Page, ReloadError, Socket, Supervisor, beside};
use balance::{BalancerError, Config, ConfigError};
use net::os;
use signal_hook::consts::SIGHUP;
use signal_hook::flag;

use crate::cli::BalanceArgs;
use crate::failure::Failure;
use crate::signals::Signals;
use crate::terminal::output::{note_fallback, print_text};

/// How often messages and signals are checked.
const TURN: Duration = Duration::from_millis(20);

/// Runs the verb.
pub fn balance(args: &BalanceArgs) -> Result<u8, Failure> {
    match (&args.request, &args.config) {
        (Some(request), _) => asking::request(request),
        (None, config) if args.status => {
            asking::status(config.as_deref(), args.socket.as_deref(), args.format)
        }
        (None, Some(file)) => run(args, file),
        (None, None) => Err(Failure::words("expected a configuration")),
    }
}

fn read(file: &Path) -> Result<Config, Failure> {
    let (config, warnings) = balance::parse_file(file).map_err(wrong)?;
    for warning in &warnings {
        eprintln!("weigh: {warning}");
    }
    Ok(config)
}

fn wrong(error: ConfigError) -> Failure {
    match error {
        ConfigError::Open(error) => Failure::words(error),
        mistakes => Failure::file(mistakes),
    }
}

fn not_started(error: BalancerError) -> Failure {
    match error {
        BalancerError::Loop(_) | BalancerError::Thread(_) => Failure::failed(error),
        BalancerError::Access { source, .. } => Failure::file(*source),
        _ => Failure::words(error),
    }
}

/// Runs a balancer until a signal or `stop`.
fn run(args: &BalanceArgs, file: &Path) -> Result<u8, Failure> {
    let config = read(file)?;
    if args.check {
        config.check_tls().map_err(not_started)?;
        for name in config.check_names() {
            eprintln!("weigh: {name}; the balancer starts once it has an address");
        }
        check(file, &config);
        return Ok(0);
    }
    let user = args.user.as_deref().map(user_ids).transpose()?;
    os::raise_open_files();
    let signals = Signals::listen_without_hangup()?;
    let again = Arc::new(AtomicBool::new(false));
    flag::register(SIGHUP, again.clone())
        .map_err(|e| Failure::failed(format!("cannot listen for signals: {e}")))?;
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf());
    let (path, asked) = socket_path(args, &config, &absolute);
    // Before its addresses are found in use.
    match Socket::check(&path) {
        Err(error @ (Live { .. } | Stranger { .. } | NoSocket { .. })) => {
            return Err(Failure::words(error));
        }
        // Opening it says so.
        Err(Make { .. } | Give { .. }) | Ok(()) => {}
    }
    let supervisor = Supervisor::start(&config, &absolute, args.io).map_err(not_started)?;
    let socket = socket(&path, asked, &supervisor)?;
    let page = page(args.metrics.or(config.prometheus), &supervisor)?;
    if let Some((user, group)) = user.flatten() {
        if let Some(socket) = &socket {
            socket.give_to(user, group).map_err(Failure::failed)?;
        }
        os::become_user(user, group)
            .map_err(|e| Failure::failed(format!("cannot switch to the user of --user: {e}")))?;
    }
    note_fallback();
    print_startup(&supervisor, socket.as_ref(), page.as_ref());
    while !signals.stopped() && !supervisor.is_stopped() {
        if again.swap(false, Ordering::Relaxed) {
            reload(&supervisor);
        }
        supervisor.reap_retired();
        print_notices(&supervisor);
        if let Some(failure) = supervisor.failure() {
            return Err(Failure::failed(failure));
        }
        std::thread::sleep(TURN);
    }
    // Answers the `stop` request before exiting.
    drop((socket, page));
    print_notices(&supervisor);
    print_summary(&supervisor);
    Ok(0)
}

fn check(file: &Path, config: &Config) {
    let backends: usize = config.services.iter().map(|one| one.backends.len()).sum();
    eprintln!(
        "{} is valid, services: {}, back ends: {backends}",
        file.display(),
        config.services.len()
    );
    print_text(&balance::config::write::toml(config));
}

/// User and group ID to switch to; `None` if it is the current user.
fn user_ids(name: &str) -> Result<Option<(u32, u32)>, Failure> {
    let ids = os::user_ids(name)
        .ok_or_else(|| Failure::words(format!("--user: this machine has no user `{name}`")))?;
    if os::user_id() == ids.0 {
        return Ok(None);
    }
    match os::is_root() {
        true => Ok(Some(ids)),
        false => Err(Failure::words(format!(
            "--user: only root can go on as `{name}`; start it as root, or as that user"
        ))),
    }
}

/// The path of the control socket, and whether it was asked for.
fn socket_path(args: &BalanceArgs, config: &Config, file: &Path) -> (PathBuf, bool) {
    match args.socket.as_ref().or(config.status_socket.as_ref()) {
        Some(asked) => (asked.clone(), true),
        None => (beside(file), false),
    }
}

/// Opens the control socket. If none was asked for, failing to create it is only a warning: the
/// configuration's folder may not be writable.
fn socket(
    path: &Path,
    asked: bool,
    supervisor: &Arc<Supervisor>,
) -> Result<Option<Socket>, Failure> {
    match Socket::open(path, supervisor) {
        Ok(socket) => Ok(Some(socket)),
        Err(error @ (Live { .. } | Stranger { .. } | NoSocket { .. })) => {
            Err(Failure::words(error))
        }
        Err(error @ Make { .. }) if asked => Err(Failure::words(error)),
        Err(error) => {
            eprintln!("weigh: {error}; --status and tell need --socket");
            Ok(None)
        }
    }
}

fn page(
    address: Option<SocketAddr>,
    supervisor: &Arc<Supervisor>,
) -> Result<Option<Page>, Failure> {
    let Some(address) = address else {
        return Ok(None);
    };
    Page::open(address, supervisor)
        .map(Some)
        .map_err(|e| match e.get_ref() {
            Some(inner) if inner.is::<os::StartThreadError>() => Failure::failed(e),
            _ => Failure::words(format!("cannot listen on {address}: {e}")),
        })
}

fn print_startup(supervisor: &Supervisor, socket: Option<&Socket>, page: Option<&Page>) {
    let config = supervisor.config();
    let (io, threads) = (supervisor.io(), config.threads);
    if let Some(socket) = socket {
        eprintln!("answers on {}", socket.path().display());
    }
    if let Some(page) = page {
        eprintln!("counters on http://{}/metrics", page.address());
    }
    eprintln!("balancer: {io}, threads: {threads}, stop with Ctrl-C");
    for (name, address) in supervisor.addresses() {
        let service = config.services.iter().find(|one| one.name == name);
        let backends = service.map_or(0, |one| one.backends.len());
        eprintln!("service {name} on {address}, back ends: {backends}");
    }
}

fn reload(supervisor: &Supervisor) {
    match supervisor.reload() {
        Ok((config, warnings)) => {
            for warning in warnings {
                eprintln!("weigh: {warning}");
            }
            let services = config.services.len();
            eprintln!("configuration replaced, services: {services}");
        }
        Err(error) => {
            eprintln!("weigh: the configuration stays as it was");
            match error {
                ReloadError::Config(error) => wrong(error).print(),
                ReloadError::Start(error) => not_started(error).print(),
                other => Failure::failed(other).print(),
            }
        }
    }
}

fn print_notices(supervisor: &Supervisor) {
    for notice in supervisor.notices() {
        eprintln!("weigh: {notice}");
    }
}

fn print_summary(supervisor: &Supervisor) {
    let stats = supervisor.stats();
    eprintln!(
        "{} clients, {} refused, by back end: {:?}",
        stats.clients, stats.refused, stats.served
    );
}

/// The control socket of the balancer that runs a configuration.
fn socket_of(file: Option<&Path>, socket: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(socket) = socket {
        return Ok(socket.to_path_buf());
    }
    let file = file.ok_or_else(|| {
        Failure::words("expected the configuration file of the balancer, or --socket PATH")
    })?;
    // The file may have errors by now; the balancer still runs.
    Ok(match balance::parse_file(file) {
        Ok((config, _)) => config.status_socket.unwrap_or_else(|| beside(file)),
        Err(ConfigError::Open(error)) => return Err(Failure::words(error)),
        Err(ConfigError::Mistakes(_)) => beside(file),
    })
}
