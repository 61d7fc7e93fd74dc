//! A server that was started, and how to start and await it once more.

use std::path::PathBuf;

use agent::wire::{AwaitServer, FileToWrite, StartServer};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use experiment::recipe::{RenderContext, RenderedFile};
use readings::ServerStart;

pub(crate) struct StartedServer {
    pub(crate) name: String,
    pub(crate) host: Option<String>,
    pub(crate) folder: PathBuf,
    pub(crate) signals: Vec<(String, u64)>,
    pub(crate) recipe: String,
    /// The names and values that its recipe was rendered with.
    pub(crate) context: RenderContext,
    /// The orders that started it and awaited it.
    pub(crate) start: StartServer,
    pub(crate) ready: AwaitServer,
    /// How it started, once it was ready.
    pub(crate) began: Option<ServerStart>,
}

/// A file as an agent writes it.
pub(crate) fn to_write(file: &RenderedFile) -> FileToWrite {
    FileToWrite {
        path: file.path.clone(),
        content: STANDARD.encode(&file.bytes),
        mode: file.mode,
    }
}
