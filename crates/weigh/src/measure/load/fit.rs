//! Checks whether options that are valid by themselves fit this machine and each other, before
//! anything is sent.

use std::io::ErrorKind;
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use load::Stage;
use net::Address;

use crate::cli::{HttpVersion, LoadArgs};
use crate::failure::Failure;
use crate::units;

/// Checks the options of a load.
///
/// # Errors
/// When some do not fit.
pub fn look(args: &LoadArgs) -> Result<(), Failure> {
    for source in &args.client.source {
        is_own(*source)?;
    }
    for cpu in units::cpus(&args.client.cpus) {
        is_usable(cpu)?;
    }
    asks_for_something(&args.pacing.stages)?;
    fits_events(args)?;
    fits_pings(args)?;
    one_host(&args.request.headers)
}

/// Whether a thread can be bound to a CPU, as those of the load will be.
fn is_usable(cpu: u32) -> Result<(), Failure> {
    let bind = move || net::os::bind_to_cpus(&[cpu]);
    let thread = net::os::start_thread("which is bound to a CPU", bind).map_err(Failure::failed)?;
    if let Ok(Err(e)) = thread.join() {
        let usable = net::os::allowed_cpus().unwrap_or_default();
        let usable: Vec<String> = usable.iter().map(u32::to_string).collect();
        return Err(Failure::words(format!(
            "--cpus {cpu}: no thread can be bound to this CPU: {e}; available are {}",
            usable.join(",")
        )));
    }
    Ok(())
}

/// Whether streams of events are asked for with nothing that needs a whole answer.
fn fits_events(args: &LoadArgs) -> Result<(), Failure> {
    if args.traffic.traffic().is_answers() {
        return Ok(());
    }
    let misfit = if args.site.crawl {
        "--crawl: it asks for pages"
    } else if args.idle.idle.is_some() {
        "--idle: it waits for one whole answer on each connection"
    } else if args.answer.expect_contains.is_some() {
        "--expect-contains: it is about the body of a whole answer"
    } else if args.request.method.eq_ignore_ascii_case("HEAD") {
        "--method HEAD: its answers have no content"
    } else {
        return Ok(());
    };
    Err(Failure::words(format!(
        "{misfit}, and --events takes answers as streams; leave one of the two out"
    )))
}

/// Whether the idle connections can send pings, and not too many.
fn fits_pings(args: &LoadArgs) -> Result<(), Failure> {
    let Some(every) = args.idle.idle_ping else {
        return Ok(());
    };
    let is_websocket = |url: &String| url.starts_with("ws://") || url.starts_with("wss://");
    let are_websockets = args.url.as_ref().is_some_and(is_websocket);
    if every < Duration::from_secs(1) {
        return Err(Failure::words("--idle-ping: expected at least 1s"));
    }
    match args.version.http == HttpVersion::Http2 || are_websockets {
        true => Ok(()),
        false => Err(Failure::words(
            "--idle-ping: HTTP/1.1 has no pings; give --http 2, or the URL of a WebSocket",
        )),
    }
}

/// Whether stages, if there are any, ask for requests.
fn asks_for_something(stages: &[Stage]) -> Result<(), Failure> {
    let requests: f64 = stages.iter().map(Stage::requests).sum();
    match stages.is_empty() || requests > 0.0 {
        true => Ok(()),
        false => Err(Failure::words(
            "--stages: no request becomes due in them; give at least one a rate above 0, such as \
             10s@2000",
        )),
    }
}

/// Whether the headers name one host at most: a request with two is wrong (RFC 9112, 3.2).
fn one_host(headers: &[(String, String)]) -> Result<(), Failure> {
    let mut hosts = headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("host"))
        .map(|(_, value)| value);
    match (hosts.next(), hosts.next()) {
        (Some(first), Some(second)) => Err(Failure::words(format!(
            "--header: expected one Host at most, found `{first}` and `{second}`; leave one out"
        ))),
        _ => Ok(()),
    }
}

/// Whether a source is an address of this machine. A UDP socket is bound to it: the same check as
/// for a connection, and no TCP port is used.
fn is_own(source: IpAddr) -> Result<(), Failure> {
    UdpSocket::bind((source, 0)).map(drop).map_err(|e| {
        let why = match e.kind() {
            ErrorKind::AddrNotAvailable => "this machine does not have this address".to_owned(),
            _ => format!("connections cannot come from it: {e}"),
        };
        Failure::words(format!(
            "--source {source}: {why}; give addresses that `ip address` shows, or one of 127.0.0.0/8 \
             for a target on this machine"
        ))
    })
}

/// Checks that sources and target are of the same address family.
///
/// # Errors
/// When an address is of the other family.
pub fn look_at_families(args: &LoadArgs, target: &Address) -> Result<(), Failure> {
    let Some(target) = target.inet() else {
        return Ok(());
    };
    match args
        .client
        .source
        .iter()
        .find(|source| source.is_ipv4() != target.is_ipv4())
    {
        None => Ok(()),
        Some(source) => {
            let family = |is_ipv4| if is_ipv4 { "IPv4" } else { "IPv6" };
            Err(Failure::words(format!(
                "--source {source}: expected an {} address, because the target is {target}; give \
                 such a one, or the target's {} address",
                family(target.is_ipv4()),
                family(source.is_ipv4()),
            )))
        }
    }
}
