//! Servers that do what a script says, and loads that end or fail.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use load::{BodyRule, Expect, Job, Segment, StatusRule, Stop, Target, prepare, run};
use net::IoKind;
use net::fetch::request;
use origin::{Origin, OriginOptions};
use readings::{ErrorCounts, LoadReading};

pub const BOTH: [IoKind; 2] = [IoKind::Uring, IoKind::Epoll];
/// A good answer, its body as the origin's.
pub const GOOD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, world!";
/// What no load may exceed. A load that hangs fails its test, and does not hang it.
const WATCHDOG: Duration = Duration::from_secs(30);
/// Time limit of an answer where the server lets it pass.
const SHORT: Duration = Duration::from_millis(100);
/// Time limit of an answer where the server does something that must be noticed before.
pub const LONG: Duration = Duration::from_secs(20);
/// Good requests before and after the hostile ones.
const BESIDE: (u64, u64) = (20, 30);

/// The server's end of a connection.
pub struct Peer {
    pub stream: TcpStream,
    stopped: Arc<Stopped>,
}

#[derive(Default)]
struct Stopped {
    flag: Mutex<bool>,
    changed: Condvar,
}

impl Peer {
    /// Waits for a request's head. False when the client has gone.
    pub fn request(&mut self) -> bool {
        let mut last = [0; 4];
        let mut byte = [0];
        while last != *b"\r\n\r\n" {
            match self.stream.read(&mut byte) {
                Ok(1) => {
                    last.rotate_left(1);
                    last[3] = byte[0];
                }
                _ => return false,
            }
        }
        true
    }

    pub fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Answers a request with these bytes.
    pub fn answer(&mut self, bytes: &[u8]) -> bool {
        self.request() && self.send(bytes)
    }

    /// Sends the same again and again, as fast as it goes, until the client has gone.
    pub fn flood(&mut self, bytes: &[u8]) {
        while self.send(bytes) {}
    }

    /// Sends the same again and again, byte by byte, with a pause behind each.
    pub fn trickle(&mut self, bytes: &[u8], pause: Duration) {
        for byte in bytes.iter().cycle() {
            if !self.send(&[*byte]) || !self.pause(pause) {
                return;
            }
        }
    }

    /// False when the client goes meanwhile.
    pub fn pause(&mut self, time: Duration) -> bool {
        self.stream.set_read_timeout(Some(time)).unwrap();
        let alive = match self.stream.read(&mut [0; 4096]) {
            Ok(n) => n > 0,
            Err(e) => matches!(
                e.kind(),
                std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
            ),
        };
        self.stream.set_read_timeout(Some(2 * WATCHDOG)).unwrap();
        alive
    }

    /// Reads until the client has gone.
    pub fn drain(&mut self) {
        let mut buffer = [0; 16 * 1024];
        while matches!(self.stream.read(&mut buffer), Ok(1..)) {}
    }

    /// Does nothing, not even read, until the server is stopped.
    pub fn hold(&self) {
        let mut stopped = self.stopped.flag.lock().unwrap();
        while !*stopped {
            stopped = self.stopped.changed.wait(stopped).unwrap();
        }
    }

    /// Reads a little now and then, until the client has gone.
    pub fn sip(&mut self, bytes: usize, pause: Duration) {
        let mut buffer = vec![0; bytes];
        while matches!(self.stream.read(&mut buffer), Ok(1..)) {
            let stopped = self.stopped.flag.lock().unwrap();
            let (stopped, _) = self.stopped.changed.wait_timeout(stopped, pause).unwrap();
            if *stopped {
                return;
            }
        }
    }

    /// Ends the sending side.
    pub fn half_close(&self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// The end of the script will be a reset.
    pub fn reset(&self) {
        socket2::SockRef::from(&self.stream)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
    }
}

/// A server on loopback that treats each connection by a script, on a thread of its own; the
/// connection is closed at the script's end. It stops when it is dropped.
pub struct Server {
    pub address: SocketAddr,
    stopped: Arc<Stopped>,
    stop: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

/// A loopback address for one server of one process: when it has closed its port, nobody else
/// gets it while the load still knocks there.
fn own_address() -> Ipv4Addr {
    static SERVERS: AtomicU32 = AtomicU32::new(0);
    let (process, server) = (std::process::id(), SERVERS.fetch_add(1, Ordering::Relaxed));
    let part = |number: u32| 1 + (number % 250) as u8;
    Ipv4Addr::new(127, part(process), part(process / 250), part(server))
}

impl Server {
    pub fn start(script: impl Fn(&mut Peer) + Send + Sync + 'static) -> Self {
        Self::with_connections(usize::MAX, script)
    }

