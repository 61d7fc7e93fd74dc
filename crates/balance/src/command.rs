//! External commands: how they are started, as which user, and how they are killed.
//!
//! A command line comes from the configuration, with an address and configured names filled in; no
//! other data of a client reaches the shell.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use net::os;

use crate::config::model::{Backend, Dispatch, Hooks, Service};

const SIGKILL: i32 = 9;

/// The user that a service's commands run as.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Account {
    /// The balancer's own.
    Own,
    /// User and group ID.
    Other(u32, u32),
    /// Not available, so commands do not run.
    Unavailable,
}

/// Why the service's commands cannot run as its `user_account`; `None` if they can.
pub(crate) fn refusal(service: &Service) -> Option<String> {
    let hooks = |one: &Backend| one.hooks != Hooks::default();
    let asks = matches!(service.dispatch, Dispatch::External { .. });
    let any = asks || service.backends.iter().any(hooks);
    let name = service.user_account.as_deref().filter(|_| any);
    account(name).err()
}

/// The user of that name, if commands can run as it.
pub(crate) fn account(name: Option<&str>) -> Result<Account, String> {
    let Some(name) = name else {
        return Ok(Account::Own);
    };
    let (user, group) = os::user_ids(name)
        .ok_or_else(|| format!("there is no user account `{}`", name.escape_debug()))?;
    // The owner of /proc/self is the effective user.
    let own = std::fs::metadata("/proc/self").map(|found| found.uid());
    match own {
        Ok(own) if own == user => Ok(Account::Own),
        _ if os::is_root() => Ok(Account::Other(user, group)),
        _ => Err(format!(
            "only root can run commands as `{}`",
            name.escape_debug()
        )),
    }
}

/// A shell command without input and output, in its own process group so that it can be killed as a
/// whole.
pub(crate) fn shell(line: &[u8], account: Account) -> Command {
    let mut command = Command::new("/bin/sh");
    command
        .arg("-c")
        .arg(OsStr::from_bytes(line))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    if let Account::Other(user, group) = account {
        // This also drops supplementary groups.
        command.gid(group).uid(user);
    }
    command
}

/// Kills and reaps a command and its process group.
pub(crate) fn kill(child: &mut Child) {
    // Not reaped yet, so the PID is still valid.
    if let Ok(group) = i32::try_from(child.id()) {
        let _ = os::kill(-group, SIGKILL);
    }
    let _ = child.wait();
}
