//! Removes what killed programs have left: folders of agents, control groups, and links on the
//! devices of a machine. Their names, or those of their records, identify their owners, and the next
//! run removes those of dead ones.
//!
//! Namespaces and devices need no removal: they are unnamed and go with their processes.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::kernel::cgroup;
use crate::kernel::cgroup::hierarchy::{Hierarchy, is_of_a_host};
use crate::links::record;
use crate::serving::servers::memory::IN_MEMORY;

/// Agents notice within a second that their program is dead, and take up to another to clean up.
const TIDYING: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(5);

pub use crate::kernel::cgroup::hierarchy::HOST_PREFIX;
pub use crate::kernel::cgroup::kill_and_remove;
pub use crate::kernel::owner::Owner;
pub(crate) use crate::serving::servers::memory::path_next_to;

/// Waits until the agent of a folder has ended, at most for a time that it needs to notice that it
/// is alone. Returns whether it has ended: an agent that this process cannot see has by then.
pub fn await_end(folder: &str, within: Duration, stop: &AtomicBool) -> bool {
    let owner = Owner::of_name(folder);
    let is_here = owner.is_some_and(|it| it.is_here());
    let end = Instant::now() + within + TIDYING;
    while Instant::now() < end && !stop.load(Ordering::Relaxed) {
        if is_here && owner.is_some_and(|owner| owner.is_dead()) {
            return true;
        }
        sleep(POLL);
    }
    !is_here
}

/// Removes what dead programs have left on this machine: kills what still runs in their control
/// groups, and removes those groups, the agents' folders, and links in this network namespace. Returns
/// what it has removed: paths, of links that of their record.
///
/// Agents of a program that was killed just now are still cleaning up in its groups. If they were
/// killed too, their folders would stay, perhaps in another mount namespace. So they get time to
/// end.
pub fn sweep() -> Vec<PathBuf> {
    let mut removed = Vec::new();
    let places = Hierarchy::all().flat_map(Hierarchy::places);
    // Listed once: groups of programs that are killed during the wait are left to the next sweep.
    let groups: Vec<PathBuf> = places.flat_map(|place| of_the_dead(&place)).collect();
    let is_at_work =
        |group: &PathBuf| is_of_a_host(group) && !cgroup::processes_in(group).is_empty();
    let end = Instant::now() + TIDYING;
    while groups.iter().any(is_at_work) && Instant::now() < end {
        sleep(POLL);
    }
    for path in groups {
        kill_and_remove(&path);
        if !path.exists() {
            removed.push(path);
        }
    }
    let (user, _) = net::namespace::user_and_group();
    let places = [std::env::temp_dir(), PathBuf::from(IN_MEMORY)];
    for path in places.iter().flat_map(|place| of_the_dead(place)) {
        // In a world-writable folder a name proves nothing.
        let own = fs::symlink_metadata(&path).is_ok_and(|it| it.is_dir() && it.uid() == user);
        if own && net::folder::remove_all(&path).is_ok() {
            removed.push(path);
        }
    }
    removed.extend(record::sweep());
    removed
}

fn of_the_dead(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| {
            Owner::of_name(&entry.file_name().to_string_lossy()).is_some_and(|o| o.is_dead())
        })
        .map(|entry| entry.path())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sweep of one test removes what another has left.
    static SWEEPS: std::sync::Mutex<()> = std::sync::Mutex::new(());

    #[test]
    fn folders_of_the_dead_are_removed_and_no_others() {
        let _alone = SWEEPS.lock();
        let (me, dead) = (Owner::me(), Owner::me().dead());
        let folder = |place: &Path, owner: Owner| {
            let path = place.join(format!("weigh-{}-swept", owner.mark()));
            fs::create_dir_all(path.join("server/www")).unwrap();
            path
        };
        let places = [std::env::temp_dir(), PathBuf::from(IN_MEMORY)];
        let living = places.each_ref().map(|place| folder(place, me));
        let left = places.each_ref().map(|place| folder(place, dead));
        let removed = sweep();
        assert!(
            left.iter()
                .all(|path| removed.contains(path) && !path.exists())
        );
        for path in living {
            let _ = fs::remove_dir_all(path);
        }
    }

    #[test]
    fn what_tidies_up_in_a_group_of_the_dead_has_time_to_end_and_no_more() {
        let _alone = SWEEPS.lock();
        let dead = Owner::me().dead();
        let base = crate::kernel::cgroup::cpu_quota::v1().unwrap_or(Path::new("/sys/fs/cgroup"));
        let tidy = base.join(format!("{HOST_PREFIX}{}-0-tidy", dead.mark()));
        if fs::create_dir(&tidy).is_err() {
            // Not root.
            return;
        }
        let child = |words: &str| {
            let mut command = std::process::Command::new("sh");
            let entrance = fs::File::options()
                .write(true)
                .open(tidy.join("cgroup.procs"));
            let setup = net::os::ChildSetup {
                confine: vec![entrance.unwrap()],
                ..Default::default()
            };
            command.args(["-c", words]);
            net::os::set_up_child(&mut command, setup);
            command.spawn().unwrap()
        };
        let (mut one, mut other) = (child("sleep 0.5; exit 7"), child("exec sleep 60"));
        sweep();
        assert_eq!(one.wait().unwrap().code(), Some(7));
        assert_eq!(other.wait().unwrap().code(), None);
        assert!(!tidy.exists());
    }
}
