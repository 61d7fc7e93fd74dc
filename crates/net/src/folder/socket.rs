//! Unix sockets in folders that another user may write to.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};

use super::Folder;

/// Only the owner may connect.
const PRIVATE: Mode = Mode::from_raw_mode(0o600);
/// The socket's name in the folder in which it is made.
const INNER: &str = "s";

/// The file of a listening Unix socket. It is changed and removed only while its path leads to
/// this socket.
#[derive(Debug)]
pub struct SocketFile {
    parent: Folder,
    name: OsString,
    identity: (u64, u64),
}

impl SocketFile {
    /// Listens on a socket that only this process's user may connect to. It replaces a file that
    /// exists at `path`. The path of its folder is trusted, what other users do in it is not: the
    /// socket is made in a private folder, and renamed.
    ///
    /// # Errors
    /// When the path is too long for a socket, or the socket cannot be made.
    pub fn listen(path: &Path) -> io::Result<(UnixListener, Self)> {
        // Clients have to connect by this path.
        SocketAddr::from_pathname(path)?;
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = match path.parent() {
            Some(parent) if parent != Path::new("") => Folder::open(parent)?,
            _ => Folder::open(Path::new("."))?,
        };
        let private = OsString::from(format!(".w{}", std::process::id()));
        // A process of the same number may have left it.
        let _ = parent.remove(&private);
        let folder = parent.make(&private)?;
        let made = listen_in(&folder).and_then(|(listener, identity)| {
            rustix::fs::renameat(&folder.0, INNER, &parent.0, name)?;
            Ok((listener, identity))
        });
        let _ = parent.remove(&private);
        let (listener, identity) = made?;
        let name = name.to_owned();
        let file = Self {
            parent,
            name,
            identity,
        };
        Ok((listener, file))
    }

    /// Changes the socket's owner and group.
    ///
    /// # Errors
    /// When another file is at its path, or this process lacks the privilege.
    pub fn give_to(&self, user: u32, group: u32) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.parent.0, &self.name, flags, Mode::empty())?;
        if identity(&file, OsStr::new(""))? != self.identity {
            return Err(io::Error::other("another file has its name"));
        }
        let owner = (Uid::from_raw(user), Gid::from_raw(group));
        let flags = AtFlags::EMPTY_PATH;
        Ok(rustix::fs::chownat(
            &file,
            "",
            Some(owner.0),
            Some(owner.1),
            flags,
        )?)
    }

    /// Removes it, unless another file is at its path.
    pub fn remove(&self) {
        if identity(&self.parent.0, &self.name).is_ok_and(|found| found == self.identity) {
            let _ = self.parent.unlink(&self.name);
        }
    }
}

fn listen_in(folder: &Folder) -> io::Result<(UnixListener, (u64, u64))> {
    // There is no `bindat`.
    let path = PathBuf::from(format!("/proc/self/fd/{}/{INNER}", folder.0.as_raw_fd()));
    let listener = UnixListener::bind(path)?;
    rustix::fs::chmodat(&folder.0, INNER, PRIVATE, AtFlags::empty())?;
    Ok((listener, identity(&folder.0, OsStr::new(INNER))?))
}

/// Device and inode of a file in a folder; of the descriptor itself without a name.
fn identity(folder: impl AsFd, name: &OsStr) -> io::Result<(u64, u64)> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
    let found = rustix::fs::statat(folder, name, flags)?;
    Ok((found.st_dev, found.st_ino))
}

#[cfg(test)]
mod tests {
    use super::super::tests::Place;
    use super::*;
    use std::fs;
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_socket_is_private_and_alone_in_its_folder() {
        let place = Place::new("socket");
        let path = place.0.join("a.sock");
        // What a process of this number left behind.
        let left = place.0.join(format!(".w{}", std::process::id()));
        fs::create_dir(&left).unwrap();
        fs::write(left.join(INNER), "x").unwrap();
        let (listener, file) = SocketFile::listen(&path).unwrap();
        assert_eq!(fs::read_dir(&place.0).unwrap().count(), 1);
        let found = fs::symlink_metadata(&path).unwrap();
        assert!(found.file_type().is_socket());
        assert_eq!(found.permissions().mode() & 0o777, 0o600);
        UnixStream::connect(&path).unwrap();
        listener.accept().unwrap();
        file.give_to(found.uid(), found.gid()).unwrap();
        file.remove();
        assert_eq!(fs::read_dir(&place.0).unwrap().count(), 0);
        file.remove();
    }

    #[test]
    fn what_another_user_put_in_its_place_is_left_alone() {
        let place = Place::new("socket-swapped");
        let (path, victim) = (place.0.join("a.sock"), place.0.join("victim"));
        fs::write(&victim, "x").unwrap();
        let (_listener, file) = SocketFile::listen(&path).unwrap();
        let swap: [fn(&Path, &Path) -> io::Result<()>; 2] = [
            |from, to| symlink(from, to),
            |from, to| fs::hard_link(from, to),
        ];
        for swap in swap {
            fs::remove_file(&path).unwrap();
            swap(&victim, &path).unwrap();
            let refused = file.give_to(12_345, 12_345).unwrap_err();
            assert!(refused.to_string().contains("another file"), "{refused}");
            file.remove();
            assert!(fs::symlink_metadata(&path).is_ok(), "it is not ours");
        }
        assert_ne!(fs::metadata(&victim).unwrap().uid(), 12_345);
    }
}
