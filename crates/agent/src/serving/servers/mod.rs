//! The servers that an agent has started.

pub(crate) mod folder;
mod own_program;
pub(crate) mod quota;
pub(crate) mod readiness;
pub(crate) mod reload;
mod user;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use net::folder::Folder;
use net::os::{self, ChildSetup};
use net::process::status_unreaped;
use readings::BottleneckSample;

use crate::kernel::cgroup::Cgroup;
use crate::kernel::proc_files::tree;
use crate::kernel::signals::{SIGKILL, kill_listed, signal_listed};
use crate::links::peers::PeerLinks;
use crate::protocol::wire::{LAST_OUTPUT, OtherServer, StartServer};
use crate::sampling::instructions::Counting;
use crate::sampling::sampler::Sampler;
use crate::sampling::server::watched::{Watched, WatchedServers};
use crate::sampling::system_counters::SystemSources;
use crate::sampling::timeline::{Measured, Spans};
use crate::serving::leftovers::Owner;
use crate::serving::servers::folder::{OUTPUT, ServerFolder};
use crate::serving::servers::own_program::OwnProgram;
use crate::serving::servers::quota::ServerQuota;
use crate::serving::servers::readiness::ReadinessWait;
use crate::serving::servers::reload::Reloading;
use crate::serving::servers::user::ServerUser;

const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Lines of a server's output in an error message.
const LAST_OUTPUT_LINES: usize = 12;
/// Mode of the folder for all servers: other users can pass through it, but not list it.
const FOLDER_MODE: u32 = 0o711;
const SIGCONT: i32 = 18;
const SIGSTOP: i32 = 19;

pub(crate) struct Server {
    child: Child,
    logs: Vec<String>,
    ended: Option<ExitStatus>,
    /// The control group of the server and of everything that it starts; `None` without control
    /// groups.
    pub(crate) group: Option<Cgroup>,
    /// Whether its processes are suspended.
    is_suspended: bool,
    /// The limit on its CPU time, if it has one.
    pub(crate) quota: Option<ServerQuota>,
    /// Its latest reload.
    pub(crate) reload: Option<Reloading>,
    stopping: Option<Stopping>,
    /// The wait of [`Servers::is_ready`].
    pub(crate) waiting: Option<ReadinessWait>,
}

/// A server that was sent its first signal.
struct Stopping {
    /// The number of the signal that was sent last, and when.
    signal: usize,
    since: Instant,
    /// Its processes at that time: those that it leaves behind are killed.
    family: Vec<i32>,
    ended_before: bool,
}

impl Server {
    pub(crate) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Its exit status, once it has ended. Only [`kill_family`] reaps it: until then its process
    /// ID, which is also that of its process group, is not reused.
    fn status(&self) -> Option<ExitStatus> {
        status_unreaped(self.pid()).ok().flatten()
    }
}

/// All servers of an agent, and their folder.
pub(crate) struct Servers {
    pub(crate) path: PathBuf,
    /// Belongs to this process's user.
    folder: Folder,
    /// The folders of servers, also of stopped ones.
    pub(crate) folders: BTreeMap<String, ServerFolder>,
    pub(crate) running: BTreeMap<String, Server>,
    /// Runs while a load is made on another machine.
    sampler: Option<Sampler>,
    /// Counters of instructions, while a load is made for them.
    pub(crate) counting: Option<Counting>,
    /// The links of this host, where hosts are machines.
    pub(crate) peer_links: Option<PeerLinks>,
    own_program: OwnProgram,
}

impl Servers {
    pub(crate) fn new() -> io::Result<Self> {
        // By the mark a later run sees whether this process, the folder's owner, is dead.
        let mark = Owner::me().mark();
        let name = format!("weigh-{mark}-{:06x}", fastrand::u32(..0x100_0000));
        let temporary = std::env::temp_dir();
        let folder = Folder::open(&temporary)?.make(name.as_ref())?;
        folder.set_mode(FOLDER_MODE)?;
        Ok(Self {
            path: temporary.join(name),
            folder,
            folders: BTreeMap::new(),
            running: BTreeMap::new(),
            sampler: None,
            counting: None,
            peer_links: None,
            own_program: OwnProgram::default(),
        })
    }

    /// Starts sampling servers: these, or all.
    pub(crate) fn start_sampling(&mut self, of: Option<&BTreeSet<String>>, scheduling: bool) {
        let running = self.running.iter();
        let sampled = running.filter(|(name, _)| of.is_none_or(|of| of.contains(*name)));
        let servers = sampled.map(|(name, one)| OtherServer {
            server: name.clone(),
            pid: one.pid(),
            also: Vec::new(),
            group: self.group_of(name),
        });
        let servers: Vec<OtherServer> = servers.collect();
        let watched = self.all_watched(&[], &servers);
        let system = SystemSources::remote(&servers);
        self.sampler = Some(Sampler::always(watched, system, scheduling));
    }

