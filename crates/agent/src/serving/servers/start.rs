//! Starts servers, and commands in their folders.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use net::os::{self, ChildSetup};

use super::Servers;
use super::folder::{OUTPUT, ServerFolder};
use super::server::Server;
use super::user::{processes_max, start_advice};
use crate::kernel::cgroup::Cgroup;
use crate::kernel::clock;
use crate::protocol::wire::StartServer;

const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Servers {
    /// Writes a server's files and starts it.
    pub(crate) fn start(&mut self, order: &StartServer) -> Result<i32, String> {
        let group_name = format!("{}-{}", self.folder_name(), order.server);
        let folder = self
            .folders
            .get_mut(&order.server)
            .ok_or_else(|| format!("`{}` has no folder yet", order.server))?;
        folder
            .fill(order, &mut self.memory)
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
        let user = folder.user();
        let mut command =
            command(folder, program, arguments, &cwd, output).map_err(|e| e.to_string())?;
        if !order.inherit_env {
            command.env_clear().envs(environment(folder.path()));
        }
        command.envs(order.env.iter().map(|(k, v)| (k, v)));
        let group = Cgroup::make(&group_name);
        let setup = ChildSetup {
            enter: group.as_ref().and_then(Cgroup::entrance),
            cpus: order.cpus.clone(),
            no_new_privileges: !order.setuid_programs,
            processes_max: user
                .filter(|user| user.is_own)
                .and_then(|_| processes_max()),
            ..isolated()
        };
        os::set_up_child(&mut command, setup);
        let began_ns = clock::monotonic_ns();
        let child = command.spawn().map_err(|e| {
            let folder = match &order.cwd {
                Some(cwd) => format!(" in {}", cwd.display()),
                None => String::new(),
            };
            let advice = start_advice(&e, user);
            let server = &order.server;
            format!("cannot start {program} for `{server}`{folder}: {e}{advice}")
        })?;
        let pid = child.id() as i32;
        // A group that the server could not enter counts nothing.
        let group = group.filter(|group| group.has_taken(pid));
        let server = Server::begun(child, began_ns, group, order);
        self.running.insert(order.server.clone(), server);
        Ok(pid)
    }
}

/// A program that runs as the user of a server's folder and appends to the server's output.
pub(super) fn command(
    folder: &ServerFolder,
    program: &str,
    arguments: &[String],
    cwd: &Path,
    output: File,
) -> io::Result<Command> {
    let mut command = Command::new(program_path(program, cwd));
    command
        .args(arguments)
        .current_dir(cwd)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output);
    if let Some(user) = folder.user() {
        // This drops the supplementary groups as well.
        command.uid(user.user).gid(user.group);
    }
    Ok(command)
}

/// How all of them are started.
pub(super) fn isolated() -> ChildSetup {
    ChildSetup {
        own_session: true,
        die_with_parent: true,
        no_new_privileges: true,
        no_core_files: true,
        no_other_descriptors: true,
        ..ChildSetup::default()
    }
}

/// The path of a program: a relative one is below the folder that it is started in, and a name is
/// looked up in PATH.
fn program_path(program: &str, cwd: &Path) -> PathBuf {
    match program.contains('/') {
        true => cwd.join(program),
        false => program.into(),
    }
}

/// The environment of a server, besides what its recipe declares.
pub(super) fn environment(folder: &Path) -> [(&'static str, OsString); 4] {
    let path = std::env::var_os("PATH").unwrap_or_else(|| USUAL_PATH.into());
    [
        ("HOME", folder.into()),
        ("LANG", "C.UTF-8".into()),
        ("PATH", path),
        ("TMPDIR", folder.into()),
    ]
}
