//! What clients that are held cost the balancer, and what is left of many that behave badly.
//!
//! ```sh
//! cargo build --release -p weigh
//! cargo run --release -p weigh-balance --example held                                # 20,000; 60 s
//! cargo run --release -p weigh-balance --example held -- --clients 5000 --seconds 600
//! ```
//!
//! Balancers and back ends are processes of `weigh`, clients are processes of this program, as each
//! may have so many files open only (`ulimit -Hn`). A client of a TCP service takes two of the
//! balancer's, one of an HTTP service that waits takes one. So as many processes of the balancer
//! share the clients as are needed, and how many is said.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use net::os::{ChildSetup, set_up_child};

/// Open files that a process needs besides.
const SPARE: usize = 400;
/// No single wait takes longer.
const LIMIT: Duration = Duration::from_secs(30);
/// Threads that churn.
const THREADS: usize = 8;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, address, count] = &arguments[..]
        && word == "hold"
    {
        return hold(address.parse().unwrap(), count.parse().unwrap());
    }
    let option = |name: &str, default: usize| {
        let at = arguments.iter().position(|word| word == name);
        at.map_or(default, |at| arguments[at + 1].parse().unwrap())
    };
    let (clients, seconds) = (option("--clients", 20_000), option("--seconds", 60));
    let files = files_max();
    println!("at most {files} open files for a process");
    for kind in ["tcp", "http"] {
        held(kind, clients, files);
    }
    for kind in ["tcp", "http"] {
        churn(kind, Duration::from_secs(seconds as u64));
    }
}

/// How many files this process, and those it starts, may have open.
fn files_max() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let words: Vec<&str> = line.unwrap().split_whitespace().collect();
    words[3].parse().unwrap_or(1 << 20)
}

/// A program of this test; it is killed with this.
struct Program {
    child: Child,
    address: SocketAddr,
    /// What it leaves behind when it is killed.
    socket: Option<PathBuf>,
}

impl Program {
    /// Starts `weigh` and waits until it says where it listens.
    fn start(words: &[&str]) -> Program {
        let own = std::env::current_exe().unwrap();
        let weigh = own.ancestors().nth(2).unwrap().join("weigh");
        let mut command = Command::new(weigh);
        command
            .args(words)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        set_up_child(&mut command, ChildSetup::dying_with_parent());
        let mut child = command
            .spawn()
            .expect("target/release/weigh, from cargo build --release -p weigh");
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines.by_ref().map(Result::unwrap).find_map(|line| {
            let mut words = line.split([' ', ',', '/']);
            words.find_map(|word| word.parse::<SocketAddr>().ok())
        });
        let address = address.expect("it says where it listens");
        // It must not wait for somebody to read what it says.
        std::thread::spawn(move || lines.for_each(drop));
        Program {
            child,
            address,
            socket: None,
        }
    }

    fn balancer(kind: &str, backends: &[SocketAddr], clients: usize) -> (Program, PathBuf) {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("held-{}-{number}.toml", std::process::id());
        let file = std::env::temp_dir().join(name);
        let mut text = format!(
            "connections_per_thread = {}\n[services.held]\nlisten = \"127.0.0.1:0\"\n\
             kind = \"{kind}\"\n[services.held.backends]\n",
            clients + 100
        );
        for (number, address) in backends.iter().enumerate() {
            text.push_str(&format!("b{number} = \"{address}\"\n"));
        }
        std::fs::write(&file, text).unwrap();
        let socket = file.with_extension("sock");
        let words = [
            "balance",
            file.to_str().unwrap(),
            "--socket",
            socket.to_str().unwrap(),
        ];
        let mut program = Program::start(&words);
        program.socket = Some(socket.clone());
        std::fs::remove_file(&file).unwrap();
        (program, socket)
    }

    fn descriptors(&self) -> usize {
        let folder = format!("/proc/{}/fd", self.child.id());
        std::fs::read_dir(folder).unwrap().count()
    }

    /// Memory that it has, KiB.
    fn resident_kib(&self) -> usize {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        line.unwrap()
            .split_whitespace()
            .nth(1)
            .unwrap()
            .parse()
            .unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(socket) = &self.socket {
            let _ = std::fs::remove_file(socket);
        }
    }
}

fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, LIMIT)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    Ok(stream)
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: held\r\n\r\n";

/// Asks once and reads the whole answer.
fn ask(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(GET)?;
    let mut got = Vec::new();
    let mut piece = [0; 1024];
    while !got.ends_with(b"Hello, world!") {
        match stream.read(&mut piece)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            n => got.extend_from_slice(&piece[..n]),
        }
    }
    Ok(())
}

/// A process of clients: each asks once and then waits, until the input ends.
fn hold(address: SocketAddr, count: usize) {
    let mut held = Vec::with_capacity(count);
    for _ in 0..count {
        let mut stream = connect(address).expect("a connection");
        ask(&mut stream).expect("an answer");
        held.push(stream);
    }
    println!("{}", held.len());
    let _ = std::io::stdin().read(&mut [0]);
    // All are still there.
    for stream in &mut held {
        ask(stream).expect("an answer after the wait");
    }
    println!("{}", held.len());
}