    /// Stops sampling; returns what was measured in each reading, and scheduling in the last
    /// window, if that was sampled.
    pub(crate) fn stop_sampling(
        &mut self,
        readings: Vec<Spans>,
    ) -> (Vec<Measured>, Option<BottleneckSample>) {
        let timeline = self.sampler.take().map(Sampler::end).unwrap_or_default();
        let last = readings.iter().filter_map(|spans| spans.windows.last());
        let seen = last.max_by_key(|window| window.to_ns);
        let seen = seen.and_then(|window| timeline.bottleneck_in(*window));
        let measured = readings.into_iter();
        (measured.map(|spans| timeline.cut(spans)).collect(), seen)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.path
    }

    pub(crate) fn folder_name(&self) -> String {
        self.path
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }

    /// Makes an empty folder for a server that runs as `user`. It replaces the server's earlier
    /// one.
    pub(crate) fn make_folder(
        &mut self,
        server: &str,
        user: Option<&str>,
    ) -> Result<PathBuf, String> {
        let taken = self.folders.values().filter_map(ServerFolder::user);
        let user = ServerUser::choose(user, &taken.map(|one| one.user).collect())
            .map_err(|why| format!("cannot choose a user for `{server}`: {why}"))?;
        self.folders.remove(server);
        let made = self
            .remove(server)
            .and_then(|()| ServerFolder::make(&self.folder, &self.path, server, user));
        let folder = made.map_err(|e| format!("cannot make a folder for `{server}`: {e}"))?;
        let path = folder.path().to_owned();
        self.folders.insert(server.to_owned(), folder);
        Ok(path)
    }

    /// The path at which a server's user can run this program, where it is not the program's own.
    pub(crate) fn program_of(&mut self, server: &str) -> Result<Option<PathBuf>, String> {
        match self.folders.get(server).and_then(ServerFolder::user) {
            Some(_) => self.own_program.for_others(&self.folder, &self.path),
            None => Ok(None),
        }
    }

    /// Makes an empty folder for a program that runs as this process's user.
    pub(crate) fn make_own_folder(&self, name: &str) -> io::Result<PathBuf> {
        self.remove(name)?;
        self.folder.make(name.as_ref())?;
        Ok(self.path.join(name))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match self.folder.remove(name.as_ref()) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }

    /// Writes a server's files and starts it.
    pub(crate) fn start(&mut self, order: &StartServer) -> Result<i32, String> {
        let group_name = format!("{}-{}", self.folder_name(), order.server);
        let folder = self
            .folders
            .get_mut(&order.server)
            .ok_or_else(|| format!("`{}` has no folder yet", order.server))?;
        folder
            .fill(order)
            .map_err(|e| format!("cannot write the files of `{}`: {e}", order.server))?;
        let output = folder
            .output()
            .map_err(|e| format!("cannot write {OUTPUT} of `{}`: {e}", order.server))?;
        let (program, arguments) = order
            .command
            .split_first()
            .ok_or_else(|| format!("the recipe of `{}` names no program to start", order.server))?;
        let cwd = order.cwd.as_deref().unwrap_or(folder.path()).to_owned();
        if !cwd.is_dir() {
            return Err(format!(
                "cannot start `{}`: there is no folder {}",
                order.server,
                cwd.display()
            ));
        }
        let mut command = Command::new(program_path(program, &cwd));
        if !order.inherit_env {
            command.env_clear().envs(environment(folder.path()));
        }
        command
            .args(arguments)
            .envs(order.env.iter().map(|(k, v)| (k, v)))
            .current_dir(&cwd)
            .stdin(Stdio::null())
            .stdout(output.try_clone().map_err(|e| e.to_string())?)
            .stderr(output);
        let owner = folder.user();
        if let Some(user) = owner {
            // This drops the supplementary groups as well.
            command.uid(user.user).gid(user.group);
        }
        let group = Cgroup::make(&group_name);
        let setup = ChildSetup {
            enter: group.as_ref().and_then(Cgroup::entrance),
            cpus: order.cpus.clone(),
            own_session: true,
            die_with_parent: true,
            no_new_privileges: !order.setuid_programs,
            no_core_files: true,
            no_other_descriptors: true,
            processes_max: owner
                .filter(|user| user.is_own)
                .and_then(|_| user::processes_max()),
            ..ChildSetup::default()
        };
        os::set_up_child(&mut command, setup);
        let child = command.spawn().map_err(|e| {
            let folder = order
                .cwd
                .as_ref()
                .map(|cwd| format!(" in {}", cwd.display()));
            let folder = folder.unwrap_or_default();
            let advice = user::start_advice(&e, owner);
            let server = &order.server;
            format!("cannot start {program} for `{server}`{folder}: {e}{advice}")
        })?;
        let pid = child.id() as i32;
        // A group that the server could not enter counts nothing.
        let group = group.filter(|group| group.has_taken(pid));
        self.running.insert(
            order.server.clone(),
            Server {
                child,
                logs: order.logs.clone(),
                ended: None,
                group,
                is_suspended: false,
                quota: None,
                reload: None,
                stopping: None,
                waiting: None,
            },
        );
        Ok(pid)
    }

