//! Why a package could not be installed.

use std::path::PathBuf;

/// Why a package could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error(
        "no folder for the cache is known, as neither XDG_CACHE_HOME nor HOME has an absolute path"
    )]
    NoCache,
    #[error("{package} needs {client}, which does not run: {why}\ninstall it with: {from}")]
    NoClient {
        package: String,
        client: &'static str,
        from: &'static str,
        why: String,
    },
    #[error("{package}: {registry} cannot be reached: `{command}` failed ({status}):\n{lines}")]
    Unreachable {
        package: String,
        registry: &'static str,
        command: String,
        status: String,
        lines: String,
    },
    #[error("{package}: `{command}` failed ({status}):\n{lines}")]
    Failed {
        package: String,
        command: String,
        status: String,
        lines: String,
    },
    #[error("{package}: expected a program `{program}` in it; found none")]
    NoProgram { package: String, program: String },
    #[error("{path}: {why}", path = path.display())]
    Cache { path: PathBuf, why: String },
}
