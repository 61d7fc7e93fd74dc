//! Safe access to folders that another user may write to: paths are opened one component at a time,
//! from a descriptor, and no symbolic link is followed.
//!
//! `openat2` with `RESOLVE_BENEATH` and `RESOLVE_NO_SYMLINKS` would do this in one call. It needs
//! Linux 5.6, and many containers forbid it.

use std::ffi::{CString, OsStr};
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, fchown};
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags};
use rustix::io::Errno;

pub use socket::SocketFile;

/// Modes of new files and folders, until their final mode is set: only the owner has access.
const PRIVATE_FILE: Mode = Mode::from_raw_mode(0o600);
const PRIVATE_FOLDER: Mode = Mode::from_raw_mode(0o700);

/// An open folder. Paths in it have to be relative and without `..`; none of their components may
/// be a symbolic link.
#[derive(Debug)]
pub struct Folder(OwnedFd);

impl Folder {
    /// Opens a folder by a trusted path: symbolic links in the path are followed.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::openat(CWD, path, flags, Mode::empty())?))
    }

    /// Makes a new folder in this one, which only this process's user has access to; whoever may
    /// write to this one can replace it meanwhile.
    ///
    /// # Errors
    /// When the name exists already.
    pub fn make(&self, name: &OsStr) -> io::Result<Self> {
        let name = plain_name(name)?;
        rustix::fs::mkdirat(&self.0, name, PRIVATE_FOLDER)?;
        self.open_child(name)
    }

    /// Opens a folder below this one. Folders of the path that do not exist are made; `made` is
    /// called with each of them.
    ///
    /// # Errors
    /// When a component of the path is not a folder, or `made` fails.
    pub fn open_or_make(
        &self,
        path: &Path,
        mut made: impl FnMut(&Self) -> io::Result<()>,
    ) -> io::Result<Self> {
        let mut folder = self.duplicate()?;
        for name in components(path) {
            let name = name?;
            folder = match folder.make(name) {
                Ok(new) => {
                    made(&new)?;
                    new
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => folder.open_child(name)?,
                Err(e) => return Err(e),
            };
        }
        Ok(folder)
    }

    /// Creates a file and opens it for reading and writing. Its parent folder has to exist.
    ///
    /// # Errors
    /// When the name exists already.
    pub fn create(&self, path: &Path) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        self.open_with(path, flags, PRIVATE_FILE)
    }

    /// Opens a file for reading, without blocking. It may be of any kind except a symbolic link.
    ///
    /// # Errors
    /// When there is none, or a component of the path is a symbolic link.
    pub fn open_file(&self, path: &Path) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        self.open_with(path, flags, Mode::empty())
    }

    fn open_with(&self, path: &Path, flags: OFlags, mode: Mode) -> io::Result<File> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut folder = self.duplicate()?;
        for parent in components(path.parent().unwrap_or(Path::new(""))) {
            folder = folder.open_child(parent?)?;
        }
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&folder.0, name, flags, mode) {
            Ok(file) => Ok(File::from(file)),
            Err(Errno::LOOP) => Err(io::Error::other("it is a symbolic link")),
            Err(e) => Err(e.into()),
        }
    }

    /// Sets the folder's mode.
    ///
    /// # Errors
    /// When it belongs to another user.
    pub fn set_mode(&self, mode: u32) -> io::Result<()> {
        File::from(self.0.try_clone()?).set_permissions(Permissions::from_mode(mode))
    }

    /// Changes the folder's owner and group.
    ///
    /// # Errors
    /// When this process lacks the privilege.
    pub fn give_to(&self, user: u32, group: u32) -> io::Result<()> {
        fchown(&self.0, Some(user), Some(group))
    }

    /// Removes a file, or a folder with all that is in it. Only a few descriptors are open at a
    /// time, however deep the folder is: inner folders are moved up before they are emptied.
    ///
    /// # Errors
    /// When it does not exist, may not be removed, or gets a new entry meanwhile.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        let name = plain_name(name)?;
        if self.unlink(name)? {
            return Ok(());
        }
        let top = self.open_child(name)?;
        let mut number = 0;
        let mut left = top.unlink_files()?;
        while let Some(inner) = left.pop() {
            let folder = top.open_child(OsStr::from_bytes(inner.as_bytes()))?;
            for below in folder.unlink_files()? {
                left.push(move_up(&folder, &below, &top, &mut number)?);
            }
            rustix::fs::unlinkat(&top.0, &inner, AtFlags::REMOVEDIR)?;
        }
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Removes all entries except folders. Returns the names of the folders.
    fn unlink_files(&self) -> io::Result<Vec<CString>> {
        let mut folders = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = entry.file_name();
            let is_self_or_parent = [c".", c".."].contains(&name);
            if !is_self_or_parent && !self.unlink(OsStr::from_bytes(name.to_bytes()))? {
                folders.push(name.to_owned());
            }
        }
        Ok(folders)
    }

    /// Removes an entry unless it is a folder; returns `false` for a folder.
    fn unlink(&self, name: &OsStr) -> io::Result<bool> {
        match rustix::fs::unlinkat(&self.0, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::ISDIR) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// Opens a folder directly in this one.
    fn open_child(&self, name: &OsStr) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::openat(
            &self.0,
            name,
            flags,
            Mode::empty(),
        )?))
    }

    fn duplicate(&self) -> io::Result<Self> {
        Ok(Self(self.0.try_clone()?))
    }
}