    /// A server that closes its listening socket after so many connections.
    pub fn with_connections(
        connections: usize,
        script: impl Fn(&mut Peer) + Send + Sync + 'static,
    ) -> Self {
        Self::of(
            TcpListener::bind((own_address(), 0)).unwrap(),
            connections,
            script,
        )
    }

    /// A server on a socket that listens.
    pub fn on(listener: TcpListener, script: impl Fn(&mut Peer) + Send + Sync + 'static) -> Self {
        Self::of(listener, usize::MAX, script)
    }

    fn of(
        listener: TcpListener,
        connections: usize,
        script: impl Fn(&mut Peer) + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let stopped = Arc::new(Stopped::default());
        let stop = Arc::new(AtomicBool::new(false));
        let (flag, hold, script) = (stop.clone(), stopped.clone(), Arc::new(script));
        let acceptor = std::thread::spawn(move || {
            let mut peers: Vec<JoinHandle<()>> = Vec::new();
            for stream in listener.incoming().flatten().take(connections) {
                if flag.load(Ordering::Relaxed) {
                    break;
                }
                let (script, stopped) = (script.clone(), hold.clone());
                peers.retain(|peer| !peer.is_finished());
                peers.push(std::thread::spawn(move || {
                    let _ = stream.set_nodelay(true);
                    // The client's going ends every script; this is for when it does not go.
                    let _ = stream.set_read_timeout(Some(2 * WATCHDOG));
                    let _ = stream.set_write_timeout(Some(2 * WATCHDOG));
                    script(&mut Peer { stream, stopped });
                }));
            }
            drop(listener);
            for peer in peers {
                let _ = peer.join();
            }
        });
        Self {
            address,
            stopped,
            stop,
            acceptor: Some(acceptor),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Ok(mut stopped) = self.stopped.flag.lock() {
            *stopped = true;
        }
        self.stopped.changed.notify_all();
        // Wakes the acceptor.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

pub fn origin() -> Origin {
    Origin::start(&OriginOptions {
        connections: 2048,
        ..OriginOptions::default()
    })
    .unwrap()
}

pub fn target(address: SocketAddr, path: &str) -> Target {
    let request = request("GET", "origin", path, &[]);
    Target::new(address, request, Expect::default())
}

pub fn get(address: SocketAddr) -> Target {
    target(address, "/")
}

/// A load of one segment in a closed loop.
pub fn job(io: IoKind, target: Target, connections: u32, threads: usize, stop: Stop) -> Job {
    Job {
        threads,
        timeout: LONG,
        io: Some(io),
        ..Job::to(target.with_connections(connections)).segment(Segment::closed(stop))
    }
}

pub fn one(job: &Job) -> LoadReading {
    run(job, &Arc::default(), |_| {}).unwrap().remove(0)
}

/// What so many requests of one thread come to.
pub fn asks(io: IoKind, target: Target, connections: u32, requests: u64) -> LoadReading {
    one(&job(io, target, connections, 1, Stop::Requests(requests)))
}

/// An answer with this status and any body.
pub fn answered(status: u16) -> Expect {
    Expect {
        status: StatusRule::Exactly(status),
        body: BodyRule::Any,
    }
}

/// What every page of the origin answers that has no other content.
pub fn hello() -> Expect {
    Expect {
        body: BodyRule::Bytes(Arc::from(&b"Hello, world!"[..])),
        ..answered(200)
    }
}

/// Asserts that the first wrong answer is told with these words.
pub fn assert_found(reading: &LoadReading, words: &str) {
    let found = &reading.wrong[0].found;
    assert!(found.contains(words), "{found}");
}

/// Whether this is a process for one test alone; otherwise starts one and waits for it.
pub fn is_own_process(test: &str) -> bool {
    const ALONE: &str = "WEIGH_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut own = std::process::Command::new(std::env::current_exe().unwrap());
    let status = own.args(["--exact", test]).env(ALONE, "1").status();
    assert!(status.unwrap().success());
    false
}

/// Target 0 is the hostile server, target 1 a good one; a segment on the good one comes before and
/// after the hostile segment.
pub fn beside(io: IoKind, target: Target, connections: u32, stop: Stop, good: SocketAddr) -> Job {
    let mut beside = get(good).with_connections(2);
    beside.requests[0].expect = hello();
    let on_good = |count| Segment::closed(Stop::Requests(count)).on(1, Some(1));
    let mut job = Job::to(target.with_connections(connections))
        .segment(on_good(BESIDE.0))
        .segment(Segment::closed(stop))
        .segment(on_good(BESIDE.1));
    job.targets.push(beside);
    job.io = Some(io);
    (job.connect_timeout, job.timeout) = (LONG, LONG);
    job
}

/// What the work returns; fails when it takes longer than any load may.
pub fn in_time<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::spawn(move || drop(sender.send(work())));
    match receiver.recv_timeout(WATCHDOG) {
        Ok(result) => {
            let _ = thread.join();
            result
        }
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{name}: not over after {WATCHDOG:?}"),
        Err(mpsc::RecvTimeoutError::Disconnected) => panic!("{name}: panicked"),
    }
}

/// The hostile target's reading. The good target was measured as if it were alone: no error, except
/// that a short time limit may pass on a machine that is very busy.
pub fn carry_out(name: &str, job: &Job) -> LoadReading {
    let job = job.clone();
    let is_short = job.timeout < LONG;
    let stop = Arc::new(AtomicBool::new(false));
    let mut readings = in_time(name, move || run(&job, &stop, |_| {})).unwrap();
    let beside = &readings[1];
    let errors = beside.errors_all;
    let excused = if is_short { errors.timeout } else { 0 };
    assert_eq!(errors.total(), excused, "{name}: {:?}", beside.wrong);
    assert_eq!(beside.requests_all + excused, BESIDE.0 + BESIDE.1, "{name}");
    readings.remove(0)
}

/// How a request may be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    Good,
    Connect,
    Read,
    Write,
    Timeout,
    Status,
}

pub fn count(reading: &LoadReading, counted: &[Counted]) -> u64 {
    let ErrorCounts {
        connect,
        read,
        write,
        timeout,
        status,
        ..
    } = reading.errors_all;
    counted
        .iter()
        .map(|one| match one {
            Counted::Good => reading.requests_all,
            Counted::Connect => connect,
            Counted::Read => read,
            Counted::Write => write,
            Counted::Timeout => timeout,
            Counted::Status => status,
        })
        .sum()
}

/// Every request is counted in one of the ways given, and each message says the expected.
pub fn judge(name: &str, reading: &LoadReading, asked: u64, counted: &[Counted], message: &str) {
    let errors = reading.errors_all;
    let shown = format!("{name}: {errors:?} {:?}", reading.wrong);
    assert_eq!(reading.requests_all + errors.total(), asked, "{shown}");
    assert_eq!(count(reading, counted), asked, "{shown}");
    assert!(errors.total() == 0 || !reading.wrong.is_empty(), "{shown}");
    for wrong in &reading.wrong {
        let text = format!("expected {}, found {}", wrong.expected, wrong.found);
        assert!(text.contains(message), "{name}: {text}");
    }
}

/// A hostile server, and how the load has to count what it does.
pub struct Hostile {
    name: String,
    request: Vec<u8>,
    requests: u64,
    counted: Vec<Counted>,
    message: String,
}

/// A server that answers GET so that requests are counted in one of the given ways.
pub fn hostile(name: &str, counted: &[Counted], message: &str) -> Hostile {
    Hostile {
        name: name.to_string(),
        request: request("GET", "test", "/", &[]),
        // Time limits that pass make a test slow.
        requests: if counted == [Counted::Timeout] { 2 } else { 4 },
        counted: counted.to_vec(),
        message: message.to_string(),
    }
}

impl Hostile {
    pub fn asked(mut self, request: Vec<u8>) -> Self {
        self.request = request;
        self
    }

