//! The servers that an agent has started.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use net::os::{self, ChildSetup};
use net::process::status_unreaped;

use super::cgroup::Cgroup;
use super::readiness;
use super::wire::{AnswerSummary, AwaitServer, OtherServer, StartServer};
use crate::leftovers::Owner;
use crate::sampling::proc_files::tree;
use crate::sampling::sampler::Sampler;
use crate::sampling::system_counters::SystemSources;
use crate::sampling::timeline::{Measured, Spans};
use crate::sampling::watched::{Watched, WatchedServers};
use crate::signals::{SIGKILL, kill_listed, signal_listed};

/// What a server prints, besides its own log files.
const OUTPUT: &str = "output.log";
/// Only the end of a longer log is kept.
const LOG_BYTES_MAX: u64 = 256 * 1024;
/// Lines of a server's output in an error message.
const LAST_WORDS_LINES: usize = 12;
const SIGCONT: i32 = 18;
const SIGSTOP: i32 = 19;

struct Server {
    child: Child,
    folder: PathBuf,
    logs: Vec<String>,
    ended: Option<ExitStatus>,
    /// With everything that the server starts, where the system has control groups.
    group: Option<Cgroup>,
}

impl Server {
    fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Its status once it has ended. It is reaped only by [`kill_family`]: until then its number, which
    /// is also that of its group, is no other process's.
    fn status(&self) -> Option<ExitStatus> {
        status_unreaped(self.pid()).ok().flatten()
    }
}

/// All servers of an agent, and their folder.
pub(super) struct Servers {
    folder: PathBuf,
    running: BTreeMap<String, Server>,
    /// Runs while a load is made on another machine.
    sampler: Option<Sampler>,
}

