//! Back ends, balancers and waits that the tests share.

pub mod control;
pub mod http;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use balance::config::model::{Backend, Service};
use balance::{Balancer, Config};
use net::IoKind;
pub use testing::{serve, serve_on};

pub const BOTH: [IoKind; 2] = [IoKind::Uring, IoKind::Epoll];
/// Nothing in these tests takes as long, unless it hangs.
pub const LONG: Duration = Duration::from_secs(20);

/// A back end that greets each connection with a name and then echoes until the end.
pub fn echo(name: &'static str) -> SocketAddr {
    serve(move |stream| echo_on(stream, name))
}

pub fn echo_on(mut stream: TcpStream, name: &str) {
    let _ = stream.write_all(name.as_bytes());
    let mut copy = stream.try_clone().unwrap();
    let _ = std::io::copy(&mut stream, &mut copy);
    let _ = copy.shutdown(Shutdown::Write);
}

/// An address where nothing listens: tests listen on 127.0.0.1 only.
pub fn dead() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 77], 1))
}

/// Runs a test on both event loops at the same time: most tests wait more than they compute.
pub fn on_both(test: impl Fn(IoKind) + Sync) {
    let test = &test;
    std::thread::scope(|scope| {
        for io in BOTH {
            let thread = std::thread::Builder::new().name(io.to_string());
            thread.spawn_scoped(scope, move || test(io)).unwrap();
        }
    });
}

/// Memory that this process holds, bytes.
pub fn memory() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Runs a test, given by its path, in a process of its own, as it measures the whole process.
pub fn in_own_process(path: &str, test: impl FnOnce()) {
    const MARK: &str = "BALANCE_TEST_IN_OWN_PROCESS";
    if std::env::var_os(MARK).is_some() {
        return test();
    }
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let output = command
        .args([path, "--exact", "--nocapture"])
        .env(MARK, "1");
    let output = output.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    // Indented, so that its result does not look like that of this process.
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{}",
        said.lines()
            .map(|line| format!("\n    {line}"))
            .collect::<String>()
    );
}

/// A service that relays to these back ends, with names `b0`, `b1`, ...
pub fn service(backends: &[SocketAddr]) -> Service {
    let mut service = Service::new("relay");
    service.listen.push("127.0.0.1:0".parse().unwrap());
    service.backlog = 256;
    service.timeouts.connect = Duration::from_millis(400);
    for (number, address) in backends.iter().enumerate() {
        let backend = Backend::new(&format!("b{number}"), (*address).into());
        service.backends.push(backend);
    }
    service
}

pub fn config(service: Service) -> Config {
    let mut config = Config::new();
    config.connections_per_thread = 512;
    config.services.push(service);
    config
}

pub fn start(io: IoKind, service: Service) -> Balancer {
    Balancer::start(&config(service), io).unwrap()
}

pub fn connect(balancer: &Balancer) -> TcpStream {
    let stream = TcpStream::connect(balancer.address()).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.set_write_timeout(Some(LONG)).unwrap();
    stream
}

/// Reads so many bytes as text.
pub fn read(stream: &mut TcpStream, count: usize) -> String {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Connects, says something, ends its side and gives back the whole answer.
pub fn ask(balancer: &Balancer, say: &[u8]) -> String {
    let mut stream = connect(balancer);
    stream.write_all(say).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut got = String::new();
    stream.read_to_string(&mut got).unwrap();
    got
}

/// Whether a connection ends without another byte.
pub fn ends(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0]) {
        Ok(count) => count == 0,
        Err(e) => e.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

/// Whether a connection ends with a reset.
pub fn is_reset(stream: &mut TcpStream) -> bool {
    stream
        .read(&mut [0])
        .is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionReset)
}

/// Waits until something holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !holds() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// How many clients the first service has.
pub fn clients_now(balancer: &Balancer) -> u32 {
    balancer.shared().services[0].active.load(Ordering::Relaxed)
}

/// How many of them wait for a back end.
pub fn queued_now(balancer: &Balancer) -> u32 {
    balancer.shared().services[0].queued.load(Ordering::Relaxed)
}

/// How many connections or requests a back end of it has.
pub fn active_now(balancer: &Balancer, backend: usize) -> u32 {
    let backend = &balancer.shared().services[0].backends[backend];
    backend.active.load(Ordering::Relaxed)
}

/// How often each name came.
pub fn counts(names: &[String]) -> std::collections::BTreeMap<&str, usize> {
    let mut counts = std::collections::BTreeMap::new();
    for name in names {
        *counts.entry(name.as_str()).or_default() += 1;
    }
    counts
}
