//! Which event loop runs.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use crate::{Io, IoOptions, Uring};

/// The event loop to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IoKind {
    /// io_uring.
    Uring,
    Epoll,
}

/// Why io_uring cannot be used here; `None` when it can. Tried once per process.
pub fn uring_unavailable() -> Option<&'static str> {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    REASON
        .get_or_init(|| {
            let options = IoOptions {
                outgoing: 4,
                accepted: 4,
                buffers: 4,
                buffers_max: 0,
                buffer_size: 4096,
                files: false,
                stamps: false,
            };
            Uring::open(options).err().map(|e| e.to_string())
        })
        .as_deref()
}

impl IoKind {
    /// io_uring where the kernel allows it, epoll otherwise.
    pub fn best() -> Self {
        if uring_unavailable().is_none() {
            IoKind::Uring
        } else {
            IoKind::Epoll
        }
    }
}

impl fmt::Display for IoKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IoKind::Uring => "io_uring",
            IoKind::Epoll => "epoll",
        })
    }
}

impl FromStr for IoKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "uring" | "io_uring" => Ok(IoKind::Uring),
            "epoll" => Ok(IoKind::Epoll),
            other => Err(format!("expected `uring` or `epoll`, found `{other}`")),
        }
    }
}
