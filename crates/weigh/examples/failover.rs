//! What clients notice of a back end that dies behind a balancer, and when it is used again:
//!
//! ```sh
//! cargo build --release -p weigh
//! cargo run --release -p weigh --example failover                       # all, about 10 minutes
//! cargo run --release -p weigh --example failover -- FILE balance_tcp   # one of a file
//! ```
//!
//! Three back ends, each on a host of its own, get 2,000 requests/s in an open loop, a connection
//! for each request. After 3 s the last of them is killed, stopped (SIGSTOP), or loses its network;
//! 8 s later it is started again, continued, or has its network back. The file (`failover.toml`
//! beside this program's source) is an experiment's, of which hosts, servers and subjects are used.
//!
//! It needs hosts (root, or user namespaces) and `ip` (iproute2).

use std::collections::BTreeMap;
use std::error::Error;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use lab::agent::Agent;
use lab::agent::wire::{AwaitServer, FileToWrite, Order, StartServer};
use lab::experiment::{Experiment, ServerSpec, Target, Upstream};
use lab::hosts::{World, WorldOptions};
use lab::recipe::{Behind, Recipes, RenderContext};
use readings::Condition;
use serde_json::Value;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const RATE_PER_S: f64 = 2000.0;
/// Connections that the load may have open: those that wait for an answer in vain are many.
const CONNECTIONS: &str = "8000";
/// A request that takes longer has failed.
const TIMEOUT: &str = "2s";
const TREATED_AFTER: Duration = Duration::from_secs(3);
const UNDONE_AFTER: Duration = Duration::from_secs(8);
/// How long its return is awaited.
const AWAITED: Duration = Duration::from_secs(14);
/// Rows of the load.
const ROW: &str = "100ms";
/// A row below this share of its requests answered well is not at the full rate.
const FULL: f64 = 0.9;

const KILL: i32 = 9;
const CONT: i32 = 18;
const STOP: i32 = 19;

#[derive(Clone, Copy)]
enum Treatment {
    Killed,
    Stopped,
    CutOff,
}

impl Treatment {
    const ALL: [Treatment; 3] = [Treatment::Killed, Treatment::Stopped, Treatment::CutOff];

    fn name(self) -> &'static str {
        match self {
            Treatment::Killed => "killed",
            Treatment::Stopped => "stopped",
            Treatment::CutOff => "unreachable",
        }
    }
}

fn main() -> Result<()> {
    let own = std::env::current_exe()?;
    let folder = own.parent().and_then(Path::parent).ok_or("no folder")?;
    let weigh = folder.join("weigh");
    let mut arguments = std::env::args().skip(1);
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/failover.toml");
    let file = PathBuf::from(arguments.next().unwrap_or_else(|| beside.to_owned()));
    let only: Vec<String> = arguments.collect();
    let recipes = Recipes::embedded()?;
    let experiment = Experiment::read(&file, &[], false, &recipes)?;
    let setting = experiment.under(&Condition::new());
    println!("| balancer | back end | requests | failed | below full rate | in rotation after |");
    println!("|---|---|---|---|---|---|");
    for subject in &setting.subjects {
        let Target::Server(name) = &subject.target else {
            continue;
        };
        if !only.is_empty() && !only.contains(&subject.name) {
            continue;
        }
        for treatment in Treatment::ALL {
            let scene = Scene {
                weigh: &weigh,
                recipes: &recipes,
                experiment: &experiment,
                servers: &setting.servers,
            };
            let found = scene.play(name, treatment);
            let cells = found.unwrap_or_else(|e| format!("{e} | | |"));
            println!("| {} | {} | {cells} |", subject.name, treatment.name());
        }
    }
    Ok(())
}

struct Scene<'s> {
    weigh: &'s Path,
    recipes: &'s Recipes,
    experiment: &'s Experiment,
    servers: &'s [ServerSpec],
}

/// A process of this program's; it is killed with this.
struct Running(Child);

