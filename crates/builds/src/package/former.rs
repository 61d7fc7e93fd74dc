//! What earlier installations left in the cache.

use std::fs;
use std::path::Path;

use installed::Record;

use super::{BEGUN, Installation};

impl Installation {
    /// Removes what was built from other sources of the same recipe. Recipes of one name in two
    /// projects are not the same.
    pub(super) fn remove_former_builds(&self) {
        let folder = self.folder();
        let (Some(parent), true) = (folder.parent(), self.package.kind.is_source) else {
            return;
        };
        let version = self.package.version.as_str();
        let own = folder.file_name().and_then(|name| name.to_str());
        let Some(prefix) = own.and_then(|name| name.strip_suffix(version)) else {
            return;
        };
        let recipe = self.sources.recorded();
        for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let other = name.to_str().and_then(|name| name.strip_prefix(prefix));
            let is_build = |other: &str| {
                other.len() == version.len() && other.chars().all(|c| c.is_ascii_hexdigit())
            };
            let is_other = other.is_some_and(|other| other != version && is_build(other));
            let is_its = || Record::read(&entry.path())?.recipe.map(|of| of == recipe);
            if is_other && is_its() == Some(true) {
                // One that stays is used by nobody, and removed the next time.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    /// Removes folders that processes began to fill which have ended, as by Ctrl-C.
    pub(super) fn remove_cut_off(&self) {
        let folder = self.folder();
        let entries = folder.parent().map(fs::read_dir);
        for entry in entries.into_iter().flatten().flatten().flatten() {
            let name = entry.file_name();
            let begun = name.to_str().and_then(|name| name.rsplit_once(BEGUN));
            let process = begun.and_then(|(_, process)| process.parse::<u32>().ok());
            if process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists()) {
                // One that stays does not hinder this installation.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}