    /// Puts load on the server with both loops, two connections each. A time limit is short where
    /// it is to pass, and long enough elsewhere that only what the server does ends a request.
    pub fn does(self, script: impl Fn(&mut Peer) + Send + Sync + 'static) -> [LoadReading; 2] {
        let server = Server::start(script);
        let good = origin();
        let mut target = get(server.address);
        target.requests[0].bytes = self.request.clone();
        let readings = BOTH.map(|io| {
            let name = format!("{} on {io}", self.name);
            let stop = Stop::Requests(self.requests);
            let mut job = beside(io, target.clone(), 2, stop, good.address());
            if self.counted == [Counted::Timeout] {
                job.timeout = SHORT;
                job.connect_timeout = SHORT;
            }
            let reading = carry_out(&name, &job);
            judge(&name, &reading, self.requests, &self.counted, &self.message);
            reading
        });
        // What is asked before a load begins has to come to an end too.
        let start = Instant::now();
        target.requests[0].expect.body = BodyRule::Auto;
        let mut job = Job::to(target);
        job.timeout = SHORT;
        let _ = in_time(&self.name, move || {
            prepare(&mut job, &AtomicBool::new(false))
        });
        assert!(start.elapsed() < SHORT * 3 + Duration::from_secs(10));
        readings
    }

    /// Answers each request with the same bytes, and reads on.
    pub fn answers(self, bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> [LoadReading; 2] {
        self.does(move |peer| while peer.answer(bytes.as_ref()) {})
    }

    /// Answers each request with the same bytes, and closes the connection.
    pub fn answers_and_closes(
        self,
        bytes: impl AsRef<[u8]> + Send + Sync + 'static,
    ) -> [LoadReading; 2] {
        self.does(move |peer| {
            let _ = peer.answer(bytes.as_ref());
        })
    }
}
