//! Orders about one server.

use std::net::SocketAddr;
use std::path::PathBuf;

use readings::HttpVersion;
use serde::{Deserialize, Serialize};

/// How to start a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartServer {
    pub server: String,
    /// Folders to make below its folder.
    pub dirs: Vec<String>,
    /// Folders to make in memory, to which links lead below its folder.
    pub memory_dirs: Vec<String>,
    /// Files to write below its folder.
    pub files: Vec<FileToWrite>,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Variables to set.
    pub env: Vec<(String, String)>,
    /// The folder that it is started in, absolute; if absent, its own folder.
    pub cwd: Option<PathBuf>,
    /// Whether it also gets the agent's environment.
    pub inherit_env: bool,
    /// Whether programs that it starts may gain privileges.
    pub setuid_programs: bool,
    /// The CPUs that it may use; empty for all.
    pub cpus: Vec<u32>,
    /// Log files below its folder, besides its output.
    pub logs: Vec<String>,
    /// The file in its folder in which it counts what it receives.
    pub counts: Option<String>,
}

/// A file of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileToWrite {
    /// Path below the server's folder.
    pub path: String,
    /// Content, base64.
    pub content: String,
    /// Permission bits.
    pub mode: u32,
}

/// How a server is reloaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadServer {
    pub server: String,
    /// Files to replace below its folder.
    pub files: Vec<FileToWrite>,
    /// A signal to its first process, such as `HUP`.
    pub signal: Option<String>,
    /// A command to run in its folder, as its user; empty for none.
    pub command: Vec<String>,
}

/// How a reload shows that it is in effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadProbe {
    pub server: String,
    pub sign: ReloadSign,
    /// The request that [`ReloadSign::Answer`] is about.
    pub ask: AwaitServer,
}

/// What shows that a reload is in effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReloadSign {
    /// A header field or the body of an answer on a new connection has this text, in any letter
    /// case.
    Answer(String),
    /// The server has printed this text since the reload began.
    Output(String),
    /// The server has a process that it did not have before.
    NewProcess,
}

/// When a server counts as ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwaitServer {
    /// The server that must not end meanwhile. `None` for one that ran before.
    pub server: Option<String>,
    /// Where it is asked.
    pub address: SocketAddr,
    /// The request; empty where opening a connection is enough.
    pub request: String,
    /// Whether the request is of another protocol than HTTP: then there is no status, and
    /// `contains` is searched for in all of the answer.
    pub raw: bool,
    /// The status expected; `None` takes any below 500.
    pub status: Option<u16>,
    /// What the body must contain.
    pub contains: Option<String>,
    /// How it is asked where it speaks TLS.
    pub tls: Option<tls::ClientSettings>,
    /// The version of HTTP that it is asked in.
    pub http: HttpVersion,
    /// Whether it expects a PROXY protocol header first.
    pub proxy_protocol: bool,
    /// How long it may take, ms.
    pub timeout_ms: u64,
}

/// A server on this machine that the agent has not started: another one did, in another network
/// namespace, or it ran before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherServer {
    pub server: String,
    pub pid: i32,
    /// Further processes of it that are no descendants of the first.
    pub also: Vec<i32>,
    /// Its control group, if it has one.
    pub group: Option<String>,
    /// The file in which it counts what it receives, in its folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<PathBuf>,
}
