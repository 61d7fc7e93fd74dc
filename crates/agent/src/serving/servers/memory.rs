//! Folders in memory for what a server keeps in files, next to the folder of all servers.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use net::folder::Folder;

use super::FOLDER_MODE;

/// Where the system has files in memory.
pub(crate) const IN_MEMORY: &str = "/dev/shm";
/// What the name of the folder in memory has behind that of the folder of all servers.
const SUFFIX: &str = "-memory";

/// The folder in memory of all servers of an agent. It is made with the first that needs one.
#[derive(Debug)]
pub(crate) struct MemoryFolder {
    path: PathBuf,
    folder: Option<Folder>,
}

impl MemoryFolder {
    /// That of the agent whose folder has this name.
    pub(crate) fn next_to(name: &str) -> Self {
        Self {
            path: path_next_to(OsStr::new(name)),
            folder: None,
        }
    }

    /// Makes an empty folder for a server, in place of its earlier one.
    pub(crate) fn make(&mut self, server: &str) -> io::Result<(Folder, PathBuf)> {
        self.remove(server)?;
        let all = match self.folder.take() {
            Some(folder) => folder,
            None => {
                let name = self.path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
                let folder = Folder::open(Path::new(IN_MEMORY))?.make(name)?;
                folder.set_mode(FOLDER_MODE)?;
                folder
            }
        };
        let made = all.make(OsStr::new(server));
        self.folder = Some(all);
        Ok((made?, self.path.join(server)))
    }

    /// Removes the folder of a server, if it has one.
    pub(crate) fn remove(&self, server: &str) -> io::Result<()> {
        match self
            .folder
            .as_ref()
            .map(|all| all.remove(OsStr::new(server)))
        {
            Some(Err(e)) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }

    /// Removes the folders of all servers.
    pub(crate) fn remove_all(&mut self) {
        if self.folder.take().is_some() {
            let _ = net::folder::remove_all(&self.path);
        }
    }
}

/// The folder in memory next to an agent's folder of this name.
pub(crate) fn path_next_to(name: &OsStr) -> PathBuf {
    let mut name = name.to_owned();
    name.push(SUFFIX);
    Path::new(IN_MEMORY).join(name)
}
