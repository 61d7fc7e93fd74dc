//! The cache of checkouts and builds.
//!
//! ```text
//! CACHEDIR.TAG
//! repositories/KEY/    a bare repository for each of the user's repositories
//! builds/KEY/          a checkout, built
//! builds/KEY.json      exists once the build is complete; rewritten at each use
//! builds/KEY.log       the output of the build
//! builds/KEY.lock      locked exclusively during a build or removal, shared during use
//! packages/            of `weigh install`, not managed here
//! ```
//!
//! All keys have the same length, and so have the paths of two revisions. The length of a path
//! shifts the environment and the stack, which can change speed by more than a commit does.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use net::os;
use sha2::{Digest as _, Sha256};

use crate::{BuildError, usual_cache};

/// How many builds are kept.
const BUILDS_MAX: usize = 20;
const TAG_FILE: &str = "CACHEDIR.TAG";
const TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n# Checkouts and builds of weigh. \
                   `weigh compare --clean` removes them.\n";
const BUILDS: &str = "builds";
const REPOSITORIES: &str = "repositories";
const POLL: Duration = Duration::from_millis(50);

/// A folder with checkouts and builds.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// Opens the cache; creates it if it does not exist.
    ///
    /// # Errors
    /// When the folder is not a cache, belongs to another user, or could be replaced by other
    /// users.
    pub fn open(dir: Option<&Path>) -> Result<Self, BuildError> {
        let root = match dir {
            Some(dir) => dir.to_owned(),
            None => usual_cache()?,
        };
        let error = |why: String| BuildError::Cache {
            path: root.clone(),
            why,
        };
        let system = |e: io::Error| error(e.to_string());
        let absolute = std::path::absolute(&root).map_err(system)?;
        if os::is_root() {
            trusted_parents(&absolute).map_err(error)?;
        }
        make_folder(&absolute).map_err(system)?;
        let root = fs::canonicalize(&absolute).map_err(system)?;
        if os::is_root() {
            trusted_parents(&root).map_err(error)?;
        }
        let about = fs::metadata(&root).map_err(system)?;
        if about.uid() != os::user_id() {
            return Err(error("it belongs to another user".to_owned()));
        }
        if about.mode() & 0o022 != 0 {
            return Err(error("other users may write into it".to_owned()));
        }
        let tag = root.join(TAG_FILE);
        // Looked at before the tag, which another run may be writing at this moment.
        let present = names(&root);
        if !tag.exists() {
            if present.iter().any(|name| name != installed::PACKAGES) {
                let why =
                    "it has other files; expected an empty folder, or one that does not exist";
                return Err(error(why.to_owned()));
            }
            fs::write(&tag, TAG).map_err(system)?;
        }
        for inner in [BUILDS, REPOSITORIES] {
            make_folder(&root.join(inner)).map_err(system)?;
        }
        Ok(Self { root })
    }

    /// The cache's folder.
    pub fn path(&self) -> &Path {
        &self.root
    }

    pub(crate) fn error(&self, why: impl ToString) -> BuildError {
        BuildError::Cache {
            path: self.root.clone(),
            why: why.to_string(),
        }
    }

    /// The path of a build's checkout.
    pub(crate) fn build(&self, key: &str) -> PathBuf {
        self.root.join(BUILDS).join(key)
    }

    pub(crate) fn build_file(&self, key: &str, kind: &str) -> PathBuf {
        self.root.join(BUILDS).join(format!("{key}.{kind}"))
    }

    pub(crate) fn repository(&self, key: &str) -> PathBuf {
        self.root.join(REPOSITORIES).join(key)
    }

    pub(crate) fn repository_lock(&self, key: &str) -> PathBuf {
        self.root.join(REPOSITORIES).join(format!("{key}.lock"))
    }

    /// Removes the least recently used builds beyond [`BUILDS_MAX`]. Builds in use stay.
    pub(crate) fn bound(&self) {
        let mut keys = self.keys();
        keys.sort_by_key(|(_, used)| std::cmp::Reverse(*used));
        for (key, _) in keys.into_iter().skip(BUILDS_MAX) {
            self.remove(&key);
        }
    }

    /// Removes all builds that are not in use. Returns how many it removed, and how many stay.
    pub fn clean(&self) -> (usize, usize) {
        let keys = self.keys();
        let count = keys.len();
        let removed = keys.iter().filter(|(key, _)| self.remove(key)).count();
        if removed == count {
            for name in names(&self.root.join(REPOSITORIES)) {
                let path = self.repository(&name);
                let Some(key) = name.strip_suffix(".lock") else {
                    continue;
                };
                if let Ok(Some(_lock)) = try_lock(&path, Hold::Alone) {
                    let _ = fs::remove_dir_all(self.repository(key));
                    let _ = fs::remove_file(&path);
                }
            }
        }
        (removed, count - removed)
    }

    /// The keys of builds, including incomplete ones, and when each was last used.
    fn keys(&self) -> Vec<(String, SystemTime)> {
        let names = names(&self.root.join(BUILDS));
        let keys = names.iter().filter_map(|name| name.strip_suffix(".lock"));
        let used = |key: &str| {
            let marked = fs::metadata(self.build_file(key, "json"));
            marked
                .or_else(|_| fs::metadata(self.build_file(key, "lock")))
                .and_then(|about| about.modified())
                .unwrap_or(SystemTime::UNIX_EPOCH)
        };
        keys.map(|key| (key.to_owned(), used(key))).collect()
    }

    fn remove(&self, key: &str) -> bool {
        let path = self.build_file(key, "lock");
        let Ok(Some(_lock)) = try_lock(&path, Hold::Alone) else {
            return false;
        };
        // The marker goes first, so that a half-removed build never counts as complete.
        let _ = fs::remove_file(self.build_file(key, "json"));
        let removed = match fs::remove_dir_all(self.build(key)) {
            Err(e) => e.kind() == io::ErrorKind::NotFound,
            Ok(()) => true,
        };
        if removed {
            let _ = fs::remove_file(self.build_file(key, "log"));
            let _ = fs::remove_file(&path);
        }
        removed
    }
}

