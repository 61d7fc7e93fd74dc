//! What the tests of the control plane share: a folder of a test's own, back ends, and a balancer.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use balance::control::{Socket, Supervisor, ask, beside};
use net::IoKind;
use net::wait::{Watch, wait};
use serde_json::Value;

pub use super::{LONG, until};

/// A folder of a test's own.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("wb-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Folder(path)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A back end that answers each line with its name, by TCP, or a request with a status, by HTTP.
/// Dropping it closes its listening socket; connections go on.
pub struct BackEnd {
    pub address: SocketAddr,
    pub accepted: Arc<AtomicU64>,
    /// The statuses that it has answered with, by HTTP.
    statuses: Arc<Mutex<Vec<u32>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl BackEnd {
    pub fn start(name: &str) -> BackEnd {
        BackEnd::at("127.0.0.1:0".parse().unwrap(), name)
    }

    pub fn at(address: SocketAddr, name: &str) -> BackEnd {
        let name = format!("{name}\n");
        BackEnd::serving(address, move |stream| {
            let mut reader = stream.try_clone().unwrap();
            let mut stream = stream;
            let mut byte = [0];
            while let Ok(1) = reader.read(&mut byte) {
                if byte[0] == b'\n' && stream.write_all(name.as_bytes()).is_err() {
                    return;
                }
            }
        })
    }

    /// By HTTP, with the status that is set at the time.
    pub fn http(status: Arc<AtomicU32>) -> BackEnd {
        let statuses = Arc::new(Mutex::new(Vec::new()));
        let all = statuses.clone();
        let mut serving = BackEnd::serving("127.0.0.1:0".parse().unwrap(), move |mut stream| {
            let mut head = Vec::new();
            let mut bytes = [0; 1024];
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read(&mut bytes) {
                    Ok(n @ 1..) => head.extend_from_slice(&bytes[..n]),
                    _ => return,
                }
            }
            let status = status.load(Ordering::Relaxed);
            all.lock().unwrap().push(status);
            let answer = format!("HTTP/1.1 {status} So\r\nContent-Length: 4\r\n\r\nword");
            let _ = stream.write_all(answer.as_bytes());
        });
        serving.statuses = statuses;
        serving
    }

    fn serving(address: SocketAddr, serve: impl Fn(TcpStream) + Clone + Send + 'static) -> BackEnd {
        let listener = TcpListener::bind(address).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let accepted = Arc::new(AtomicU64::new(0));
        let (stopped, count) = (stop.clone(), accepted.clone());
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let mut watches = [Watch::read(listener.as_fd())];
                wait(&mut watches, Some(Duration::from_millis(10))).unwrap();
                while let Ok((stream, _)) = listener.accept() {
                    count.fetch_add(1, Ordering::Relaxed);
                    stream.set_nonblocking(false).unwrap();
                    let serve = serve.clone();
                    std::thread::spawn(move || serve(stream));
                }
            }
        });
        BackEnd {
            address,
            accepted,
            statuses: Arc::default(),
            stop,
            thread: Some(thread),
        }
    }

    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// How often it has answered with a status.
    pub fn answered_with(&self, status: u32) -> usize {
        let all = self.statuses.lock().unwrap();
        all.iter().filter(|&&one| one == status).count()
    }
}

impl Drop for BackEnd {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// A balancer that answers on its socket.
pub struct Running {
    pub supervisor: Arc<Supervisor>,
    pub socket: Socket,
    pub file: PathBuf,
    pub folder: Folder,
}

/// Starts a balancer for a configuration, on an event loop.
pub fn start(text: &str, io: IoKind) -> Running {
    let folder = Folder::new();
    let file = folder.write(
        "b.toml",
        &text.replace("FOLDER", folder.0.to_str().unwrap()),
    );
    let (config, _) = balance::parse_file(&file).unwrap();
    let supervisor = Supervisor::start(&config, &file, io).unwrap();
    let socket = Socket::open(&beside(&file), &supervisor).unwrap();
    Running {
        supervisor,
        socket,
        file,
        folder,
    }
}

impl Running {
    /// Asks on the socket.
    pub fn ask(&self, request: &str) -> Value {
        ask(self.socket.path(), request, LONG).unwrap()
    }

    /// Asks on the socket, which is to do it.
    pub fn done(&self, request: &str) -> Value {
        let answer = self.ask(request);
        assert_eq!(answer["ok"], true, "{request}: {answer}");
        answer
    }

    /// Asks on the socket, which is to refuse it; says why, and the exit status.
    pub fn refused(&self, request: &str) -> (String, u64) {
        let answer = self.ask(request);
        assert_eq!(answer["ok"], false, "{request}: {answer}");
        let error = answer["error"].as_str().unwrap().to_owned();
        (error, answer["status"].as_u64().unwrap())
    }

    /// What it says of a back end.
    pub fn backend(&self, service: usize, backend: usize) -> Value {
        self.done("status")["services"][service]["backends"][backend].clone()
    }

    pub fn state(&self, service: usize, backend: usize) -> String {
        let backend = self.backend(service, backend);
        backend["state"].as_str().unwrap().to_owned()
    }

    pub fn address(&self) -> SocketAddr {
        self.supervisor.addresses()[0].1
    }

    /// Writes the configuration anew.
    pub fn rewrite(&self, text: &str) {
        let text = text.replace("FOLDER", self.folder.0.to_str().unwrap());
        fs::write(&self.file, text).unwrap();
    }
}

/// A client that is connected.
pub struct Client(pub TcpStream);

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        Client(stream)
    }

    /// Sends a line and reads one: the name of the back end; nothing when it was closed.
    pub fn try_ask(&mut self) -> Option<String> {
        self.0.write_all(b"?\n").ok()?;
        let mut line = Vec::new();
        let mut byte = [0];
        loop {
            match self.0.read(&mut byte) {
                Ok(1) if byte[0] == b'\n' => return String::from_utf8(line).ok(),
                Ok(1) => line.push(byte[0]),
                _ => return None,
            }
        }
    }

    pub fn ask(&mut self) -> String {
        self.try_ask().expect("an answer")
    }

    /// Waits until the balancer closes it.
    pub fn closed(mut self) {
        let mut bytes = [0; 64];
        match self.0.read(&mut bytes) {
            Ok(0) => {}
            Ok(n) => panic!("{n} bytes came"),
            Err(e) => assert_eq!(e.kind(), std::io::ErrorKind::ConnectionReset, "{e}"),
        }
    }
}

/// Who answers a new client.
pub fn who(address: SocketAddr) -> Option<String> {
    Client::connect(address).try_ask()
}

pub fn permissions(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}
