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
/// The socket's name in the folder in which it is created.
const INNER: &str = "s";
/// How many names for that folder are tried.
const NAMES_MAX: u32 = 100;

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
    /// exists at `path`. The path of its folder is trusted, the folder's content is not: the socket
    /// is created in a private folder and moved into place.
    ///
    /// # Errors
    /// When the path is too long for a socket, or the socket cannot be created.
    pub fn listen(path: &Path) -> io::Result<(UnixListener, Self)> {
        // Clients have to connect by this path.
        SocketAddr::from_pathname(path)?;
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        // The folder need not be readable.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = Folder(rustix::fs::open(parent, flags, Mode::empty())?);
        let (private, folder) = private_folder(&parent)?;
        let made = listen_in(&folder).and_then(|(listener, identity)| {
            let moved = rustix::fs::renameat(&folder.0, INNER, &parent.0, name);
            if moved.is_err() {
                let _ = folder.unlink(OsStr::new(INNER));
            }
            Ok(moved.map(|()| (listener, identity))?)
        });
        // This removes only an empty folder: another one may have this name by now.
        let _ = rustix::fs::unlinkat(&parent.0, &private, AtFlags::REMOVEDIR);
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
            return Err(io::Error::other("another file is at its path now"));
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

/// Makes a folder in `parent` that only this process's user has access to.
fn private_folder(parent: &Folder) -> io::Result<(OsString, Folder)> {
    for number in 0..NAMES_MAX {
        let name = OsString::from(format!(".weigh-{}-{number}", std::process::id()));
        let folder = match parent.make(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            made => made?,
        };
        check_private(&folder)?;
        return Ok((name, folder));
    }
    Err(io::Error::other(format!(
        "its folder already has {NAMES_MAX} entries named .weigh-{}-N",
        std::process::id()
    )))
}

/// Checks that a new folder is this user's and closed to all others. Whoever may write to its parent
/// may have replaced it.
fn check_private(folder: &Folder) -> io::Result<()> {
    let found = rustix::fs::fstat(&folder.0)?;
    let others = Mode::from_raw_mode(found.st_mode) & (Mode::RWXG | Mode::RWXO);
    if found.st_uid == rustix::process::geteuid().as_raw() && others.is_empty() {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "the temporary folder beside it belongs to user {} and has mode {:o}; another user may \
         have replaced it",
        found.st_uid,
        found.st_mode & 0o7777
    )))
}

fn listen_in(folder: &Folder) -> io::Result<(UnixListener, (u64, u64))> {
    // There is no `bindat`.
    let path = PathBuf::from(format!("/proc/self/fd/{}/{INNER}", folder.0.as_raw_fd()));
    let listener = UnixListener::bind(path)?;
    rustix::fs::chmodat(&folder.0, INNER, PRIVATE, AtFlags::empty())?;
    Ok((listener, identity(&folder.0, OsStr::new(INNER))?))
}

/// Device and inode of `name` in the folder; of the descriptor itself if `name` is empty.
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
        // What is there already, such as another user's folder, is not touched.
        let left = place.0.join(format!(".weigh-{}-0", std::process::id()));
        fs::create_dir(&left).unwrap();
        fs::write(left.join(INNER), "x").unwrap();
        let (listener, file) = SocketFile::listen(&path).unwrap();
        assert_eq!(fs::read_to_string(left.join(INNER)).unwrap(), "x");
        fs::remove_dir_all(&left).unwrap();
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
    fn a_new_folder_open_to_others_is_refused() {
        let place = Place::new("socket-open");
        let (_, folder) = private_folder(&place.folder()).unwrap();
        for mode in [0o700, 0o2700] {
            folder.set_mode(mode).unwrap();
            check_private(&folder).unwrap();
        }
        for mode in [0o777, 0o750, 0o711, 0o1707] {
            folder.set_mode(mode).unwrap();
            let refused = check_private(&folder).unwrap_err().to_string();
            assert!(refused.contains(&format!("has mode {mode:o}")), "{refused}");
        }
        folder.set_mode(0o700).unwrap();
        if rustix::process::geteuid().is_root() {
            folder.give_to(12_345, 12_345).unwrap();
            let refused = check_private(&folder).unwrap_err().to_string();
            assert!(refused.contains("belongs to user 12345"), "{refused}");
        }
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
            assert!(
                refused.to_string().contains("another file is at"),
                "{refused}"
            );
            file.remove();
            assert!(fs::symlink_metadata(&path).is_ok(), "it is not ours");
        }
        assert_ne!(fs::metadata(&victim).unwrap().uid(), 12_345);
    }
}
