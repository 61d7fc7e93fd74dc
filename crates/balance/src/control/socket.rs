//! The control socket.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use net::folder::SocketFile;

use super::ask::ask;
use super::requests;
use super::server::Server;
use super::supervisor::Supervisor;

/// How long another balancer may take to identify itself.
const IDENTITY_LIMIT: Duration = Duration::from_secs(2);

/// Why there is no control socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    #[error(
        "a balancer answers on {} already, with process id {pid}; stop it by `weigh balance stop \
         --socket {}`, or give another --socket", path.display(), path.display()
    )]
    Live { path: PathBuf, pid: u64 },
    #[error(
        "another program answers on {}, which is no balancer; give another --socket",
        path.display()
    )]
    Stranger { path: PathBuf },
    #[error(
        "{} exists and is no socket; remove it, or give another --socket", path.display()
    )]
    NoSocket { path: PathBuf },
    /// It cannot be created.
    #[error("cannot make the socket {}: {source}", path.display())]
    Make { path: PathBuf, source: io::Error },
    /// It cannot be given to another user.
    #[error("cannot give the socket {} to the user of --user: {source}", path.display())]
    Give { path: PathBuf, source: io::Error },
}

/// The default path: the configuration file with `.sock` appended.
pub fn beside(file: &Path) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(".sock");
    PathBuf::from(path)
}

/// The control socket. Dropping it stops answering and removes it.
pub struct Socket {
    path: PathBuf,
    file: SocketFile,
    // Dropped after the file is removed.
    _server: Server,
}

impl Socket {
    /// Creates the socket, for the balancer's user and root only. A stale socket is replaced.
    ///
    /// # Errors
    /// When another balancer answers there, or it cannot be created.
    pub fn open(path: &Path, supervisor: &Arc<Supervisor>) -> Result<Socket, SocketError> {
        // A stale socket is replaced.
        is_stale(path)?;
        let made = |source| SocketError::Make {
            path: path.to_path_buf(),
            source,
        };
        let (listener, file) = SocketFile::listen(path).map_err(made)?;
        let supervisor = supervisor.clone();
        let read = |stream: &mut UnixStream| Some(requests::read_line(stream));
        let server = Server::unix(listener, read, move |stream, line| {
            requests::serve(stream, line, &supervisor);
        });
        Ok(Socket {
            path: path.to_path_buf(),
            file,
            _server: server.map_err(made)?,
        })
    }

    /// Whether a balancer can create its socket there: nobody answers, and no other file is in the
    /// way. Nothing is changed.
    pub fn check(path: &Path) -> Result<(), SocketError> {
        is_stale(path).map(drop)
    }

    /// Gives the socket to the user that the balancer goes on as.
    ///
    /// # Errors
    /// When the system refuses, or another file is at its path.
    pub fn give_to(&self, user: u32, group: u32) -> Result<(), SocketError> {
        let given = self.file.give_to(user, group);
        given.map_err(|source| SocketError::Give {
            path: self.path.clone(),
            source,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.file.remove();
    }
}

/// Whether a socket is there on which nobody answers. An error if somebody does, or if it is
/// another file.
fn is_stale(path: &Path) -> Result<bool, SocketError> {
    let own = || path.to_path_buf();
    match fs::symlink_metadata(path) {
        Err(_) => return Ok(false),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(SocketError::NoSocket { path: own() });
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(true),
        Err(source) => {
            return Err(SocketError::Make {
                path: own(),
                source,
            });
        }
    }
    let answer = ask(path, "status", IDENTITY_LIMIT).ok();
    Err(match answer.and_then(|answer| answer["pid"].as_u64()) {
        Some(pid) => SocketError::Live { path: own(), pid },
        None => SocketError::Stranger { path: own() },
    })
}
