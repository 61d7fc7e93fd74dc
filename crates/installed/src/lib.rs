//! Which programs and files this machine has, and the command that installs what is missing.
//!
//! Programs come from Debian's packages, or from a cache of the user's that `weigh install` fills.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod kind;
mod package;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

pub use kind::{KINDS, PackageKind};
pub use package::{PACKAGES, PinnedPackage, Record, is_version_of, package_cache, user_cache};

/// The version of a program that is installed outside the cache of `weigh install`, whatever it is.
pub const DEBIAN: &str = "debian";

/// Debian's folders for servers, searched after PATH, which lacks them for an ordinary user.
const SERVER_DIRS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// A file that a server or driver needs, and the package that brings it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Its path.
    pub file: String,
    /// The Debian package that contains it.
    pub package: Option<String>,
}

/// The packages that bring what a recipe or driver needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packages {
    /// Debian packages.
    pub debian: Vec<String>,
    /// Packages of registries, and folders of sources, each with its program in one version.
    pub pinned: Vec<PinnedPackage>,
}

impl Packages {
    /// The version that is used unless another is named: what is installed if Debian has a package,
    /// or else the first of a registry.
    pub fn usual_version(&self) -> Option<&str> {
        let first = || self.pinned.iter().find(|one| !one.kind.is_source);
        match self.debian.is_empty() {
            true => first().map(|one| one.version.as_str()),
            false => Some(DEBIAN),
        }
    }

    /// The pinned package with this version, or with the usual one. Sources beside a recipe are what it
    /// runs, where it has no other packages than Debian's, which may be those that building needs.
    pub fn pinned(&self, version: Option<&str>) -> Option<&PinnedPackage> {
        match version {
            None if self.debian.is_empty() || !self.has_versions() => self.pinned.first(),
            None => None,
            Some(version) => self.pinned.iter().find(|one| one.is_version(version)),
        }
    }

    /// Whether a version can be chosen.
    pub fn has_versions(&self) -> bool {
        self.pinned.iter().any(|one| !one.kind.is_source)
    }
}

/// Which programs and files were found on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Availability {
    /// Programs that were found: the recipe's name for each, and its path.
    pub programs: BTreeMap<String, PathBuf>,
    /// Programs that were not found, by the first name that was searched for.
    pub missing_programs: Vec<String>,
    /// Files that were not found.
    pub missing_files: Vec<PathBuf>,
    /// The command that installs what is missing; `None` when nothing is missing or the recipe
    /// names no package.
    pub install_command: Option<String>,
    /// Where to get what is missing, where no package is known to have it.
    pub homepage: Option<String>,
    /// Whether all programs were found in the cache of `weigh install`.
    pub is_pinned: bool,
    /// Which version is installed instead of the wanted one, as a sentence.
    pub other_version: Option<String>,
}

impl Availability {
    /// Whether nothing is missing.
    pub fn is_complete(&self) -> bool {
        self.missing_programs.is_empty()
            && self.missing_files.is_empty()
            && self.other_version.is_none()
    }

    /// Notes that a program has another version than the wanted one; `found` is `None` where it does
    /// not tell.
    pub fn refuse_version(&mut self, wanted: &str, found: Option<&str>) {
        let name = self.programs.keys().next().map_or("", String::as_str);
        let found = found.unwrap_or("of an unknown version");
        self.other_version = Some(format!("{name} {found} is installed, not {wanted}"));
    }

    /// What is missing and how to get it, such as ``lighttpd is not installed: `apt-get …` ``;
    /// `None` when nothing is missing.
    pub fn sentence(&self) -> Option<String> {
        if self.is_complete() {
            return None;
        }
        let remedy = match (&self.install_command, &self.homepage) {
            (Some(command), _) => format!(": `{command}`"),
            (None, Some(homepage)) => format!("; no package is known: see {homepage}"),
            (None, None) => String::new(),
        };
        if let Some(other) = &self.other_version {
            return Some(format!("{other}{remedy}"));
        }
        let mut missing = self.missing_programs.clone();
        missing.extend(
            self.missing_files
                .iter()
                .map(|file| file.display().to_string()),
        );
        let verb = if missing.len() == 1 { "is" } else { "are" };
        Some(format!(
            "{} {verb} not installed{remedy}",
            missing.join(", ")
        ))
    }
}