    pub(crate) fn must_be_alive(&mut self, server: Option<&str>) -> Result<(), String> {
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
                self.last_output(name)
            )),
        }
    }

    /// The reason when a server has ended by itself.
    pub(crate) fn ended(&mut self) -> Option<String> {
        let names: Vec<String> = self.running.keys().cloned().collect();
        names
            .iter()
            .find_map(|name| self.must_be_alive(Some(name)).err())
    }

    /// The folder of a server's control group.
    pub(crate) fn group_of(&self, server: &str) -> Option<String> {
        let group = self.running.get(server)?.group.as_ref()?;
        Some(group.folder().display().to_string())
    }

    /// Where own servers are read, and those of other agents on this machine.
    pub(crate) fn all_watched(&self, own: &[String], others: &[OtherServer]) -> WatchedServers {
        let own = own
            .iter()
            .map(|server| (server.clone(), self.watched(server)));
        let others = others
            .iter()
            .map(|other| (other.server.clone(), Watched::of_another(other)));
        own.chain(others).collect()
    }

    pub(crate) fn watched(&self, server: &str) -> Watched {
        match self.running.get(server) {
            None => Watched::Processes(Vec::new()),
            Some(one) => match &one.group {
                Some(group) => Watched::of_group(group),
                None => Watched::Processes(tree(one.pid())),
            },
        }
    }

    /// Suspends all processes of a server (SIGSTOP), or resumes them.
    pub(crate) fn suspend(&mut self, server: &str, suspended: bool) -> Result<(), String> {
        const ATTEMPTS: usize = 100;
        let signal = if suspended { SIGSTOP } else { SIGCONT };
        let one = self
            .running
            .get_mut(server)
            .ok_or_else(|| format!("`{server}` does not run"))?;
        one.is_suspended = suspended;
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
    pub(crate) fn cpu_s(&self, server: &str) -> Result<f64, String> {
        match self.running.contains_key(server) {
            true => Ok(self.watched(server).cpu_s()),
            false => Err(format!("`{server}` does not run")),
        }
    }

    /// Sends a server the first signal that stops it, and does not wait. Nothing happens if it does
    /// not run, or was sent it before.
    pub(crate) fn begin_stop(&mut self, server: &str, signal: i32) {
        if self.running.get(server).is_some_and(|one| one.is_suspended) {
            // Suspended processes do not handle the signal, and would be killed in the end.
            // Resuming them fails only if the server has ended.
            let _ = self.suspend(server, false);
        }
        let Some(one) = self.running.get_mut(server) else {
            return;
        };
        if one.stopping.is_some() {
            return;
        }
        // The limit ends first: throttled processes end slowly.
        one.quota = None;
        let pid = one.pid();
        let stopping = Stopping {
            signal: 0,
            since: Instant::now(),
            family: tree(pid),
            ended_before: one.ended.is_some() || one.status().is_some(),
        };
        if !stopping.ended_before {
            let _ = os::kill(pid, signal);
        }
        one.stopping = Some(stopping);
    }

    /// Goes on stopping a server, without waiting: sends the first signal, later each next one when
    /// the time of the one before is over, and in the end kills all that is left. Returns whether that
    /// was done, which takes several calls.
    pub(crate) fn poll_stop(&mut self, server: &str, signals: &[(i32, Duration)]) -> bool {
        // One that does not run is stopped.
        let is_over = self.stop_step(server, signals).unwrap_or(true);
        if is_over {
            self.end_stop(server);
        }
        is_over
    }

    /// Stops a server: sends each signal and waits in turn, then kills all that is left; at once
    /// when `hurry` is set. Returns whether it had to be killed, and whether it had ended before.
    pub(crate) fn stop(
        &mut self,
        server: &str,
        signals: &[(i32, Duration)],
        hurry: &AtomicBool,
    ) -> Option<(bool, bool)> {
        while !self.stop_step(server, signals)? && !hurry.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(5));
        }
        self.end_stop(server)
    }

    /// Sends a server the signal that is due. Returns whether it has ended, or all signals have had
    /// their time; `None` if it does not run.
    fn stop_step(&mut self, server: &str, signals: &[(i32, Duration)]) -> Option<bool> {
        if let Some((signal, _)) = signals.first() {
            self.begin_stop(server, *signal);
        }
        let one = self.running.get_mut(server)?;
        // Also of a server whose time went by while others were waited for.
        let has_ended = one.status().is_some();
        let pid = one.pid();
        let Some(stopping) = one.stopping.as_mut().filter(|_| !has_ended) else {
            return Some(true);
        };
        let wait = signals.get(stopping.signal).map(|(_, wait)| *wait);
        if wait.is_some_and(|wait| stopping.since.elapsed() < wait) {
            return Some(false);
        }
        let Some((next, _)) = signals.get(stopping.signal + 1) else {
            return Some(true);
        };
        let _ = os::kill(pid, *next);
        stopping.signal += 1;
        stopping.since = Instant::now();
        Some(false)
    }

    /// Kills what is left of a server. Returns whether the server itself was, and whether it had ended
    /// before it was to stop.
    fn end_stop(&mut self, server: &str) -> Option<(bool, bool)> {
        let mut one = self.running.remove(server)?;
        one.quota = None;
        let has_ended = one.ended.is_some() || one.status().is_some();
        let (family, ended_before) = match one.stopping.take() {
            Some(stopping) => (stopping.family, stopping.ended_before),
            None => (tree(one.pid()), has_ended),
        };
        kill_family(&mut one.child, one.group.as_ref(), family);
        Some((!has_ended, ended_before))
    }

    /// The logs of a server, by file name.
    pub(crate) fn logs(&self, server: &str) -> BTreeMap<String, String> {
        let Some(folder) = self.folders.get(server) else {
            return BTreeMap::new();
        };
        let own: &[String] = self.running.get(server).map_or(&[], |one| &one.logs);
        std::iter::once(OUTPUT)
            .chain(own.iter().map(String::as_str))
            .filter_map(|name| Some((name.to_string(), folder.log(name)?)))
            .collect()
    }

    /// The last lines that a server wrote, for a message.
    pub(crate) fn last_output(&self, server: &str) -> String {
        let (Some(one), Some(folder)) = (self.running.get(server), self.folders.get(server)) else {
            return String::new();
        };
        let mut lines = Vec::new();
        for name in std::iter::once(OUTPUT).chain(one.logs.iter().map(String::as_str)) {
            if let Some(text) = folder.log(name) {
                lines.extend(text.lines().map(str::to_string));
            }
        }
        if lines.is_empty() {
            return "; it wrote nothing".to_string();
        }
        let from = lines.len().saturating_sub(LAST_OUTPUT_LINES);
        format!("{LAST_OUTPUT}\n  {}", lines[from..].join("\n  "))
    }

    /// Kills everything and removes the folder.
    pub(crate) fn kill_all(&mut self) {
        let names: Vec<String> = self.running.keys().cloned().collect();
        for name in names {
            self.stop(&name, &[], &AtomicBool::new(true));
        }
        // This process adopts orphans: when it has no descendants, no process of a server is left.
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
        self.folders.clear();
        let _ = net::folder::remove_all(&self.path);
    }
}

