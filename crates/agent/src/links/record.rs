//! Records of devices with links. By them an agent tries again to remove links of its own, and the next
//! run removes those of an agent that was killed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::kernel::netlink::route::Route;
use crate::kernel::owner::Owner;
use crate::links::kernel::{LinkKernel, LinkedDevice, undo};

/// The owner's mark and the inode of the network namespace follow.
const PREFIX: &str = "weigh-link-";
const NAMESPACES: &str = "/run/netns";

/// The file that says what an agent changes. It is written before anything changes.
#[derive(Debug)]
pub(crate) struct LinkRecord {
    path: PathBuf,
    pub(crate) devices: Vec<LinkedDevice>,
}

impl LinkRecord {
    /// Writes it into a folder, for this process and the network namespace of this thread.
    ///
    /// # Errors
    /// When that fails, or this process has one there already.
    pub(crate) fn write(folder: &Path, devices: Vec<LinkedDevice>) -> io::Result<Self> {
        let path = own_path(folder)?;
        let mut file = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        let written = serde_json::to_vec(&devices).map(|text| file.write_all(&text));
        let record = Self { path, devices };
        match written {
            Ok(Ok(())) => Ok(record),
            Ok(Err(error)) => Err(record.removed_after(error)),
            Err(error) => Err(record.removed_after(error.into())),
        }
    }

    fn removed_after(&self, error: io::Error) -> io::Error {
        self.remove();
        error
    }

    /// The one that this process has in a folder already.
    fn own(folder: &Path) -> io::Result<Option<Self>> {
        let path = own_path(folder)?;
        if !is_own_file(&path) {
            return Ok(None);
        }
        let devices = read(&path)?;
        Ok(Some(Self { path, devices }))
    }

    /// Removes the links, restores the devices, and removes the record.
    ///
    /// # Errors
    /// When that fails for a device; then the record stays.
    pub(crate) fn undo(&self, kernel: &mut impl LinkKernel) -> io::Result<()> {
        undo(kernel, &self.devices)?;
        self.remove();
        Ok(())
    }

    fn remove(&self) {
        // If it stays, the next run finds nothing to undo.
        let _ = fs::remove_file(&self.path);
    }
}

/// Tries again to remove this process's own links in the network namespace of this thread.
///
/// # Errors
/// When they still cannot be removed.
pub(crate) fn undo_own() -> io::Result<()> {
    match LinkRecord::own(&std::env::temp_dir())? {
        Some(record) => record.undo(&mut Route::open()?),
        None => Ok(()),
    }
}

/// Removes links that killed agents have left in the network namespace of this thread. Returns the
/// records of what it has removed.
pub(crate) fn sweep() -> Vec<PathBuf> {
    match Route::open() {
        Ok(mut route) => sweep_in(&std::env::temp_dir(), &mut route),
        // Without rtnetlink there are no links.
        Err(_) => Vec::new(),
    }
}

fn sweep_in(folder: &Path, kernel: &mut impl LinkKernel) -> Vec<PathBuf> {
    let Ok(here) = network() else {
        return Vec::new();
    };
    let mut removed = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(of) = network_of_the_dead(&name.to_string_lossy()) else {
            continue;
        };
        let path = entry.path();
        if !is_own_file(&path) {
            continue;
        }
        let is_undone = match of == here {
            true => read(&path).is_ok_and(|devices| undo(kernel, &devices).is_ok()),
            // With the namespace, its devices are gone too.
            false => !exists(of),
        };
        if is_undone && fs::remove_file(&path).is_ok() {
            removed.push(path);
        }
    }
    removed
}

/// The network namespace in the name of a record whose owner is known to be dead.
fn network_of_the_dead(name: &str) -> Option<u64> {
    let rest = name.strip_prefix(PREFIX)?;
    let (_, network) = rest.split_once('-')?;
    let is_dead = Owner::read(rest)?.is_dead();
    u64::from_str_radix(network, 16).ok().filter(|_| is_dead)
}

/// The path of this process's record for the network namespace of this thread.
fn own_path(folder: &Path) -> io::Result<PathBuf> {
    let name = format!("{PREFIX}{}-{:x}", Owner::me().mark(), network()?);
    Ok(folder.join(name))
}

/// Whether it is a file of this user. In a world-writable folder a name proves nothing.
fn is_own_file(path: &Path) -> bool {
    let (user, _) = net::namespace::user_and_group();
    fs::symlink_metadata(path).is_ok_and(|it| it.is_file() && it.uid() == user)
}

/// What a record says; nothing if it was cut off, as then nothing was changed.
fn read(path: &Path) -> io::Result<Vec<LinkedDevice>> {
    match serde_json::from_slice(&fs::read(path)?) {
        Err(error) if error.is_eof() => Ok(Vec::new()),
        other => Ok(other?),
    }
}