/// Holds clients, and says what each costs.
fn held(kind: &str, clients: usize, files: usize) {
    let files_each = if kind == "tcp" { 2 } else { 1 };
    let most = (files - SPARE - 1100) / files_each;
    let processes = clients.div_ceil(most);
    let share = clients.div_ceil(processes);
    let (mut balancers, mut holders, mut origins) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..processes {
        let origin = Program::start(&[
            "origin",
            "--listen",
            "127.0.0.1:0",
            "--connections",
            "19000",
        ]);
        let (balancer, _) = Program::balancer(kind, &[origin.address], share);
        ask(&mut connect(balancer.address).unwrap()).unwrap();
        let before = (balancer.resident_kib(), balancer.descriptors());
        // Half of the clients in each of two processes.
        for part in [share / 2, share - share / 2] {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command
                .args(["hold", &balancer.address.to_string(), &part.to_string()])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped());
            set_up_child(&mut command, ChildSetup::dying_with_parent());
            holders.push(command.spawn().unwrap());
        }
        balancers.push((balancer, before));
        origins.push(origin);
    }
    let mut outputs: Vec<_> = holders
        .iter_mut()
        .map(|holder| BufReader::new(holder.stdout.take().unwrap()).lines())
        .collect();
    let mut counted = || -> usize {
        let counts = outputs
            .iter_mut()
            .map(|lines| lines.next().and_then(Result::ok));
        counts
            .map(|line| line.expect("clients hold").parse::<usize>().unwrap())
            .sum()
    };
    let count = counted();
    // What is counted late, and buffers that are given back.
    std::thread::sleep(Duration::from_millis(500));
    let grown: usize = balancers
        .iter()
        .map(|(one, before)| one.resident_kib().saturating_sub(before.0))
        .sum();
    let descriptors: usize = balancers
        .iter()
        .map(|(one, before)| one.descriptors() - before.1)
        .sum();
    println!(
        "{kind}: {count} clients held by {processes} processes of the balancer: {:.2} KiB and \
         {:.2} descriptors each",
        grown as f64 / count as f64,
        descriptors as f64 / count as f64
    );
    for holder in &mut holders {
        drop(holder.stdin.take());
    }
    assert_eq!(counted(), count, "all are answered after the wait");
    for holder in &mut holders {
        assert!(holder.wait().unwrap().success());
    }
}

/// One client, well or badly behaved. Says whether it got what it was to get.
fn one_client(number: u64, address: SocketAddr) -> std::io::Result<()> {
    let mut stream = connect(address)?;
    let large = b"GET /bytes/2000000 HTTP/1.1\r\nHost: held\r\n\r\n";
    match number % 8 {
        // Gone at once.
        0 => {}
        // Reset, as the answer is unread.
        1 => {
            stream.write_all(GET)?;
            stream.peek(&mut [0])?;
        }
        // Half-closed behind its request.
        2 => {
            stream.write_all(b"GET / HTTP/1.1\r\nHost: held\r\nConnection: close\r\n\r\n")?;
            stream.shutdown(Shutdown::Write)?;
            let mut all = Vec::new();
            stream.read_to_end(&mut all)?;
            if !all.ends_with(b"Hello, world!") {
                return Err(std::io::ErrorKind::InvalidData.into());
            }
        }
        // Half-closed without one.
        3 => {
            stream.shutdown(Shutdown::Write)?;
            stream.read_to_end(&mut Vec::new())?;
        }
        // A slow reader that goes away, with much under way.
        4 => {
            stream.write_all(large)?;
            for _ in 0..5 {
                let _ = stream.read(&mut [0; 100])?;
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        // A body that is cut off.
        5 => stream
            .write_all(b"PUT / HTTP/1.1\r\nHost: held\r\nContent-Length: 99999\r\n\r\nhalf")?,
        // A head that comes in pieces.
        6 => {
            for piece in GET.chunks(7) {
                stream.write_all(piece)?;
                std::thread::sleep(Duration::from_millis(1));
            }
            stream.peek(&mut [0])?;
        }
        _ => (0..3).try_for_each(|_| ask(&mut stream))?,
    }
    Ok(())
}

/// Has clients come and go, and says what they have left behind.
fn churn(kind: &str, time: Duration) {
    let origin = || Program::start(&["origin", "--listen", "127.0.0.1:0"]);
    let origins = [origin(), origin()];
    let addresses = origins.each_ref().map(|one| one.address);
    let (balancer, socket) = Program::balancer(kind, &addresses, 2000);
    let (count, failed) = (AtomicU64::new(0), AtomicU64::new(0));
    let round = |time: Duration| {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let number = count.fetch_add(1, Ordering::Relaxed);
                        if one_client(number, balancer.address).is_err() {
                            failed.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
            std::thread::sleep(time);
            stop.store(true, Ordering::Relaxed);
        });
        settled(&socket);
        // Connections to back ends that are kept are no leak; both rounds end with some.
        (balancer.descriptors(), balancer.resident_kib())
    };
    // Buffers and pools come with the first clients.
    let before = round(time.min(Duration::from_secs(5)));
    let clients_before = count.load(Ordering::Relaxed);
    let after = round(time);
    println!(
        "{kind}: {} clients in {time:?}, {} without their answer: descriptors {} before, {} after; \
         memory {} KiB before, {} KiB after",
        count.load(Ordering::Relaxed) - clients_before,
        failed.load(Ordering::Relaxed),
        before.0,
        after.0,
        before.1,
        after.1
    );
}

/// Waits until the balancer says that nobody is there.
fn settled(socket: &std::path::Path) {
    let end = Instant::now() + LIMIT;
    loop {
        let status = balance::control::ask(socket, "status", LIMIT).unwrap();
        let service = &status["services"][0];
        let backends = service["backends"].as_array().unwrap();
        let active = backends.iter().map(|one| one["active"].as_u64().unwrap());
        if active.sum::<u64>() + service["active"].as_u64().unwrap() == 0 {
            return;
        }
        assert!(Instant::now() < end, "clients are left: {status}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
