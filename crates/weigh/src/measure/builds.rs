//! Prepares what the user's own servers need, and prints what it does.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use builds::{BuildEvent, Builds, Cache, Pins, recorded, short};
use experiment::Experiment;

use crate::failure::Failure;

/// Prepares revisions and images. A resumed run uses the commits that its folder records.
pub fn prepare(
    experiment: &Experiment,
    cache: Option<&Path>,
    resumed: Option<&Path>,
    stop: &AtomicBool,
) -> Result<Builds, Failure> {
    let pins = resumed.map_or_else(Pins::new, recorded);
    let mut tell = |event: BuildEvent<'_>| match event {
        BuildEvent::Waiting { revision } => {
            eprintln!("weigh: waiting for another run that prepares `{revision}`");
        }
        BuildEvent::Building {
            revision, commit, ..
        } => eprintln!("weigh: building `{revision}` ({})", short(commit)),
        BuildEvent::Pulling { image } => eprintln!("weigh: pulling `{image}`"),
    };
    builds::prepare(experiment, cache, &pins, stop, &mut tell)
        .map_err(|e| Failure::Build(Box::new(e)))
}

/// Empties the cache.
pub fn clean(cache: Option<&Path>) -> Result<u8, Failure> {
    let cache = Cache::open(cache).map_err(|e| Failure::Build(Box::new(e)))?;
    let (removed, left) = cache.clean();
    let in_use = match left {
        0 => String::new(),
        left => format!("; {left} in use stay"),
    };
    eprintln!(
        "weigh: {removed} builds removed from {}{in_use}",
        cache.path().display()
    );
    Ok(0)
}