/// The inode of this thread's network namespace.
fn network() -> io::Result<u64> {
    fs::metadata("/proc/thread-self/ns/net").map(|file| file.ino())
}

/// Whether a process is in a network namespace, or it has a name.
fn exists(network: u64) -> bool {
    let files = |folder: &str| fs::read_dir(folder).into_iter().flatten().flatten();
    let of_processes = files("/proc").map(|entry| entry.path().join("ns/net"));
    let named = files(NAMESPACES).map(|entry| entry.path());
    let mut all = of_processes.chain(named);
    all.any(|path| fs::metadata(path).is_ok_and(|file| file.ino() == network))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::fixtures::TemporaryFolder;
    use crate::links::kernel::ROOT_HANDLE;
    use crate::links::peers::tests::SharedKernel;

    fn record_in(folder: &TemporaryFolder, owner: Owner, network: u64) -> PathBuf {
        let name = format!("{PREFIX}{}-{network:x}", owner.mark());
        let path = folder.0.join(name);
        fs::write(&path, r#"[{"name":"eth0","gso_max_segs":65535}]"#).unwrap();
        path
    }

    #[test]
    fn links_of_a_killed_agent_are_removed_in_their_network_and_those_of_a_living_one_stay() {
        let folder = TemporaryFolder::new();
        let (me, dead) = (Owner::me(), Owner::me().dead());
        let here = network().unwrap();
        // The first process's network exists; no inode is 1.
        let other = fs::metadata("/proc/1/ns/net").map_or(here, |it| it.ino());
        let mut kernel = SharedKernel::default();
        kernel.borrow_mut().roots.insert(2, ROOT_HANDLE);
        if let Some(device) = kernel.borrow_mut().devices.get_mut(&2) {
            device.gso_max_segs = 1;
        }
        let living = record_in(&folder, me, here);
        assert_eq!(sweep_in(&folder.0, &mut kernel), [] as [PathBuf; 0]);
        assert_eq!(kernel.borrow().roots.get(&2), Some(&ROOT_HANDLE));
        fs::remove_file(living).unwrap();
        let (left, gone) = (record_in(&folder, dead, here), record_in(&folder, dead, 1));
        let mut expected = vec![left, gone];
        if other != here {
            record_in(&folder, dead, other);
        }
        let mut removed = sweep_in(&folder.0, &mut kernel);
        removed.sort();
        expected.sort();
        assert_eq!(removed, expected);
        assert_eq!(kernel.borrow().roots.get(&2), None);
        assert_eq!(kernel.borrow().devices[&2].gso_max_segs, 65_535);
        assert_eq!(folder.count(), usize::from(other != here));
    }

    fn device() -> LinkedDevice {
        LinkedDevice {
            name: "eth0".to_owned(),
            gso_max_segs: 7,
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let folder = TemporaryFolder::new();
        let record = LinkRecord::write(&folder.0, vec![device()]).unwrap();
        assert_eq!(read(&record.path).unwrap(), [device()]);
        let name = record.path.file_name().unwrap().to_string_lossy();
        // Its owner lives.
        assert_eq!(network_of_the_dead(&name), None);
        assert!(LinkRecord::write(&folder.0, vec![device()]).is_err());
        // One that was cut off says nothing; of one that is spoilt it is not known what it said.
        fs::write(&record.path, "[{\"name\":").unwrap();
        assert_eq!(read(&record.path).unwrap(), []);
        fs::write(&record.path, "[{}]").unwrap();
        assert!(read(&record.path).is_err());
    }

    #[test]
    fn a_record_stays_until_its_links_are_removed() {
        let folder = TemporaryFolder::new();
        let own = || LinkRecord::own(&folder.0).unwrap();
        assert!(own().is_none());
        LinkRecord::write(&folder.0, vec![device()]).unwrap();
        let mut kernel = SharedKernel::default();
        kernel.borrow_mut().roots.insert(2, ROOT_HANDLE);
        kernel.borrow_mut().fails = Some(("remove", 16));
        let failed = own().unwrap().undo(&mut kernel);
        assert_eq!(failed.unwrap_err().raw_os_error(), Some(16));
        kernel.borrow_mut().fails = None;
        own().unwrap().undo(&mut kernel).unwrap();
        assert_eq!(kernel.borrow().roots.get(&2), None);
        assert!(own().is_none());
    }

    #[test]
    fn what_lies_there_under_the_name_of_a_record_is_not_read() {
        let folder = TemporaryFolder::new();
        let target = folder.0.join("elsewhere");
        fs::write(&target, "[]").unwrap();
        std::os::unix::fs::symlink(&target, own_path(&folder.0).unwrap()).unwrap();
        assert!(LinkRecord::own(&folder.0).unwrap().is_none());
    }
}