impl Servers {
    pub(super) fn new() -> io::Result<Self> {
        // The mark shows a later run whether its owner is dead.
        let mark = Owner::me().mark();
        let name = format!("weigh-{mark}-{:06x}", fastrand::u32(..0x100_0000));
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder)?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))?;
        Ok(Self {
            folder,
            running: BTreeMap::new(),
            sampler: None,
        })
    }

    /// Starts sampling all servers.
    pub(super) fn start_sampling(&mut self) {
        let servers = self.running.iter().map(|(name, one)| OtherServer {
            server: name.clone(),
            pid: one.pid(),
            also: Vec::new(),
            group: self.group_of(name),
        });
        let servers: Vec<OtherServer> = servers.collect();
        let watched = self.all_watched(&[], &servers);
        self.sampler = Some(Sampler::always(watched, SystemSources::remote(&servers)));
    }

    /// Stops sampling; returns what was measured in each reading.
    pub(super) fn stop_sampling(&mut self, readings: Vec<Spans>) -> Vec<Measured> {
        let timeline = self.sampler.take().map(Sampler::end).unwrap_or_default();
        readings
            .into_iter()
            .map(|spans| timeline.cut(spans))
            .collect()
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn folder_name(&self) -> String {
        self.folder
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }

    /// Makes an empty folder for a server.
    pub(super) fn make_folder(&self, server: &str, user: Option<&str>) -> io::Result<PathBuf> {
        let folder = self.folder.join(server);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir(&folder)?;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))?;
        own(&folder, user)?;
        Ok(folder)
    }

    /// Writes a server's files and starts it.
    pub(super) fn start(&mut self, order: &StartServer) -> Result<i32, String> {
        let folder = self.folder.join(&order.server);
        let user = order.user.as_deref();
        self.write_files(&folder, order, user)
            .map_err(|e| format!("cannot write the files of `{}`: {e}", order.server))?;
        let output = File::create(folder.join(OUTPUT))
            .map_err(|e| format!("cannot write {OUTPUT} of `{}`: {e}", order.server))?;
        let (program, arguments) = order
            .command
            .split_first()
            .ok_or_else(|| format!("the recipe of `{}` names no program to start", order.server))?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .envs(order.env.iter().map(|(k, v)| (k, v)))
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(output.try_clone().map_err(|e| e.to_string())?)
            .stderr(output);
        if let Some((uid, gid)) = ids(user) {
            command.uid(uid).gid(gid);
        }
        let name = format!("{}-{}", self.folder_name(), order.server);
        let group = Cgroup::make(&name);
        let setup = ChildSetup {
            enter: group.as_ref().and_then(Cgroup::entrance),
            cpus: order.cpus.clone(),
            own_session: true,
            die_with_parent: true,
            ..ChildSetup::default()
        };
        os::set_up_child(&mut command, setup);
        let child = command
            .spawn()
            .map_err(|e| format!("cannot start {program} for `{}`: {e}", order.server))?;
        let pid = child.id() as i32;
        // A group that the server could not enter counts nothing.
        let group = group.filter(|group| group.has_taken(pid));
        self.running.insert(
            order.server.clone(),
            Server {
                child,
                folder,
                logs: order.logs.clone(),
                ended: None,
                group,
            },
        );
        Ok(pid)
    }

    fn write_files(
        &self,
        folder: &Path,
        order: &StartServer,
        user: Option<&str>,
    ) -> io::Result<()> {
        for dir in &order.dirs {
            fs::create_dir_all(folder.join(dir))?;
            own(&folder.join(dir), user)?;
        }
        for file in &order.files {
            let path = folder.join(&file.path);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            let bytes = STANDARD.decode(&file.content).map_err(io::Error::other)?;
            fs::write(&path, bytes)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(file.mode))?;
            own(&path, user)?;
        }
        Ok(())
    }

    /// Waits until a server answers as expected, or `stop` is set. Returns what it answered, where
    /// it was asked by HTTP.
    pub(super) fn wait_until_ready(
        &mut self,
        order: &AwaitServer,
        stop: &AtomicBool,
    ) -> Result<Option<AnswerSummary>, String> {
        let end = Instant::now() + Duration::from_millis(order.timeout_ms);
        let name = order
            .server
            .clone()
            .unwrap_or_else(|| order.address.to_string());
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let limit = left.clamp(Duration::from_millis(50), Duration::from_secs(2));
            if order.request.is_empty() && TcpStream::connect_timeout(&order.address, limit).is_ok()
            {
                return self.must_be_alive(order.server.as_deref()).map(|()| None);
            }
            let answered = readiness::ask(order, limit, stop)
                .ok_or_else(|| format!("waiting for `{name}` was given up"))?;
            let found = match answered {
                Ok(summary) => {
                    let alive = self.must_be_alive(order.server.as_deref());
                    return alive.map(|()| summary);
                }
                Err(found) => found,
            };
            self.must_be_alive(order.server.as_deref())?;
            if Instant::now() >= end {
                let words = order.server.as_deref().map(|s| self.last_words(s));
                return Err(format!(
                    "`{name}` did not answer as expected within {} ms: {found}{}",
                    order.timeout_ms,
                    words.unwrap_or_default()
                ));
            }
            sleep(Duration::from_millis(10));
        }
    }

    fn must_be_alive(&mut self, server: Option<&str>) -> Result<(), String> {
        let Some(name) = server else { return Ok(()) };
        let Some(one) = self.running.get_mut(name) else {
            return Err(format!("`{name}` was not started"));
        };
        if one.ended.is_none() {
            one.ended = one.status();
        }
        match one.ended {
            None => Ok(()),
            Some(status) => Err(format!(
                "`{name}` ended by itself ({}){}",
                describe(status),
                self.last_words(name)
            )),
        }
    }

    /// The reason when a server has ended by itself.
    pub(super) fn ended(&mut self) -> Option<String> {
        let names: Vec<String> = self.running.keys().cloned().collect();
        names
            .iter()
            .find_map(|name| self.must_be_alive(Some(name)).err())
    }

    /// The folder of a server's control group.
    pub(super) fn group_of(&self, server: &str) -> Option<String> {
        let group = self.running.get(server)?.group.as_ref()?;
        Some(group.folder().display().to_string())
    }

    /// Where own servers are read, and those of other agents on this machine.
    pub(super) fn all_watched(&self, own: &[String], others: &[OtherServer]) -> WatchedServers {
        let own = own
            .iter()
            .map(|server| (server.clone(), self.watched(server)));
        let others = others
            .iter()
            .map(|other| (other.server.clone(), Watched::of_another(other)));
        own.chain(others).collect()
    }

    fn watched(&self, server: &str) -> Watched {
        match self.running.get(server) {
            None => Watched::Processes(Vec::new()),
            Some(one) => match &one.group {
                Some(group) => Watched::of_group(group),
                None => Watched::Processes(tree(one.pid())),
            },
        }
    }

    /// Suspends all processes of a server (SIGSTOP), or resumes them.
    pub(super) fn freeze(&self, server: &str, frozen: bool) -> Result<(), String> {
        const ATTEMPTS: usize = 100;
        let signal = if frozen { SIGSTOP } else { SIGCONT };
        let one = self
            .running
            .get(server)
            .ok_or_else(|| format!("`{server}` does not run"))?;
        let root = one.pid();
        // A process that was forked meanwhile gets the signal in the next round.
        let mut done: Vec<i32> = Vec::new();
        for _ in 0..ATTEMPTS {
            let new = || {
                let all = match &one.group {
                    Some(group) => group.processes(),
                    None => tree(root),
                };
                let new = all.into_iter().filter(|pid| !done.contains(pid));
                new.collect::<Vec<_>>()
            };
            let reached = signal_listed(new, signal);
            if reached.is_empty() {
                break;
            }
            done.extend(reached);
        }
        match done.contains(&root) {
            true => Ok(()),
            false => Err(format!("cannot send a signal to `{server}`: it has ended")),
        }
    }

    /// CPU time of a server since it was started, s.
    pub(super) fn cpu_s(&self, server: &str) -> Result<f64, String> {
        match self.running.contains_key(server) {
            true => Ok(self.watched(server).cpu_s()),
            false => Err(format!("`{server}` does not run")),
        }
    }

    /// Stops a server: sends each signal and waits in turn, then kills all that is left; at once when
    /// `hurry` is set. Returns whether it had to be killed, and whether it had ended before.
    pub(super) fn stop(
        &mut self,
        server: &str,
        signals: &[(i32, Duration)],
        hurry: &AtomicBool,
    ) -> Option<(bool, bool)> {
        let mut one = self.running.remove(server)?;
        let pid = one.pid();
        let family = tree(pid);
        let ended_before = one.ended.is_some() || one.status().is_some();
        let mut gone = ended_before;
        for (signal, wait) in signals {
            if gone {
                break;
            }
            let _ = os::kill(pid, *signal);
            let end = Instant::now() + *wait;
            while !gone && Instant::now() < end && !hurry.load(Ordering::Relaxed) {
                gone = one.status().is_some();
                if !gone {
                    sleep(Duration::from_millis(5));
                }
            }
        }
        kill_family(&mut one.child, one.group.as_ref(), family);
        Some((!gone, ended_before))
    }

    /// The logs of a server, by file name.
    pub(super) fn logs(&self, server: &str) -> BTreeMap<String, String> {
        let folder = self.folder.join(server);
        let own: &[String] = self.running.get(server).map_or(&[], |one| &one.logs);
        std::iter::once(OUTPUT)
            .chain(own.iter().map(String::as_str))
            .filter_map(|name| Some((name.to_string(), read_end(&folder.join(name)).ok()?)))
            .filter(|(_, text)| !text.is_empty())
            .collect()
    }

    /// The last lines that a server wrote, for a message.
    fn last_words(&self, server: &str) -> String {
        let Some(one) = self.running.get(server) else {
            return String::new();
        };
        let mut lines = Vec::new();
        for name in std::iter::once(OUTPUT).chain(one.logs.iter().map(String::as_str)) {
            if let Ok(text) = read_end(&one.folder.join(name)) {
                lines.extend(text.lines().map(str::to_string));
            }
        }
        if lines.is_empty() {
            return "; it wrote nothing".to_string();
        }
        let from = lines.len().saturating_sub(LAST_WORDS_LINES);
        format!("; its last words:\n  {}", lines[from..].join("\n  "))
    }

    /// Kills everything and removes the folder.
    pub(super) fn kill_all(&mut self) {
        let names: Vec<String> = self.running.keys().cloned().collect();
        for name in names {
            self.stop(&name, &[], &AtomicBool::new(true));
        }
        // This process adopts orphans, so that none is left when it has no descendants.
        let me = std::process::id() as i32;
        let end = Instant::now() + Duration::from_secs(1);
        loop {
            while os::reap().is_some() {}
            let left = || tree(me).split_off(1);
            if left().is_empty() || Instant::now() >= end {
                break;
            }
            signal_listed(left, SIGKILL);
            sleep(Duration::from_millis(5));
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Kills what is left of a child: itself, its process group, its control group or, without one, its
/// `family`. Then it is reaped, which must not have happened before: its number and its group's have
/// to be its own still.
pub(super) fn kill_family(child: &mut Child, group: Option<&Cgroup>, family: Vec<i32>) {
    let pid = child.id() as i32;
    let _ = os::kill(-pid, SIGKILL);
    let _ = os::kill(pid, SIGKILL);
    match group {
        Some(group) => group.kill(),
        None => {
            // This process has adopted orphans; a pid that is now another's is left alone.
            let mine = || {
                let mut mine = tree(std::process::id() as i32);
                mine.retain(|pid| family.contains(pid));
                mine
            };
            kill_listed(mine);
        }
    }
    let _ = child.wait();
}

fn ids(user: Option<&str>) -> Option<(u32, u32)> {
    user.filter(|_| os::is_root()).and_then(os::user_ids)
}

fn own(path: &Path, user: Option<&str>) -> io::Result<()> {
    match ids(user) {
        Some((uid, gid)) => std::os::unix::fs::chown(path, Some(uid), Some(gid)),
        None => Ok(()),
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        _ => "for an unknown reason".to_string(),
    }
}

pub(super) fn read_end(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(LOG_BYTES_MAX)))?;
    let mut bytes = Vec::new();
    file.take(LOG_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
