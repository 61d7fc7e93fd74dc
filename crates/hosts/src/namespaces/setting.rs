//! Sysctls of one host.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use readings::HostSpec;

/// Sysctls that are recorded for every host.
const RECORDED: [&str; 12] = [
    "net.core.somaxconn",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_wmem",
];

/// Why a sysctl of a host is invalid, on any machine with this kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum SettingError {
    #[error(
        "host `{host}`: this kernel has no setting `{setting}` for single hosts; settings of the whole \
         machine are set with sysctl"
    )]
    Unknown { host: String, setting: String },
    #[error(
        "host `{host}`: `{setting}` is a setting of the whole machine, not of a host; set it with \
         sysctl"
    )]
    WholeMachine { host: String, setting: String },
    #[error("host `{host}`: `{setting}` is read-only")]
    ReadOnly { host: String, setting: String },
    #[error("host `{host}`: the kernel does not accept `{value}` for `{setting}`")]
    Value {
        host: String,
        setting: String,
        value: String,
    },
}

/// Why a host cannot be created.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MakeError {
    /// A sysctl is invalid.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The system refuses.
    #[error("{0}")]
    Failed(String),
}

impl From<String> for MakeError {
    fn from(why: String) -> Self {
        MakeError::Failed(why)
    }
}

/// Those of the hosts' sysctls that can be set for the machine.
pub(crate) struct Machine {
    settable: BTreeSet<String>,
}

impl Machine {
    /// Reads the network namespace of this thread: the machine's, until the thread enters another.
    pub(crate) fn read(hosts: &[HostSpec]) -> Self {
        let names = hosts.iter().flat_map(|host| &host.settings);
        let settable = names
            .map(|(name, _)| name)
            .filter(|name| is_settable(&path_of(name)));
        Self {
            settable: settable.cloned().collect(),
        }
    }
}

pub(crate) fn path_of(setting: &str) -> PathBuf {
    Path::new("/proc/sys").join(setting.replace('.', "/"))
}

/// Whether the file has any write permission.
fn is_settable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o222 != 0)
}

fn read(setting: &str) -> Option<String> {
    let text = fs::read_to_string(path_of(setting)).ok()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The recorded sysctls of this thread's host, and those that the experiment sets.
pub(crate) fn recorded(host: &HostSpec) -> BTreeMap<String, String> {
    let declared = host.settings.iter().map(|(name, _)| name.as_str());
    let names = RECORDED.into_iter().chain(declared);
    names
        .filter_map(|name| Some((name.to_string(), read(name)?)))
        .collect()
}

/// Sets a sysctl in this thread's host.
pub(crate) fn set(
    host: &str,
    setting: &str,
    value: &str,
    machine: &Machine,
) -> Result<(), MakeError> {
    let (host, setting) = (host.to_string(), setting.to_string());
    let path = path_of(&setting);
    if !path.is_file() {
        return Err(SettingError::Unknown { host, setting }.into());
    }
    if !is_settable(&path) {
        let error = match machine.settable.contains(&setting) {
            true => SettingError::WholeMachine { host, setting },
            false => SettingError::ReadOnly { host, setting },
        };
        return Err(error.into());
    }
    fs::write(path, value).map_err(|e| {
        let value = value.to_string();
        match e.kind() {
            // `NotFound` is for names, such as a congestion control algorithm.
            io::ErrorKind::InvalidInput | io::ErrorKind::NotFound => SettingError::Value {
                host,
                setting,
                value,
            }
            .into(),
            _ => format!("host `{host}`: cannot set `{setting}` to `{value}`: {e}").into(),
        }
    })
}
