//! What a recipe is filled in with, and what comes of it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use readings::HttpVersion;

use super::reload::{Reload, ReloadState};
use crate::manifest::Value;

/// What a recipe is filled in with.
#[derive(Clone, Debug, PartialEq)]
pub struct RenderContext {
    /// The server's name in the experiment.
    pub name: String,
    /// The server's own folder, absolute.
    pub dir: PathBuf,
    pub listen_addr: SocketAddr,
    /// The servers it passes requests on to.
    pub upstreams: Vec<Behind>,
    /// Its parameters; [`super::Recipe::render`] checks them and adds the defaults.
    pub params: BTreeMap<String, Value>,
    /// The programs that [`super::Recipe::available`] found; any other is
    /// looked up in PATH by its first name.
    pub programs: BTreeMap<String, PathBuf>,
    /// The running program.
    pub weigh: PathBuf,
    /// How many CPUs it may use.
    pub cpus: usize,
    /// The checkout of its revision, where it has one.
    pub checkout: Option<PathBuf>,
    /// Its certificate and that of the run's authority; `None` where neither it nor any of its
    /// upstreams speaks TLS.
    pub certificates: Option<Certificates>,
    pub reload: ReloadState,
}

/// The certificates that a server needs, in PEM form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificates {
    /// That of the run's authority.
    pub authority: String,
    /// Its own, and its private key, where it speaks TLS.
    pub own: Option<tls::Identity>,
    /// Extra ones, each for the name that [`certificate_name`] gives its number.
    pub extra: Vec<tls::Identity>,
}

/// The host name of the extra certificate of this number, from 1.
pub fn certificate_name(number: usize) -> String {
    format!("n{number}.test")
}

/// A server that another passes requests on to.
#[derive(Clone, Debug, PartialEq)]
pub struct Behind {
    /// Its name; its address where the experiment gives only that.
    pub name: String,
    /// Where it listens.
    pub addr: SocketAddr,
    /// Its folder, where the run has started it.
    pub dir: Option<PathBuf>,
    /// Whether it speaks TLS.
    pub tls: bool,
}

/// A server's files, command and probes.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// Files to be written into its folder.
    pub files: Vec<RenderedFile>,
    /// Folders to be made inside its folder; those that files need are not named again.
    pub dirs: Vec<String>,
    /// Folders to be made in memory, with links to them inside its folder.
    pub memory_dirs: Vec<String>,
    /// The command that starts it in the foreground, its arguments with it.
    pub command: Vec<String>,
    /// Variables added to the command's environment.
    pub env: Vec<(String, String)>,
    /// The folder that it is started in. Empty for the one of the running program; `None` for its
    /// own.
    pub cwd: Option<PathBuf>,
    /// Whether it has the environment of the running program.
    pub inherit_env: bool,
    /// How to stop it: signals without `SIG`, such as `TERM`, each with how long to wait before
    /// the next. What still runs after the last is killed.
    pub stop: Vec<(String, Duration)>,
    /// How to know that it answers.
    pub ready: Ready,
    /// How it is reloaded, where it can be.
    pub reload: Option<Reload>,
    /// Whether programs that it starts may gain privileges.
    pub setuid_programs: bool,
    /// Its log files inside its folder.
    pub logs: Vec<String>,
    /// The file in its folder in which it counts what it receives.
    pub counts: Option<String>,
    /// The command that prints its version; [`super::Recipe::version_in`] finds it there.
    pub version_command: Option<Vec<String>>,
    /// Its settings in terms common to all servers.
    pub settings: BTreeMap<String, String>,
}

/// A file for a server's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderedFile {
    /// Its path inside the folder.
    pub path: String,
    /// Its content.
    pub bytes: Vec<u8>,
    /// Its mode, such as `0o644`.
    pub mode: u32,
}

/// The answer that shows that a server is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The path to ask for; empty where it is enough that its port accepts connections.
    pub path: String,
    /// The version of HTTP that it is asked in.
    pub http: HttpVersion,
    /// Whether it expects a PROXY protocol header first.
    pub proxy_protocol: bool,
    /// What to send to a server that does not speak HTTP, instead of a request for the path.
    pub send: Option<String>,
    /// The status to expect; without it any below 500 will do.
    pub status: Option<u16>,
    /// A text that the body has to hold, or with `send` all that comes back.
    pub contains: Option<String>,
    /// How long it may take from the start.
    pub timeout: Duration,
}
