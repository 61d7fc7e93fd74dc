//! Namespaces of the network, mounts, host name and users.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::mount::{self, MountFlags, MountPropagationFlags, UnmountFlags};
use rustix::thread::{self, UnshareFlags};

/// What a namespace isolates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Namespace {
    /// Devices, addresses, routes, sockets, and the kernel's settings of the network.
    Net,
    Mount,
    /// The host's name.
    Uts,
    /// Users, and with them privileges over namespaces created below.
    User,
}

impl Namespace {
    fn flag(self) -> UnshareFlags {
        match self {
            Namespace::Net => UnshareFlags::NEWNET,
            Namespace::Mount => UnshareFlags::NEWNS,
            Namespace::Uts => UnshareFlags::NEWUTS,
            Namespace::User => UnshareFlags::NEWUSER,
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
    let flags = namespaces.iter().map(|one| one.flag()).collect();
    // SAFETY: of all flags only that of the table of descriptors is unsafe, which is not used.
    Ok(unsafe { thread::unshare_unsafe(flags) }?)
}

/// Moves the calling thread into a namespace that a file of `/proc/PID/ns` stands for.
///
/// # Errors
/// When it may not; one of mounts or users is for processes with one thread only.
pub fn enter(namespace: &File) -> io::Result<()> {
    Ok(thread::move_into_link_name_space(namespace.as_fd(), None)?)
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
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    (user.as_raw(), group.as_raw())
}

/// Keeps what is mounted in this mount namespace from the one that it was made from.
///
/// # Errors
/// When this process may not mount.
pub fn keep_mounts_inside() -> io::Result<()> {
    let flags = MountPropagationFlags::REC | MountPropagationFlags::DOWNSTREAM;
    Ok(mount::mount_change("/", flags)?)
}

/// Shows `file` in the place of `target`, which has to exist.
///
/// # Errors
/// When this process may not mount, or one of them is not there.
pub fn show_in_place_of(file: &Path, target: &Path) -> io::Result<()> {
    Ok(mount::mount_bind(file, target)?)
}

/// Lays an empty file system in memory over a folder.
///
/// # Errors
/// When this process may not mount, or the folder is not there.
pub fn cover_with_memory(folder: &Path) -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    Ok(mount::mount("tmpfs", folder, "tmpfs", flags, None)?)
}

/// Takes the uppermost mount off a folder. What is shown from it elsewhere stays.
///
/// # Errors
/// When nothing is mounted there.
pub fn uncover(folder: &Path) -> io::Result<()> {
    Ok(mount::unmount(folder, UnmountFlags::DETACH)?)
}

/// Names the host of this namespace.
///
/// # Errors
/// When it is longer than 64 bytes, or this process may not.
pub fn set_host_name(name: &str) -> io::Result<()> {
    Ok(rustix::system::sethostname(name.as_bytes())?)
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
        // Without the privilege this test checks nothing; the end-to-end tests report that as skipped.
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
