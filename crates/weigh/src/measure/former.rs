//! How much blocks varied in former runs on this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use experiment::Experiment;
use net::plain_file;
use readings::Trial;
use serde_json::Value;
use verdict::plan::Noise;

/// So many runs are enough, and so many of the newest are looked at.
const RUNS: usize = 3;
const LOOKED_AT: usize = 20;
/// Larger journals are not read: the run waits for it.
const JOURNAL_BYTES_MAX: u64 = 32 << 20;
const HOSTS_BYTES_MAX: usize = 16 << 20;

/// The spread of the newest runs beside a new run's folder that were made on this machine: those of the
/// same experiment, else any; what is assumed where there are none.
pub fn noise(folder: &Path, experiment: &Experiment) -> Noise {
    let here = machine();
    let (mut same, mut others) = (Vec::new(), Vec::new());
    let beside = folder.parent().map(newest_runs).unwrap_or_default();
    for run in beside.into_iter().filter(|run| run != folder) {
        if same.len() >= RUNS || hosts_of(&run) != here {
            continue;
        }
        let Ok(journal) = run::journal::read(&run) else {
            continue;
        };
        let header = &journal.header;
        let subjects = experiment.subjects.iter().map(|one| &one.name);
        let is_same = header.experiment == experiment.name && subjects.eq(&header.subjects);
        if !is_same && others.len() >= RUNS {
            continue;
        }
        let trials: Vec<Trial> = journal.trials().cloned().collect();
        let found = Noise::of(header, &trials);
        match is_same {
            true => same.extend(found),
            false => others.extend(found),
        }
    }
    let same = Noise::of_former_runs(&same, true);
    let any = same.or_else(|| Noise::of_former_runs(&others, false));
    any.unwrap_or(Noise::assumed())
}

/// The newest runs in a folder, the newest first.
fn newest_runs(folder: &Path) -> Vec<PathBuf> {
    // Of a relative path of one part it is empty.
    let folder = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut runs: Vec<(SystemTime, PathBuf)> = entries
        .filter_map(|entry| {
            let journal = entry.path().join(run::journal::FILE_NAME);
            let about = fs::metadata(journal).ok()?;
            let is_small = about.len() <= JOURNAL_BYTES_MAX;
            is_small.then_some((about.modified().ok()?, entry.path()))
        })
        .collect();
    runs.sort_by(|a, b| b.cmp(a));
    runs.truncate(LOOKED_AT);
    runs.into_iter().map(|(_, run)| run).collect()
}

/// What tells this machine from others, as `hosts.json` has it.
fn machine() -> Option<(Value, Value)> {
    let document = agent::machine::describe();
    Some((document["host"].clone(), document["cpu"].clone()))
}

/// The same of the machine that a run was made on; nothing where it was made on several.
fn hosts_of(run: &Path) -> Option<(Value, Value)> {
    let text = plain_file::read(&run.join("hosts.json"), HOSTS_BYTES_MAX).ok()?;
    let document: Value = serde_json::from_slice(&text).ok()?;
    let local = &document["local"];
    document["machines"]
        .is_null()
        .then(|| (local["host"].clone(), local["cpu"].clone()))
}
