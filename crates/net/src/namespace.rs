//! Namespaces: what a process sees of the network, the mounts, the host's name and the users.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::os::check;

/// What a namespace keeps apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespace {
    /// Devices, addresses, routes, sockets, and the kernel's settings of the network.
    Net,
    /// Mounts.
    Mount,
    /// The host's name.
    Uts,
    /// Users, and with them privileges over namespaces made below.
    User,
}

impl Namespace {
    fn flag(self) -> i32 {
        match self {
            Namespace::Net => libc::CLONE_NEWNET,
            Namespace::Mount => libc::CLONE_NEWNS,
            Namespace::Uts => libc::CLONE_NEWUTS,
            Namespace::User => libc::CLONE_NEWUSER,
        }
    }

    /// Its file below `/proc/PID/ns`.
    pub fn file_name(self) -> &'static str {
        match self {
            Namespace::Net => "net",
            Namespace::Mount => "mnt",
            Namespace::Uts => "uts",
            Namespace::User => "user",
        }
    }

    /// The namespace that the calling thread is in; it lives as long as the file is open.
    ///
    /// # Errors
    /// When `/proc` is not there.
    pub fn current(self) -> io::Result<File> {
        File::open(format!("/proc/thread-self/ns/{}", self.file_name()))
    }
}

/// Moves the calling thread into new namespaces. Of these, that of users is for processes with one
/// thread only, and gives all privileges over the others.
///
/// # Errors
/// When it may not, or there are too many.
pub fn enter_new(namespaces: &[Namespace]) -> io::Result<()> {
    let flags = namespaces.iter().fold(0, |flags, one| flags | one.flag());
    // SAFETY: takes a number, touches no memory of this process.
    check(unsafe { libc::unshare(flags) }).map(drop)
}

/// Moves the calling thread into a namespace that a file of `/proc/PID/ns` stands for.
///
/// # Errors
/// When it may not; one of mounts or users is for processes with one thread only.
pub fn enter(namespace: &File) -> io::Result<()> {
    // SAFETY: takes numbers, touches no memory of this process.
    check(unsafe { libc::setns(namespace.as_raw_fd(), 0) }).map(drop)
}

/// Makes this user known in a new namespace of users, under the same numbers.
///
/// # Errors
/// When the kernel does not allow it.
pub fn keep_user(uid: u32, gid: u32) -> io::Result<()> {
    // Without this an ordinary user may not write the map of groups.
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

/// The effective user and group of this process.
pub fn user_and_group() -> (u32, u32) {
    // SAFETY: they take and touch nothing, and never fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

fn c_string(bytes: &[u8]) -> io::Result<CString> {
    CString::new(bytes).map_err(io::Error::other)
}

fn mount(
    source: Option<&Path>,
    target: &Path,
    kind: Option<&str>,
    flags: libc::c_ulong,
) -> io::Result<()> {
    let source = source
        .map(|path| c_string(path.as_os_str().as_bytes()))
        .transpose()?;
    let target = c_string(target.as_os_str().as_bytes())?;
    let kind = kind.map(|kind| c_string(kind.as_bytes())).transpose()?;
    let pointer = |text: &Option<CString>| text.as_ref().map_or(std::ptr::null(), |t| t.as_ptr());
    // SAFETY: each pointer is null or a string that ends with a zero and outlives the call; null is
    // allowed for source, type and data.
    check(unsafe {
        libc::mount(
            pointer(&source),
            target.as_ptr(),
            pointer(&kind),
            flags,
            std::ptr::null(),
        )
    })
    .map(drop)
}

/// Keeps what is mounted in this mount namespace from the one that it was made from.
///
/// # Errors
/// When this process may not mount.
pub fn keep_mounts_inside() -> io::Result<()> {
    mount(None, Path::new("/"), None, libc::MS_REC | libc::MS_SLAVE)
}

/// Shows `file` in the place of `target`, which has to exist.
///
/// # Errors
/// When this process may not mount, or one of them is not there.
pub fn show_in_place_of(file: &Path, target: &Path) -> io::Result<()> {
    mount(Some(file), target, None, libc::MS_BIND)
}

/// Lays an empty file system in memory over a folder.
///
/// # Errors
/// When this process may not mount, or the folder is not there.
pub fn cover_with_memory(folder: &Path) -> io::Result<()> {
    let flags = libc::MS_NOSUID | libc::MS_NODEV;
    mount(Some(Path::new("tmpfs")), folder, Some("tmpfs"), flags)
}

/// Takes the uppermost mount off a folder. What is shown from it elsewhere stays.
///
/// # Errors
/// When nothing is mounted there.
pub fn uncover(folder: &Path) -> io::Result<()> {
    let folder = c_string(folder.as_os_str().as_bytes())?;
    // SAFETY: the string ends with a zero and outlives the call.
    check(unsafe { libc::umount2(folder.as_ptr(), libc::MNT_DETACH) }).map(drop)
}

/// Names the host of this namespace.
///
/// # Errors
/// When it is longer than 64 bytes, or this process may not.
pub fn set_host_name(name: &str) -> io::Result<()> {
    // SAFETY: pointer and length describe `name`.
    check(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_in_a_new_namespace_sees_other_devices() {
        let seen = std::thread::spawn(|| {
            enter_new(&[Namespace::Net]).ok()?;
            std::fs::read_to_string("/proc/thread-self/net/dev").ok()
        });
        // Without the privilege there is nothing to see; crate lab's tests say that they skip.
        if let Some(devices) = seen.join().unwrap() {
            let names: Vec<&str> = devices
                .lines()
                .filter_map(|line| line.split_once(':'))
                .map(|(name, _)| name.trim())
                .filter(|name| !name.starts_with("ifb"))
                .collect();
            assert_eq!(names, ["lo"]);
        }
    }
}