/// Looks for programs in the cache of `weigh install`, in PATH and where Debian keeps servers, and
/// for files. Of the cache only the package of this version counts, or of the usual one. What is found
/// outside the cache may have another version.
pub fn look(
    programs: &[(String, Vec<String>)],
    needs: &[Need],
    packages: &Packages,
    version: Option<&str>,
    homepage: Option<&str>,
) -> Availability {
    let cache = package_cache();
    look_in(
        cache.as_deref(),
        programs,
        needs,
        packages,
        version,
        homepage,
    )
}

/// [`look`] with the folder of packages.
fn look_in(
    cache: Option<&Path>,
    programs: &[(String, Vec<String>)],
    needs: &[Need],
    packages: &Packages,
    version: Option<&str>,
    homepage: Option<&str>,
) -> Availability {
    let pinned = packages.pinned(version);
    let mut dirs: Vec<PathBuf> = std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).collect())
        .unwrap_or_default();
    dirs.extend(SERVER_DIRS.iter().map(PathBuf::from));
    let mut found = Availability {
        is_pinned: !programs.is_empty(),
        ..Availability::default()
    };
    for (name, names) in programs {
        let cached = pinned.and_then(|package| package.program_in(cache?, names));
        found.is_pinned &= cached.is_some();
        let path = cached.or_else(|| names.iter().find_map(|program| find(program, &dirs)));
        match path {
            Some(path) => {
                found.programs.insert(name.clone(), path);
            }
            None => found
                .missing_programs
                .push(names.first().unwrap_or(name).clone()),
        }
    }
    let missing: Vec<_> = needs
        .iter()
        .filter(|need| !Path::new(&need.file).exists())
        .collect();
    found.missing_files = missing
        .iter()
        .map(|need| PathBuf::from(&need.file))
        .collect();
    // A missing program may be in any of the packages; a missing file names its package.
    let mut packages: Vec<&str> = if found.missing_programs.is_empty() {
        missing
            .iter()
            .filter_map(|need| need.package.as_deref())
            .collect()
    } else {
        packages.debian.iter().map(String::as_str).collect()
    };
    packages.sort_unstable();
    packages.dedup();
    if let Some(package) = pinned.filter(|_| !found.missing_programs.is_empty()) {
        found.install_command = Some(package.install.clone());
    } else if !found.is_complete() && !packages.is_empty() {
        found.install_command = Some(format!(
            "apt-get install --no-install-recommends {}",
            packages.join(" ")
        ));
    } else if !found.is_complete() {
        found.homepage = homepage.map(str::to_owned);
    }
    found
}

fn find(program: &str, dirs: &[PathBuf]) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| is_executable(path));
    }
    dirs.iter()
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(program))
        .find(|path| is_executable(path))
}

/// Whether a path is that of a file that somebody may execute.
pub fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path)
        .is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

/// Whether PATH has a program of this name. Also true if PATH is not set or has a relative folder, since
/// that cannot be checked.
pub fn is_in_path(program: &str) -> bool {
    let has = |dir: PathBuf| !dir.is_absolute() || is_executable(&dir.join(program));
    std::env::var_os("PATH").is_none_or(|path| std::env::split_paths(&path).any(has))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_version_is_that_of_the_cache_if_it_has_all_programs() {
        let cache = std::env::temp_dir().join(format!("weigh-look-{}", std::process::id()));
        let kind = PackageKind::of_registry("pip").unwrap();
        let package = PinnedPackage::parse(kind, "tiny-bin==1.2", "weigh install tiny").unwrap();
        let folder = package.programs(&cache);
        fs::create_dir_all(&folder).unwrap();
        let program = folder.join("tiny");
        fs::write(&program, "12345").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let record = Record {
            package_sha256: String::new(),
            program_sha256: String::new(),
            bytes: 5,
            recipe: None,
        };
        record.write(&package.folder(&cache)).unwrap();
        let packages = Packages {
            debian: Vec::new(),
            pinned: vec![package],
        };
        let found = |names: &[&str]| {
            let one = |name: &&str| ((*name).to_owned(), vec![(*name).to_owned()]);
            let programs: Vec<(String, Vec<String>)> = names.iter().map(one).collect();
            look_in(Some(&cache), &programs, &[], &packages, None, None)
        };
        assert!(found(&["tiny"]).is_pinned);
        // The second is found elsewhere, in whatever version.
        for names in [["tiny", "sh"], ["sh", "tiny"]] {
            let found = found(&names);
            assert!(found.is_complete() && !found.is_pinned, "{found:?}");
        }
        assert!(!found(&[]).is_pinned);
        fs::remove_dir_all(&cache).unwrap();
    }
}