/// The key of these parts. All keys have the same length.
pub(crate) fn key(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    let digest = hash.finalize();
    digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// By any number of users.
    Shared,
    /// By the one process that builds or removes.
    Alone,
}

/// Waits for a lock, which is held until the file is dropped.
pub(crate) fn lock(
    path: &Path,
    hold: Hold,
    stop: &AtomicBool,
    mut waiting: impl FnMut(),
) -> Result<File, BuildError> {
    let error = |e: io::Error| BuildError::Cache {
        path: path.to_owned(),
        why: e.to_string(),
    };
    let mut told = false;
    loop {
        if let Some(file) = try_lock(path, hold).map_err(error)? {
            return Ok(file);
        }
        if !told {
            told = true;
            waiting();
        }
        if stop.load(Ordering::Relaxed) {
            return Err(BuildError::Stopped);
        }
        sleep(POLL);
    }
}

/// Tries to take a lock; `None` if another process holds it.
fn try_lock(path: &Path, hold: Hold) -> io::Result<Option<File>> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)?;
    let locked = match hold {
        Hold::Shared => file.try_lock_shared(),
        Hold::Alone => file.try_lock(),
    };
    match locked {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => return Ok(None),
        Err(fs::TryLockError::Error(e)) => return Err(e),
    }
    // Another process may have removed the file meanwhile; then this lock protects nothing.
    let is_same = fs::symlink_metadata(path).is_ok_and(|there| {
        file.metadata()
            .is_ok_and(|own| (own.dev(), own.ino()) == (there.dev(), there.ino()))
    });
    Ok(is_same.then_some(file))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Checks that only root and this user can change where a path leads, since root will write there.
