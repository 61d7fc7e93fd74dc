//! A server started from its recipe, and back ends that say who they are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent::Agent;
use agent::wire::{Answer, AwaitServer, FileToWrite, Order, StartServer};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use experiment::Recipes;
use experiment::manifest::Value;
use experiment::recipe::{Behind, Recipe, RenderContext};
use net::http::{Progress, ResponseParser};

use crate::common::{
    LIMIT, Talk, Turn, descendants, free_port, is_left_out, serve_tcp, skip, wait_until, with_text,
};

/// A body that fits into no buffer of a proxy.
pub const LARGE_BYTES: usize = 2_000_000;

/// What a server answered.
pub struct Answered {
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// Asks once, on a connection of its own. `target` is a path, or a whole address for a forward
/// proxy.
pub fn ask(address: SocketAddr, target: &str) -> Answered {
    talk(address, "GET", target, "Connection: close\r\n", "")
}

/// Sends a body, on a connection that need not end with it.
pub fn tell(address: SocketAddr, method: &str, target: &str, body: &str) -> Answered {
    talk(address, method, target, "", body)
}

fn talk(address: SocketAddr, method: &str, target: &str, fields: &str, body: &str) -> Answered {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let length = body.len();
    let request = format!(
        "{method} {target} HTTP/1.1\r\nHost: {address}\r\n{fields}Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut parser = ResponseParser::new(false);
    let mut bytes = Vec::new();
    let mut body = Vec::new();
    let mut part = vec![0; 1 << 16];
    loop {
        let n = stream.read(&mut part).unwrap();
        bytes.extend_from_slice(&part[..n]);
        let progress = parser.feed(&part[..n], |part| body.extend_from_slice(part));
        if n == 0 || matches!(progress.unwrap(), Progress::Done { .. }) {
            break;
        }
    }
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let head = String::from_utf8_lossy(&bytes[..end.unwrap()]).to_lowercase();
    Answered {
        status: parser.head().status,
        head,
        body: String::from_utf8(body).unwrap(),
    }
}

/// A back end inside the test. It answers with its name, and at `/large` with a large body.
pub struct Upstream {
    pub address: SocketAddr,
    talk: Talk,
}

impl Upstream {
    pub fn start(name: &'static str) -> Self {
        let (address, talk) = serve_tcp(move |head| match head.contains("/large") {
            true => (200, "y".repeat(LARGE_BYTES)),
            false => (200, name.to_owned()),
        });
        Self { address, talk }
    }

    /// Connections and the heads of requests in small letters since the last look.
    pub fn taken(&self) -> (u64, Vec<String>) {
        let (connections, heads) = self.talk.taken();
        let heads = heads.iter().map(|head| head.to_lowercase());
        (connections, heads.collect())
    }
}

/// Parameters of a recipe: `workers = 2, tls = true, files = [a.txt b.txt]`.
pub fn params(text: &str) -> BTreeMap<String, Value> {
    let mut params = BTreeMap::new();
    for param in text.split(", ").filter(|param| !param.is_empty()) {
        let (name, value) = param.split_once(" = ").expect("NAME = VALUE");
        let list = value
            .strip_prefix('[')
            .and_then(|list| list.strip_suffix(']'));
        let value = match (value.parse(), value.parse(), list) {
            (Ok(truth), ..) => Value::Boolean(truth),
            (_, Ok(number), _) => Value::Integer(number),
            (_, _, Some(list)) => Value::List(list.split(' ').map(str::to_owned).collect()),
            _ => Value::Text(value.to_owned()),
        };
        params.insert(name.to_owned(), value);
    }
    params
}

/// The programs of a recipe; `None` where it is not installed, which counts as skipped.
pub fn installed(recipe: &Recipe) -> Option<BTreeMap<String, PathBuf>> {
    let available = recipe.available();
    let Some(sentence) = available.sentence() else {
        return Some(available.programs);
    };
    // What nobody wanted installed is not skipped, nor what no package has.
    match available.install_command {
        None => println!("not run: {sentence}"),
        Some(wanted) if wanted.split(' ').any(is_left_out) => {}
        // `./check` installs it: anybody can.
        Some(wanted) if wanted.starts_with("weigh install") => panic!("{sentence}"),
        Some(_) => skip(&sentence),
    }
    None
}

/// A server that answers as its recipe says.
pub struct Started {
    agent: Agent,
    pid: i32,
    signals: Vec<(String, u64)>,
    folder: PathBuf,
    elsewhere: (Vec<String>, BTreeMap<PathBuf, (i64, u64)>),
    pub address: SocketAddr,
    _turn: Turn,
}

impl Started {
    /// Starts it and waits until it is ready; `None` where it is not installed.
    pub fn start(name: &str, params: &str, upstreams: &[&Upstream]) -> Option<Self> {
        let upstreams = upstreams.iter().map(|upstream| Behind {
            name: "behind".to_owned(),
            addr: upstream.address,
            dir: None,
            tls: false,
        });
        Self::over(name, params, upstreams.collect())
    }

    /// This server as another's upstream.
    pub fn behind(&self) -> Behind {
        Behind {
            name: "behind".to_owned(),
            addr: self.address,
            dir: Some(self.folder.clone()),
            tls: false,
        }
    }

    /// The same as [`Started::start`], over servers of any kind.
    pub fn over(name: &str, params: &str, upstreams: Vec<Behind>) -> Option<Self> {
        let recipes = Recipes::embedded().unwrap();
        let recipe = recipes.get(name).unwrap();
        let programs = installed(recipe)?;
        let words: Vec<String> = programs
            .values()
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .chain(name.split('-').next().map(str::to_owned))
            .collect();
        let weigh = PathBuf::from(env!("CARGO_BIN_EXE_weigh"));
        let turn = Turn::shared();
        let mut agent = Agent::start(&weigh).unwrap();
        let order = Order::Folder {
            server: name.to_owned(),
            user: recipe.run_as.clone(),
        };
        let Answer::Folder { path, .. } = agent.ask(&order).unwrap() else {
            panic!("no folder");
        };
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let rendered = recipe
            .render(&RenderContext {
                name: name.to_owned(),
                dir: PathBuf::from(&path),
                listen_addr: address,
                upstreams,
                params: self::params(params),
                programs,
                weigh,
                cpus: 1,
                certificates: None,
                reload: Default::default(),
                checkout: None,
            })
            .unwrap();
        let before = elsewhere(&words);
        let file = |file: experiment::recipe::RenderedFile| FileToWrite {
            content: STANDARD.encode(&file.bytes),
            path: file.path,
            mode: file.mode,
        };
        let start = Order::Start(StartServer {
            server: name.to_owned(),
            dirs: rendered.dirs,
            memory_dirs: rendered.memory_dirs,
            files: rendered.files.into_iter().map(file).collect(),
            command: rendered.command,
            env: rendered.env,
            cwd: rendered.cwd,
            inherit_env: rendered.inherit_env,
            setuid_programs: rendered.setuid_programs,
            cpus: Vec::new(),
            logs: rendered.logs,
            counts: rendered.counts,
        });
        let Answer::Started { pid, .. } = agent.ask(&start).unwrap() else {
            panic!("not started");
        };
        let ready = rendered.ready;
        let raw = ready.send.is_some();
        let request = ready.send.unwrap_or_else(|| {
            let http = net::fetch::request("GET", name, &ready.path, &[]);
            String::from_utf8(http).unwrap()
        });
        let wait = Order::Await(AwaitServer {
            server: Some(name.to_owned()),
            address,
            request,
            raw,
            status: ready.status,
            contains: ready.contains,
            tls: None,
            http: ready.http,
            proxy_protocol: ready.proxy_protocol,
            timeout_ms: ready.timeout.as_millis() as u64,
        });
        if let Err(why) = agent.ask(&wait) {
            panic!("{why}");
        }
        let signals = rendered
            .stop
            .iter()
            .map(|(signal, wait)| (signal.clone(), wait.as_millis() as u64))
            .collect();
        Some(Self {
            agent,
            pid,
            signals,
            folder: PathBuf::from(path),
            elsewhere: (words, before),
            address,
            _turn: turn,
        })
    }

    /// What the agent knows it by.
    fn server(&self) -> String {
        let name = self.folder.file_name().unwrap();
        name.to_string_lossy().into_owned()
    }

    /// The text of one of its logs.
    pub fn log(&mut self, name: &str) -> String {
        let server = self.server();
        match self.agent.ask(&Order::Logs { server }).unwrap() {
            Answer::Logs { mut files } => files.remove(name).unwrap_or_default(),
            other => panic!("{other:?}"),
        }
    }

    /// Waits until one of its logs holds a text: a line may come after the answer that it is about.
    pub fn until_logged(&mut self, name: &str, text: &str) {
        let what = format!("`{text}` is in {name}");
        wait_until(&what, LIMIT, || self.log(name).contains(text));
    }

    /// Processes that are the server.
    pub fn processes(&self) -> Vec<i32> {
        let below = descendants(self.pid as u32);
        let below = below.iter().map(|process| process.pid);
        std::iter::once(self.pid).chain(below).collect()
    }

    /// Stops it as its recipe says, and looks that it kept to its place: no process of root's, no
    /// file open for writing outside of its folder, nothing left of it.
    pub fn stop(mut self) {
        let sockets = listening_sockets(self.address.port());
        let mut shared = Vec::new();
        for pid in self.processes() {
            if net::os::is_root() {
                let owner = fs::metadata(format!("/proc/{pid}")).unwrap().uid();
                assert_ne!(owner, 0, "process {pid} is root's");
            }
            let (memory, files): (Vec<_>, Vec<_>) = written(pid)
                .into_iter()
                .partition(|path| path.starts_with("/dev/shm"));
            shared.extend(memory);
            let outside: Vec<_> = files
                .iter()
                .filter(|path| !path.starts_with(&self.folder))
                .collect();
            assert!(outside.is_empty(), "process {pid} writes {outside:?}");
        }
        let server = self.server();
        let order = Order::Stop {
            server,
            signals: self.signals.clone(),
        };
        let stopped = self.agent.ask(&order).unwrap();
        let well = Answer::Stopped {
            killed: false,
            ended_before: false,
        };
        assert_eq!(stopped, well, "it does not stop when it is told to");
        let place = self.agent.folder().to_owned();
        drop(self.agent);
        assert!(!place.exists(), "{} is left", place.display());
        let left = with_text(&place.display().to_string());
        assert!(left.is_empty(), "{left:?}");
        // Another test may have been given the port since.
        let mut listening = listening_sockets(self.address.port());
        listening.retain(|socket| sockets.contains(socket));
        assert!(!sockets.is_empty(), "its socket was not found");
        assert!(listening.is_empty(), "it still listens");
        // Shared memory has to have a name; it may not stay.
        shared.retain(|path| path.exists());
        assert!(shared.is_empty(), "{shared:?}");
        let (words, before) = self.elsewhere;
        assert_eq!(elsewhere(&words), before, "it wrote outside of its folder");
    }
}

/// The inodes of the sockets that listen at a port of this network namespace.
fn listening_sockets(port: u16) -> BTreeSet<String> {
    const LISTEN: &str = "0A";
    let port = format!(":{port:04X}");
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
    let lines = tables.iter().flatten().flat_map(|table| table.lines());
    lines
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|fields| fields[1].ends_with(&port) && fields[3] == LISTEN)
        .map(|fields| fields[9].to_owned())
        .collect()
}

/// Files that a process has open for writing.
fn written(pid: i32) -> Vec<PathBuf> {
    const WRITES: u32 = 0o3;
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let path = fs::read_link(entry.path()).ok()?;
            let number = entry.file_name().into_string().ok()?;
            let about = fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).ok()?;
            let flags = about.lines().find_map(|line| line.strip_prefix("flags:"))?;
            let flags = u32::from_str_radix(flags.trim(), 8).ok()?;
            // Sockets and pipes have names without a slash.
            let file = path.is_absolute() && path != Path::new("/dev/null");
            (file && flags & WRITES != 0).then_some(path)
        })
        .collect()
}

/// What the system's own instance of a server would write: times and sizes of all that lies in
/// places of its name.
fn elsewhere(words: &[String]) -> BTreeMap<PathBuf, (i64, u64)> {
    let mut found = BTreeMap::new();
    for base in [
        "/etc",
        "/run",
        "/dev/shm",
        "/var/cache",
        "/var/lib",
        "/var/log",
        "/var/spool",
        "/var/tmp",
    ] {
        for entry in fs::read_dir(base).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if words
                .iter()
                .any(|word| name.contains(word.trim_end_matches('d')))
            {
                note(&entry.path(), &mut found);
            }
        }
    }
    found
}

fn note(path: &Path, found: &mut BTreeMap<PathBuf, (i64, u64)>) {
    let Ok(about) = fs::symlink_metadata(path) else {
        return;
    };
    found.insert(path.to_owned(), (about.mtime(), about.len()));
    if about.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            note(&entry.path(), found);
        }
    }
}
