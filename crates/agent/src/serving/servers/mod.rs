//! The servers that an agent has started.

#[cfg(test)]
mod fixtures;
pub(super) mod folder;
mod measure;
pub(crate) mod memory;
mod own_program;
mod readiness;
mod reload;
mod server;
mod start;
pub(super) mod stop;
mod user;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::{Duration, Instant};

use net::folder::Folder;
use net::os;

use self::folder::{OUTPUT, ServerFolder};
use self::memory::MemoryFolder;
use self::own_program::OwnProgram;
use self::server::{Server, describe};
use self::user::ServerUser;
use super::quota::ServerQuota;
use crate::kernel::owner::Owner;
use crate::kernel::proc_files::tree;
use crate::kernel::signals::{SIGKILL, SIGTERM, signal_listed};
use crate::links::peers::PeerLinks;
use crate::protocol::wire::LAST_OUTPUT;
use crate::sampling::instructions::Counting;
use crate::sampling::sampler::Sampler;

/// Lines of a server's output in an error message.
const LAST_OUTPUT_LINES: usize = 12;
/// Mode of the folder for all servers: other users can pass through it, but not list it.
const FOLDER_MODE: u32 = 0o711;

/// Time for servers to end by themselves when the agent ends.
const TIDYING: Duration = Duration::from_millis(500);

/// All servers of an agent, and their folder.
pub(crate) struct Servers {
    pub(crate) path: PathBuf,
    /// Belongs to this process's user.
    folder: Folder,
    memory: MemoryFolder,
    /// The folders of servers, also of stopped ones.
    pub(crate) folders: BTreeMap<String, ServerFolder>,
    running: BTreeMap<String, Server>,
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
        let make = || {
            let folder = Folder::open(&temporary)?.make(name.as_ref())?;
            folder.set_mode(FOLDER_MODE)?;
            Ok(folder)
        };
        let folder = make().map_err(|error: io::Error| {
            let shown = temporary.display();
            let why = format!("cannot make a folder in {shown}: {error}; set TMPDIR to another");
            io::Error::new(error.kind(), why)
        })?;
        Ok(Self {
            memory: MemoryFolder::next_to(&name),
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
            .and_then(|()| self.memory.remove(server))
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

    /// The file in which a server counts what it receives.
    pub(crate) fn counts_of(&self, server: &str) -> Option<PathBuf> {
        let file = self.running.get(server)?.counts.as_ref()?;
        Some(self.folders.get(server)?.path().join(file))
    }

    /// Limits the CPU time of a server; `None` ends the limit.
    pub(crate) fn set_quota(&mut self, server: &str, cpus: Option<f64>) -> Result<(), String> {
        let name = format!("{}-limit-{server}", self.folder_name());
        let pids = self.watched(server).pids();
        let Some(one) = self.running.get_mut(server) else {
            return match cpus {
                None => Ok(()),
                Some(_) => Err(format!("`{server}` does not run")),
            };
        };
        // The old limit ends first: both may need the same group.
        one.quota = None;
        if let Some(cpus) = cpus {
            let quota = ServerQuota::set(&name, one.group.as_ref(), &pids, cpus);
            one.quota = Some(quota.map_err(|why| format!("`{server}` cannot be limited: {why}"))?);
        }
        Ok(())
    }

    /// The logs of a server by file name: its output, and those of its own while it runs.
    pub(crate) fn logs(&self, server: &str) -> BTreeMap<String, String> {
        self.logs_in_order(server).into_iter().collect()
    }

    fn logs_in_order(&self, server: &str) -> Vec<(String, String)> {
        let Some(folder) = self.folders.get(server) else {
            return Vec::new();
        };
        let own = self.running.get(server).map_or(&[][..], |one| &one.logs);
        std::iter::once(OUTPUT)
            .chain(own.iter().map(String::as_str))
            .filter_map(|name| Some((name.to_owned(), folder.log(name)?)))
            .collect()
    }

    /// The last lines that a running server wrote, for a message.
    pub(crate) fn last_output(&self, server: &str) -> String {
        if !self.running.contains_key(server) || !self.folders.contains_key(server) {
            return String::new();
        }
        let logs = self.logs_in_order(server);
        let lines: Vec<&str> = logs.iter().flat_map(|(_, text)| text.lines()).collect();
        if lines.is_empty() {
            return "; it wrote nothing".to_string();
        }
        let from = lines.len().saturating_sub(LAST_OUTPUT_LINES);
        format!("{LAST_OUTPUT}\n  {}", lines[from..].join("\n  "))
    }

    /// Sends SIGTERM to all servers, and kills them after [`TIDYING`]: until then they can remove what they
    /// keep elsewhere, such as shared memory.
    fn end_all(&mut self) {
        let names: Vec<String> = self.running.keys().cloned().collect();
        for name in &names {
            self.begin_stop(name, SIGTERM);
        }
        for name in names {
            self.stop(&name, &[(SIGTERM, TIDYING)], &AtomicBool::new(false));
        }
    }

    /// Kills everything and removes the folder.
    pub(crate) fn kill_all(&mut self) {
        self.end_all();
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
        self.memory.remove_all();
        let _ = net::folder::remove_all(&self.path);
    }
}
