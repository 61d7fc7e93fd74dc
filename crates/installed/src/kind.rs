//! The kinds of packages that `weigh install` installs, a row each.
//!
//! Each is installed by the client of its registry, which checks what it downloads against the
//! checksums of the registry. These names in braces are replaced in words of commands:
//!
//! | name | what it is |
//! |---|---|
//! | `{name}`, `{version}` | those of the package |
//! | `{files}` | the folder that the package is put into |
//! | `{download}` | a folder that is removed afterwards |
//! | `{file}` | the one file in `{download}` |
//! | `{source}` | the folder of the sources, for a program that comes with a recipe |

#[derive(Debug, PartialEq, Eq)]
pub struct PackageKind {
    /// Its key in `[packages]`.
    pub key: &'static str,
    /// Its folder in the cache.
    pub folder: &'static str,
    /// Where packages come from, for people.
    pub registry: &'static str,
    /// Whether the package is a folder of sources beside the recipe.
    pub is_source: bool,
    /// The program that installs, and how that is had.
    pub client: &'static str,
    pub client_from: &'static str,
    /// The commands that install a package.
    pub steps: &'static [&'static [&'static str]],
    /// Variables that are set for them.
    pub env: &'static [(&'static str, &'static str)],
    /// The folder of programs that need the files beside them, below `{files}`. Without it the
    /// program is a file in ELF format, anywhere in the package, that can stand alone.
    pub programs: Option<&'static str>,
    /// What the commands print if the client is not there, though its interpreter is.
    pub no_client: &'static str,
    /// What they print if the registry cannot be reached.
    pub unreachable: &'static [&'static str],
    /// What of the package is run by them, if anything.
    pub runs: Option<&'static str>,
    /// Whether names have several parts, with a slash between.
    pub long_names: bool,
}

const PIP: [&str; 3] = ["python3", "-m", "pip"];
const BUILD_SCRIPTS: Option<&str> = Some("runs the build scripts of what it builds, as you");
const CARGO_UNREACHABLE: &[&str] = &[
    "Could not resolve host",
    "Couldn't resolve host",
    "Failed to connect",
    "failed to connect",
    "Couldn't connect to server",
    "you may want to run with network access",
];

/// A package of crates.io; sources in a recipe are built in the same way.
const CARGO: PackageKind = PackageKind {
    key: "cargo",
    folder: "cargo",
    registry: "crates.io",
    is_source: false,
    client: "cargo",
    client_from: "rustup, or apt-get install --no-install-recommends cargo",
    steps: &[&[
        "cargo",
        "install",
        "--locked",
        "--root",
        "{files}",
        "--target-dir",
        "{download}",
        "--version",
        "={version}",
        "{name}",
    ]],
    env: &[],
    programs: None,
    no_client: "rustup could not choose a version of cargo",
    unreachable: CARGO_UNREACHABLE,
    runs: BUILD_SCRIPTS,
    long_names: false,
};

/// All kinds. Where a recipe has packages of several, this is their order.
pub static KINDS: [PackageKind; 5] = [
    PackageKind {
        key: "pip",
        folder: "pip",
        registry: "PyPI",
        is_source: false,
        client: "python3 with pip",
        client_from: "apt-get install --no-install-recommends python3-pip",
        // The file is downloaded first, so that nothing but a wheel is taken.
        steps: &[
            &[
                PIP[0],
                PIP[1],
                PIP[2],
                "download",
                "--disable-pip-version-check",
                "--no-deps",
                "--quiet",
                "--only-binary=:all:",
                "--dest",
                "{download}",
                "{name}=={version}",
            ],
            &[
                PIP[0],
                PIP[1],
                PIP[2],
                "install",
                "--disable-pip-version-check",
                "--no-deps",
                "--quiet",
                "--no-index",
                "--no-compile",
                "--target",
                "{files}",
                "{file}",
            ],
        ],
        // pip complains of root, who installs into a folder of its own here.
        env: &[("PIP_ROOT_USER_ACTION", "ignore")],
        programs: None,
        no_client: "No module named pip",
        unreachable: &[
            "Failed to establish a new connection",
            "Temporary failure in name resolution",
            "Name or service not known",
            "Connection refused",
            "Network is unreachable",
        ],
        runs: None,
        long_names: false,
    },
    PackageKind {
        key: "npm",
        folder: "npm",
        registry: "npm's registry",
        is_source: false,
        client: "npm",
        client_from: "apt-get install --no-install-recommends npm",
        steps: &[&[
            "npm",
            "install",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--no-update-notifier",
            "--prefix",
            "{files}",
            "{name}@{version}",
        ]],
        env: &[],
        programs: Some("node_modules/.bin"),
        no_client: "Cannot find module 'npm",
        unreachable: &[
            "ENOTFOUND",
            "EAI_AGAIN",
            "ECONNREFUSED",
            "ETIMEDOUT",
            "ENETUNREACH",
        ],
        runs: None,
        long_names: true,
    },
    CARGO,
    PackageKind {
        folder: "source",
        registry: "its sources in the recipe, with what its Cargo.lock names of crates.io,",
        is_source: true,
        steps: &[&[
            "cargo",
            "install",
            "--locked",
            "--root",
            "{files}",
            "--target-dir",
            "{download}",
            "--path",
            "{source}",
        ]],
        ..CARGO
    },
    PackageKind {
        key: "go",
        folder: "go",
        registry: "Go's module proxy",
        is_source: false,
        client: "go",
        client_from: "apt-get install --no-install-recommends golang-go",
        steps: &[&["go", "install", "{name}@{version}"]],
        env: &[("GOBIN", "{files}/bin")],
        programs: None,
        no_client: "go: cannot find GOROOT",
        unreachable: &[
            "no such host",
            "connection refused",
            "network is unreachable",
            "i/o timeout",
            "Temporary failure in name resolution",
        ],
        runs: None,
        long_names: true,
    },
];

impl PackageKind {
    /// The kind of packages of a registry under this key.
    pub fn of_registry(key: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.key == key && !kind.is_source)
    }

    /// The kind of folders of sources under this key.
    pub fn of_sources(key: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.key == key && kind.is_source)
    }

    /// The kind with this folder in the cache.
    pub fn of_folder(folder: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.folder == folder)
    }

    /// The keys of `[packages]`, each once.
    pub fn keys() -> impl Iterator<Item = &'static str> {
        KINDS
            .iter()
            .filter(|kind| !kind.is_source)
            .map(|kind| kind.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_puts_its_package_where_it_is_looked_for() {
        for kind in &KINDS {
            let words = || kind.steps.iter().copied().flatten().copied();
            let values = kind.env.iter().map(|(_, value)| *value);
            let all: Vec<&str> = words().chain(values).collect();
            assert!(
                all.iter().any(|word| word.contains("{files}")),
                "{}",
                kind.folder
            );
            let is_pinned = all.iter().any(|word| word.contains("{version}"));
            assert_ne!(is_pinned, kind.is_source, "{}", kind.folder);
            assert_eq!(PackageKind::of_folder(kind.folder), Some(kind));
        }
        assert!(PackageKind::of_sources("cargo").is_some());
        assert!(PackageKind::of_sources("pip").is_none());
    }
}