fn trusted_parents(path: &Path) -> Result<(), String> {
    let me = os::user_id();
    for parent in path.ancestors() {
        let Ok(about) = fs::symlink_metadata(parent) else {
            continue;
        };
        if ![0, me].contains(&about.uid()) {
            return Err(format!(
                "{} belongs to another user, who could redirect what root writes; give a folder of \
                 root's with --cache DIR",
                parent.display()
            ));
        }
        // In a sticky folder, nobody can rename what belongs to another user.
        let is_open = about.mode() & 0o022 != 0 && about.mode() & 0o1000 == 0;
        if is_open && about.is_dir() && parent != path {
            return Err(format!("other users may write into {}", parent.display()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn place() -> PathBuf {
        std::env::temp_dir().join(format!("weigh-cache-{:016x}", fastrand::u64(..)))
    }

    #[test]
    fn runs_that_open_a_new_cache_at_once_all_may_use_it() {
        for _ in 0..200 {
            let dir = place();
            std::thread::scope(|scope| {
                let open = || Cache::open(Some(&dir)).map(drop).map_err(|e| e.to_string());
                let runs = [(); 8].map(|()| scope.spawn(open));
                for run in runs {
                    assert_eq!(run.join().unwrap(), Ok(()));
                }
            });
            fs::remove_dir_all(dir).unwrap();
        }
    }

    #[test]
    fn a_folder_with_other_files_is_no_cache() {
        let dir = place();
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("thesis.tex"), "…").unwrap();
        let refused = Cache::open(Some(&dir)).unwrap_err().to_string();
        assert!(refused.contains("other files"), "{refused}");
        fs::remove_file(dir.join("thesis.tex")).unwrap();
        Cache::open(Some(&dir)).unwrap();
        Cache::open(Some(&dir)).unwrap();
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn others_cannot_write_into_the_cache() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = place();
        let cache = Cache::open(Some(&dir)).unwrap();
        assert_eq!(fs::metadata(cache.path()).unwrap().mode() & 0o777, 0o700);
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
        let refused = Cache::open(Some(&dir)).unwrap_err().to_string();
        assert!(refused.contains("other users"), "{refused}");
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn root_follows_no_link_of_another_user() {
        if !os::is_root() {
            return;
        }
        let (dir, link) = (place(), place());
        fs::create_dir(&dir).unwrap();
        std::os::unix::fs::symlink(&dir, &link).unwrap();
        Cache::open(Some(&link.join("a"))).unwrap();
        std::os::unix::fs::lchown(&link, Some(12_345), Some(12_345)).unwrap();
        let refused = Cache::open(Some(&link.join("b"))).unwrap_err().to_string();
        assert!(refused.contains("another user"), "{refused}");
        assert!(!dir.join("b").exists());
        fs::remove_file(link).unwrap();
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn what_is_in_use_stays_and_the_rest_is_bounded() {
        let dir = place();
        let cache = Cache::open(Some(&dir)).unwrap();
        let stop = AtomicBool::new(false);
        let mut held = Vec::new();
        for number in 0..BUILDS_MAX + 3 {
            let name = number.to_string();
            let key = key(&[&name]);
            let path = cache.build_file(&key, "lock");
            let lock = lock(&path, Hold::Alone, &stop, || {}).unwrap();
            fs::create_dir(cache.build(&key)).unwrap();
            let marker = File::create(cache.build_file(&key, "json")).unwrap();
            let used = SystemTime::UNIX_EPOCH + Duration::from_secs(number as u64);
            marker.set_modified(used).unwrap();
            if number == 0 {
                lock.lock_shared().unwrap();
                held.push((key, lock));
            }
        }
        // A process that another test starts holds every lock between its fork and its exec.
        let until = |count: usize, removes: &dyn Fn()| {
            let end = Instant::now() + Duration::from_secs(30);
            while cache.keys().len() > count && Instant::now() < end {
                removes();
            }
            assert_eq!(cache.keys().len(), count);
        };
        // The oldest is in use.
        until(BUILDS_MAX + 1, &|| cache.bound());
        assert!(cache.build(&held[0].0).exists());
        assert!(!cache.build(&key(&["1"])).exists() && cache.build(&key(&["3"])).exists());
        until(1, &|| _ = cache.clean());
        assert_eq!(cache.clean(), (0, 1));
        held.clear();
        until(0, &|| _ = cache.clean());
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn keys_are_of_one_length_and_their_parts_do_not_run_together() {
        assert_eq!(key(&["a"]).len(), key(&["a much longer one", "x"]).len());
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
    }
}
