//! Profiles servers with `perf` during a load: the stacks in which they spend CPU time.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use net::os::{self, ChildSetup};
use net::process::status_unreaped;

use crate::protocol::wire::{ProfileOrder, ServerProfile};
use crate::sampling::server::watched::{Watched, WatchedServers};
use crate::serving::servers::folder::read_end_of;

/// Its folder beside those of the servers, whose names have no dots.
pub(crate) const FOLDER: &str = "load.perf";
const SIGINT: i32 = 2;
/// Time in which all profiles together are written and read after the load. A caller waits longer.
const READING: Duration = Duration::from_secs(20);
/// Time for perf to open its events.
const BEGINNING: Duration = Duration::from_secs(3);
/// Longer output of `perf script` is refused.
const TEXT_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// The event of the kernel's clock, in ns.
const CLOCK: &str = "cpu-clock";
/// The names under which the kernel lists processors with cycle counters.
const COUNTERS: [&str; 3] = ["cpu", "cpu_core", "armv8_pmuv3_0"];

/// The profiles that are being taken.
pub(crate) struct Profiler {
    recordings: Vec<(String, Result<Recording, String>)>,
}

struct Recording {
    child: Child,
    data: PathBuf,
}

impl Profiler {
    /// Starts to sample the servers of an order. `folder` has to be empty.
    pub(crate) fn start(order: &ProfileOrder, watched: &WatchedServers, folder: &Path) -> Self {
        let mut recordings = Vec::new();
        for server in &order.servers {
            let pids = watched.get(server).map_or_else(Vec::new, Watched::pids);
            let recording = match pids.is_empty() {
                true => Err("no process of it is known".to_owned()),
                false => Recording::start(order, server, &pids, folder),
            };
            recordings.push((server.clone(), recording));
        }
        let end = Instant::now() + BEGINNING;
        for (_, recording) in &recordings {
            let Ok(one) = recording else { continue };
            while !one.has_data() && !one.has_ended() && Instant::now() < end {
                sleep(Duration::from_millis(10));
            }
        }
        Self { recordings }
    }

    /// Whether nothing is sampled, as where perf is not installed.
    pub(crate) fn is_in_vain(&self) -> bool {
        self.recordings.iter().all(|(_, one)| one.is_err())
    }

    /// Ends the sampling and reads the stacks.
    pub(crate) fn end(self) -> Vec<ServerProfile> {
        let end = Instant::now() + READING;
        for (_, recording) in &self.recordings {
            if let Ok(one) = recording {
                let _ = os::kill(one.child.id() as i32, SIGINT);
            }
        }
        let unit = match event() {
            CLOCK => "ns",
            counter => counter,
        };
        let mut profiles = Vec::new();
        for (server, recording) in self.recordings {
            let folded = recording.and_then(|one| one.folded(end));
            profiles.push(ServerProfile {
                server,
                failed: folded.as_ref().err().cloned(),
                folded: folded.unwrap_or_default(),
                unit: unit.to_owned(),
            });
        }
        profiles
    }
}

impl Recording {
    fn start(
        order: &ProfileOrder,
        server: &str,
        pids: &[i32],
        folder: &Path,
    ) -> Result<Self, String> {
        let data = folder.join(format!("{server}.data"));
        let pids: Vec<String> = pids.iter().map(i32::to_string).collect();
        let errors = File::create(data.with_extension("errors")).map_err(|e| e.to_string())?;
        let mut command = Command::new("perf");
        command
            .args(["record", "-q", "-e", event(), "-F"])
            .arg(order.frequency_hz.to_string())
            .args(["--call-graph", order.call_graph.word(), "-p"])
            .arg(pids.join(","))
            .arg("-o")
            .arg(&data)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors);
        let child = spawn(command)?;
        Ok(Self { child, data })
    }

    fn has_data(&self) -> bool {
        std::fs::metadata(&self.data).is_ok_and(|about| about.len() > 0)
    }

    fn has_ended(&self) -> bool {
        let status = status_unreaped(self.child.id() as i32);
        !matches!(status, Ok(None))
    }

    /// The stacks, one per line: frames separated by `;`, then a space and the CPU time.
    fn folded(mut self, end: Instant) -> Result<String, String> {
        while !self.has_ended() && Instant::now() < end {
            sleep(Duration::from_millis(10));
        }
        let in_time = self.has_ended();
        let _ = self.child.kill();
        let _ = self.child.wait();
        if !in_time {
            return Err("perf did not end when it was asked to".to_owned());
        }
        if !self.has_data() {
            let words = read_end_of(&self.data.with_extension("errors"));
            return Err(format!("perf: {}", first_line(&words.unwrap_or_default())));
        }
        let mut command = Command::new("perf");
        command
            .args(["script", "--no-inline", "-f", "-i"])
            .arg(&self.data)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = spawn(command)?;
        let Some(text) = child.stdout.take() else {
            return Err("perf script has no output".to_owned());
        };
        let (sender, receiver) = mpsc::channel();
        let started = net::os::start_thread("which reads stacks", move || {
            let text = BufReader::new(text.take(TEXT_BYTES_MAX));
            let _ = sender.send(fold(text));
        });
        let read = receiver.recv_timeout(end.saturating_duration_since(Instant::now()));
        let _ = child.kill();
        let _ = child.wait();
        started.map_err(|error| error.to_string())?;
        let folded = read.map_err(|_| "perf script took too long".to_owned())??;
        match folded.is_empty() {
            true => Err("perf saw it use no CPU time".to_owned()),
            false => Ok(String::from_utf8_lossy(&folded).into_owned()),
        }
    }
}

/// The stacks that `perf script` printed, one per line.
#[cfg(feature = "full")]
fn fold(text: impl BufRead) -> Result<Vec<u8>, String> {
    use inferno::collapse::Collapse as _;
    use inferno::collapse::perf::{Folder as Stacks, Options};

    let mut folded = Vec::new();
    let read = Stacks::from(Options::default()).collapse(text, &mut folded);
    read.map(|()| folded).map_err(|e| e.to_string())
}

#[cfg(not(feature = "full"))]
fn fold(_: impl BufRead) -> Result<Vec<u8>, String> {
    Err("this build reads no stacks: build it with --features full".to_owned())
}

impl Drop for Recording {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(mut command: Command) -> Result<Child, String> {
    let setup = ChildSetup {
        own_session: true,
        die_with_parent: true,
        ..ChildSetup::default()
    };
    os::set_up_child(&mut command, setup);
    command.spawn().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => {
            "perf is not installed (Debian: apt-get install linux-perf)".to_owned()
        }
        _ => format!("perf cannot be started: {e}{}", net::os::Lacking(&e)),
    })
}

/// The event to sample: cycles if the processor counts them, otherwise the kernel's clock, as in
/// many virtual machines.
fn event() -> &'static str {
    let devices = Path::new("/sys/bus/event_source/devices");
    match COUNTERS.iter().any(|name| devices.join(name).exists()) {
        true => "cycles",
        false => CLOCK,
    }
}

fn first_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim);
    let refusal = lines
        .clone()
        .find(|line| line.contains("not permitted") || line.contains("perf_event_paranoid"));
    refusal
        .or_else(|| lines.find(|line| !line.is_empty() && !line.starts_with("Error")))
        .unwrap_or("it wrote nothing and gave no reason")
        .to_owned()
}
