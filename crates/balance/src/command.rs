//! Commands of the configuration: how they are started, as whom, and how they are ended.
//!
//! A command line is the configuration's, with an address and names of the configuration filled
//! in, so nothing that a client sends reaches the shell.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use net::os;

use crate::config::model::{Backend, Dispatch, Hooks, Service};

const SIGKILL: i32 = 9;

/// What commands of a service run as.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Account {
    /// The balancer's own.
    Own,
    /// Another: its user and group number.
    Other(u32, u32),
    /// It cannot be had, so nothing runs.
    Unavailable,
}

/// Why the commands of a service cannot run as the account that it names; `None` when they can,
/// or when it has none.
pub(crate) fn refusal(service: &Service) -> Option<String> {
    let hooks = |one: &Backend| one.hooks != Hooks::default();
    let asks = matches!(service.dispatch, Dispatch::External { .. });
    let any = asks || service.backends.iter().any(hooks);
    let name = service.user_account.as_deref().filter(|_| any);
    account(name).err()
}

/// The account of that name, as far as commands can run as it.
pub(crate) fn account(name: Option<&str>) -> Result<Account, String> {
    let Some(name) = name else {
        return Ok(Account::Own);
    };
    let (user, group) = os::user_ids(name)
        .ok_or_else(|| format!("there is no user account `{}`", name.escape_debug()))?;
    // The owner of a process's folder is the account that it runs as.
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

/// A command line for the shell, with nothing to read and nobody to write to; in a process group
/// of its own, to be killed as a whole.
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
        // Supplementary groups are given up along with the user.
        command.gid(group).uid(user);
    }
    command
}

/// Kills a command with what it has started, and collects it.
pub(crate) fn kill(child: &mut Child) {
    // Not collected yet, so the number is still this child's.
    if let Ok(group) = i32::try_from(child.id()) {
        let _ = os::kill(-group, SIGKILL);
    }
    let _ = child.wait();
}
