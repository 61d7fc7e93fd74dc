//! Prepares what the user's own servers need before a run: revisions of a git repository, checked
//! out and built in a cache, and container images.
//!
//! [`prepare`] does all this before anything is measured. It changes nothing in the user's
//! repository: checkouts are worktrees of a bare repository in the cache, which borrows the
//! user's objects.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod cache;
mod error;
mod git;
mod image;
mod package;
mod record;
mod revision;
mod snapshot;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use experiment::Experiment;
use experiment::manifest::Value;

pub use cache::Cache;
pub use error::{BuildError, FailedBuild};
pub use image::Image;
pub use package::{InstallError, Installation, Sources};
pub use record::recorded;
pub use revision::{Built, short};

/// A revision that a server needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wanted {
    /// A folder in the repository; empty for the current folder.
    pub repository: String,
    /// A revision as git reads it, or `.` for the working tree.
    pub revision: String,
    /// The shell command that builds it; empty if there is nothing to build.
    pub build: String,
}

impl Wanted {
    pub(crate) fn repository_folder(&self) -> &Path {
        match self.repository.as_str() {
            "" => Path::new("."),
            folder => Path::new(folder),
        }
    }
}

/// What was prepared for a run. The builds stay in the cache at least as long as this value lives.
#[derive(Debug, Default)]
pub struct Builds {
    revisions: BTreeMap<Wanted, Built>,
    images: BTreeMap<String, Image>,
}

impl Builds {
    /// The build of a revision.
    pub fn get(&self, wanted: &Wanted) -> Option<&Built> {
        self.revisions.get(wanted)
    }

    /// An image by the name that the experiment gives it.
    pub fn image(&self, name: &str) -> Option<&Image> {
        self.images.get(name)
    }
}

/// A step of the preparation.
#[derive(Clone, Copy, Debug)]
pub enum BuildEvent<'a> {
    /// Another run is building this revision.
    Waiting { revision: &'a str },
    /// A revision is being built.
    Building {
        revision: &'a str,
        /// The full hash.
        commit: &'a str,
        command: &'a str,
    },
    /// An image is being pulled.
    Pulling { image: &'a str },
}

/// The commits that an earlier part of the run used, by repository and revision.
pub type Pins = BTreeMap<(String, String), String>;

/// The revision that a server with these parameters needs.
pub fn revision_of(params: &BTreeMap<String, Value>) -> Option<Wanted> {
    let text = |name: &str| match params.get(name) {
        Some(Value::Text(text)) => text.clone(),
        _ => String::new(),
    };
    let revision = text("revision");
    (!revision.is_empty()).then(|| Wanted {
        repository: text("repository"),
        revision,
        build: text("build"),
    })
}

/// The image that a server with these parameters needs.
pub fn image_of(params: &BTreeMap<String, Value>) -> Option<String> {
    match params.get("image") {
        Some(Value::Text(image)) if !image.is_empty() => Some(image.clone()),
        _ => None,
    }
}

/// Prepares what an experiment's servers need under any condition. `cache` is the cache's folder,
/// if the user has named one. `pins` are the commits of a resumed run.
///
/// # Errors
/// When a revision does not exist or cannot be built, an image is missing and cannot be pulled, the
/// cache cannot be used, or `stop` is set.
pub fn prepare(
    experiment: &Experiment,
    cache: Option<&Path>,
    pins: &Pins,
    stop: &AtomicBool,
    emit: &mut dyn FnMut(BuildEvent<'_>),
) -> Result<Builds, BuildError> {
    let mut builds = Builds::default();
    for condition in experiment.conditions() {
        for server in experiment.under(&condition).servers {
            let remote = experiment.is_elsewhere(server.host.as_deref());
            let wanted = revision_of(&server.params);
            if remote && wanted.is_some() {
                return Err(BuildError::Remote {
                    server: server.name,
                });
            }
            if let Some(wanted) = wanted.filter(|one| !builds.revisions.contains_key(one)) {
                let cache = Cache::open(cache)?;
                let pin = pins.get(&(wanted.repository.clone(), wanted.revision.clone()));
                let built = revision::build(&cache, &wanted, pin, stop, emit)?;
                builds.revisions.insert(wanted, built);
            }
            let image = image_of(&server.params).filter(|_| !remote);
            if let Some(name) = image.filter(|name| !builds.images.contains_key(name)) {
                let image = image::look(&name, stop, emit)?;
                builds.images.insert(name, image);
            }
        }
    }
    if !builds.revisions.is_empty() {
        Cache::open(cache)?.bound();
    }
    Ok(builds)
}

/// The default folder of the cache: `$XDG_CACHE_HOME/weigh`, or `~/.cache/weigh`.
///
/// # Errors
/// When neither variable has an absolute path.
pub fn usual_cache() -> Result<PathBuf, BuildError> {
    installed::user_cache().ok_or(BuildError::NoCache)
}