/// Removes a folder with all that is in it, without following symbolic links in it.
pub fn remove_all(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let parent = match parent.as_os_str().is_empty() {
        true => Path::new("."),
        false => parent,
    };
    Folder::open(parent)?.remove(name)
}

/// Moves a folder into `top`, under a name that does not exist there; returns the name.
fn move_up(from: &Folder, name: &CString, top: &Folder, number: &mut u64) -> io::Result<CString> {
    loop {
        *number += 1;
        let new = CString::new(format!("{number}.moved-up"))?;
        match rustix::fs::renameat(&from.0, name, &top.0, &new) {
            Ok(()) => return Ok(new),
            // The name exists, and is not an empty folder, which `renameat` would have replaced.
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// The components of a path. One that is not a plain name, such as `..`, is an error.
fn components(path: &Path) -> impl Iterator<Item = io::Result<&OsStr>> {
    path.components().map(|component| match component {
        Component::Normal(name) => Ok(name),
        _ => Err(outside(path.as_os_str())),
    })
}

/// Checks that a name is a single path component.
fn plain_name(name: &OsStr) -> io::Result<&OsStr> {
    let mut all = Path::new(name).components();
    match (all.next(), all.next()) {
        (Some(Component::Normal(one)), None) if one == name => Ok(name),
        _ => Err(outside(name)),
    }
}

fn outside(path: &OsStr) -> io::Error {
    let path = Path::new(path).display();
    let why = format!("expected a path inside the folder, found `{path}`");
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

mod socket;

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    pub(crate) struct Place(pub(crate) PathBuf);

    impl Place {
        pub(crate) fn new(name: &str) -> Self {
            let name = format!("net-folder-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir(&path).unwrap();
            Self(path)
        }

        pub(crate) fn folder(&self) -> Folder {
            Folder::open(&self.0).unwrap()
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn no_link_is_followed_at_any_step() {
        let place = Place::new("links");
        let folder = place.folder();
        folder.make(OsStr::new("real")).unwrap();
        fs::write(place.0.join("real/file"), "x").unwrap();
        symlink("real", place.0.join("link")).unwrap();
        symlink("real/file", place.0.join("name")).unwrap();
        symlink("new", place.0.join("dangling")).unwrap();
        assert!(folder.open_file(Path::new("real/file")).is_ok());
        for path in ["link/file", "name", "dangling"] {
            let path = Path::new(path);
            assert!(folder.open_file(path).is_err(), "{}", path.display());
            assert!(folder.create(path).is_err(), "{}", path.display());
        }
        let into = |path: &str| folder.open_or_make(Path::new(path), |_| Ok(()));
        assert!(into("link").is_err() && into("link/below").is_err() && into("dangling").is_err());
        assert!(into("real/below").is_ok());
        assert!(!place.0.join("new").exists());
    }

    #[test]
    fn no_path_leads_out_of_the_folder() {
        let place = Place::new("paths");
        let folder = place.folder();
        for path in ["..", "../x", "a/../../x", "/etc/passwd", ".", ""] {
            let path = Path::new(path);
            assert!(folder.create(path).is_err(), "{}", path.display());
            assert!(folder.open_file(path).is_err(), "{}", path.display());
            assert!(folder.make(path.as_os_str()).is_err(), "{}", path.display());
            assert!(
                folder.remove(path.as_os_str()).is_err(),
                "{}",
                path.display()
            );
        }
        for name in ["a/b", "a/"] {
            assert!(folder.make(OsStr::new(name)).is_err(), "{name}");
        }
    }

    #[test]
    fn a_tree_is_removed_and_what_its_links_lead_to_stays() {
        let place = Place::new("tree");
        let kept = place.0.join("kept");
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "x").unwrap();
        let tree = place.0.join("tree");
        // With names that the removal itself would choose.
        for path in ["a/b/c", "1.moved-up/2.moved-up/x", "3.moved-up", "d"] {
            fs::create_dir_all(tree.join(path)).unwrap();
        }
        fs::write(tree.join("a/b/c/file"), "x").unwrap();
        symlink(&kept, tree.join("a/link")).unwrap();
        symlink(&kept, tree.join("link")).unwrap();
        remove_all(&tree).unwrap();
        assert!(!tree.exists());
        assert!(kept.join("file").is_file());
        symlink(&kept, &tree).unwrap();
        remove_all(&tree).unwrap();
        assert!(kept.join("file").is_file() && !tree.is_symlink());
        assert!(remove_all(&tree).is_err());
    }
}