impl Running {
    fn signal(&self, number: i32) -> Result<()> {
        Ok(net::os::kill(i32::try_from(self.0.id())?, number)?)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A back end and where it is.
struct BackEnd {
    host: String,
    address: SocketAddr,
    running: Running,
}

impl Scene<'_> {
    /// One treatment of one balancer: the cells of the table.
    fn play(&self, balancer: &str, treatment: Treatment) -> Result<String> {
        let world = World::build(self.weigh, &self.experiment.hosts, &WorldOptions::default())?;
        let spec = self.spec(balancer)?;
        let mut backends = Vec::new();
        let mut behind = Vec::new();
        for upstream in &spec.upstreams {
            let Upstream::Server(name) = upstream else {
                return Err("expected upstreams on hosts".into());
            };
            let one = self.spec(name)?;
            let host = one.host.clone().ok_or("a back end has no host")?;
            let port = one.port.unwrap_or(8080);
            let address = SocketAddr::new(world.host(&host)?.address, port);
            behind.push(Behind {
                name: name.clone(),
                addr: address,
                dir: None,
            });
            backends.push(BackEnd {
                running: self.origin(&world, &host, address)?,
                host,
                address,
            });
        }
        let host = spec.host.clone().ok_or("the balancer has no host")?;
        let mut agent = world.agent_in(&host)?;
        let address = SocketAddr::new(world.host(&host)?.address, spec.port.unwrap_or(8000));
        self.start(&mut agent, spec, address, behind)?;
        let mut treated = backends.pop().ok_or("no back end")?;
        let load = self.load(&world, address)?;
        std::thread::sleep(TREATED_AFTER);
        self.treat(&world, &mut treated, treatment, true)?;
        std::thread::sleep(UNDONE_AFTER);
        self.treat(&world, &mut treated, treatment, false)?;
        let back = rotation(&world, &treated)?;
        let document = finished(load)?;
        drop(agent);
        Ok(cells(&document, back))
    }

    fn spec(&self, name: &str) -> Result<&ServerSpec> {
        let found = self.servers.iter().find(|one| one.name == name);
        found.ok_or_else(|| format!("no server `{name}`").into())
    }

    fn on(&self, world: &World, host: &str, words: &[&str]) -> Result<Command> {
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let mut setup = world.setup_in(host)??;
        setup.die_with_parent = true;
        net::os::set_up_child(&mut command, setup);
        Ok(command)
    }

    fn origin(&self, world: &World, host: &str, address: SocketAddr) -> Result<Running> {
        let (weigh, listen) = (self.weigh.display().to_string(), address.to_string());
        let mut command = self.on(world, host, &[&weigh, "origin", "--listen", &listen])?;
        let running = Running(command.stderr(Stdio::null()).spawn()?);
        let end = Instant::now() + Duration::from_secs(10);
        while requests(world, host, address).is_none() {
            if Instant::now() > end {
                return Err("a back end does not answer".into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(running)
    }

    /// Starts the balancer as its recipe says.
    fn start(
        &self,
        agent: &mut Agent,
        spec: &ServerSpec,
        address: SocketAddr,
        upstreams: Vec<Behind>,
    ) -> Result<()> {
        let recipe = self.recipes.get(&spec.recipe).ok_or("no such recipe")?;
        let available = recipe.available();
        if let Some(sentence) = available.sentence() {
            return Err(sentence.into());
        }
        let user = recipe.run_as.clone();
        let folder = agent.ask(&Order::Folder {
            server: spec.name.clone(),
            user: user.clone(),
        })?;
        let lab::agent::wire::Answer::Folder { path } = folder else {
            return Err("expected a folder".into());
        };
        let out = recipe.render(&RenderContext {
            name: spec.name.clone(),
            dir: PathBuf::from(path),
            listen_addr: address,
            upstreams,
            params: spec.params.clone(),
            programs: available.programs.into_iter().collect::<BTreeMap<_, _>>(),
            weigh: self.weigh.to_path_buf(),
            cpus: 1,
        })?;
        let file = |file: lab::recipe::RenderedFile| FileToWrite {
            path: file.path,
            content: BASE64_STANDARD.encode(&file.bytes),
            mode: file.mode,
        };
        agent.ask(&Order::Start(StartServer {
            server: spec.name.clone(),
            dirs: out.dirs,
            files: out.files.into_iter().map(file).collect(),
            command: out.command,
            env: out.env,
            user,
            cpus: Vec::new(),
            logs: out.logs,
        }))?;
        let request = net::fetch::request("GET", "failover", "/", &[]);
        agent.ask(&Order::Await(AwaitServer {
            server: Some(spec.name.clone()),
            address,
            request: String::from_utf8_lossy(&request).into_owned(),
            raw: false,
            status: Some(200),
            contains: None,
            timeout_ms: 10_000,
        }))?;
        Ok(())
    }

    fn load(&self, world: &World, address: SocketAddr) -> Result<std::thread::JoinHandle<Load>> {
        let host = self.experiment.load.host.as_deref();
        let host = host.ok_or("the load has no host")?;
        let (weigh, url) = (
            self.weigh.display().to_string(),
            format!("http://{address}/"),
        );
        let whole = TREATED_AFTER + UNDONE_AFTER + AWAITED;
        let (rate, duration) = (RATE_PER_S.to_string(), format!("{}s", whole.as_secs()));
        let words = [
            &*weigh,
            "load",
            &url,
            "--no-keepalive",
            "-c",
            CONNECTIONS,
            "--rate",
            &rate,
            "-d",
            &duration,
            "--timeout",
            TIMEOUT,
            "--interval",
            ROW,
            "--format",
            "json",
            "-q",
        ];
        let mut command = self.on(world, host, &words)?;
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(std::thread::spawn(move || command.output()))
    }

    fn treat(
        &self,
        world: &World,
        one: &mut BackEnd,
        treatment: Treatment,
        begin: bool,
    ) -> Result<()> {
        match (treatment, begin) {
            (Treatment::Killed, true) => one.running.signal(KILL),
            (Treatment::Killed, false) => {
                one.running = self.origin(world, &one.host, one.address)?;
                Ok(())
            }
            (Treatment::Stopped, true) => one.running.signal(STOP),
            (Treatment::Stopped, false) => one.running.signal(CONT),
            (Treatment::CutOff, _) => {
                let words = ["ip", "-o", "-4", "addr", "show", "scope", "global"];
                let mut asked = self.on(world, &one.host, &words)?;
                let shown = asked.stdout(Stdio::piped()).output()?.stdout;
                let shown = String::from_utf8(shown)?;
                let device = shown.split_whitespace().nth(1).unwrap_or("eth0");
                let to = if begin { "down" } else { "up" };
                let words = ["ip", "link", "set", device, to];
                match self.on(world, &one.host, &words)?.status()?.success() {
                    true => Ok(()),
                    false => Err(format!("{device} on {} cannot be set {to}", one.host).into()),
                }
            }
        }
    }
}

type Load = std::io::Result<std::process::Output>;

fn finished(load: std::thread::JoinHandle<Load>) -> Result<Value> {
    let output = load.join().map_err(|_| "the load broke off")??;
    let document = serde_json::from_slice(&output.stdout);
    document.map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned().into())
}

/// How many requests a back end has had, asked on its own host.
fn requests(world: &World, host: &str, address: SocketAddr) -> Option<u64> {
    let request = net::fetch::request(
        "GET",
        "failover",
        "/.weigh/stats",
        &[("Connection".to_owned(), "close".to_owned())],
    );
    let limit = Duration::from_millis(500);
    let asked = || net::fetch::fetch(&address.into(), &request, limit, 1 << 16);
    let answer = world.host(host).ok()?.on_its_network(asked).ok()?.ok()?;
    let stats: Value = serde_json::from_slice(&answer.body).ok()?;
    stats["requests"].as_u64()
}

/// How long it takes until a back end gets its share of the requests again; `None`: it did not.
fn rotation(world: &World, one: &BackEnd) -> Result<Option<Duration>> {
    let undone = Instant::now();
    let late = AtomicBool::new(false);
    let mut before: Option<u64> = None;
    let step = Duration::from_millis(50);
    let mut found = None;
    while undone.elapsed() < AWAITED - Duration::from_secs(1) {
        std::thread::sleep(step);
        let now = requests(world, &one.host, one.address);
        // Half of a third; what it had in its queue when it was stopped comes at once.
        let share = (RATE_PER_S / 6.0 * step.as_secs_f64()) as u64;
        let more = before
            .zip(now)
            .is_some_and(|(before, now)| now > before + share);
        match more {
            true if late.swap(true, Ordering::Relaxed) => return Ok(found),
            true => found = Some(undone.elapsed()),
            false => late.store(false, Ordering::Relaxed),
        }
        before = now.or(before);
    }
    Ok(None)
}

/// What the load says.
fn cells(document: &Value, back: Option<Duration>) -> String {
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    let errors = document["errors"].as_object();
    let failed: u64 = errors.map_or(0, |errors| errors.values().map(count).sum());
    let rows = document["rows"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let below = |row: &&Value| {
        let due = row["due"].as_u64().unwrap_or(0) as f64;
        let begin_s = row["start_s"].as_f64().unwrap_or(0.0);
        begin_s >= TREATED_AFTER.as_secs_f64() - 0.5
            && (count(&row["requests"]) as f64) < due * FULL
    };
    let below_s: f64 = rows
        .iter()
        .filter(below)
        .map(|row| row["duration_s"].as_f64().unwrap_or(0.0))
        .fold(0.0, |sum, one| sum + one);
    let good = count(&document["requests"]);
    let back = back.map_or("not within 13 s".to_owned(), |back| {
        format!("{:.1} s", back.as_secs_f64())
    });
    format!("{good} | {failed} | {below_s:.1} s | {back}")
}