/// Kills what is left of a child: itself, its process group, and its control group or, without one,
/// its `family`. Then reaps it. The child must not have been reaped before, as its process ID and
/// that of its group could be reused.
pub(crate) fn kill_family(child: &mut Child, group: Option<&Cgroup>, family: Vec<i32>) {
    let pid = child.id() as i32;
    let _ = os::kill(-pid, SIGKILL);
    let _ = os::kill(pid, SIGKILL);
    match group {
        Some(group) => group.kill(),
        None => {
            // This process has adopted the orphans. A process that is not its descendant only
            // reuses a process ID of the family, and is left alone.
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

/// The path of a program: a relative one is below the folder that it is started in, and a name is
/// looked up in PATH.
pub(crate) fn program_path(program: &str, cwd: &Path) -> PathBuf {
    if program.contains('/') {
        return cwd.join(program);
    }
    PathBuf::from(program)
}

/// The environment of a server, besides what its recipe declares.
pub(crate) fn environment(folder: &Path) -> [(&'static str, OsString); 4] {
    let path = std::env::var_os("PATH").unwrap_or_else(|| USUAL_PATH.into());
    [
        ("HOME", folder.into()),
        ("LANG", "C.UTF-8".into()),
        ("PATH", path),
        ("TMPDIR", folder.into()),
    ]
}

pub(crate) fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        _ => "for an unknown reason".to_string(),
    }
}

#[cfg(test)]
mod tests;
