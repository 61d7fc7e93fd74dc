//! A run's folder and what stands in it beside the journal.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::journal::{self, JournalError, JournalWriter};
use crate::server_configs::Given;
use crate::{CpuPlacement, RunError, RunOptions};
use experiment::Experiment;

/// Where a run goes when nothing else is said: `weigh-runs/NAME-YYYYMMDD-HHMMSS`, UTC, with a
/// number added when that is taken.
pub fn default_folder(experiment: &str) -> PathBuf {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs());
    let name = format!("{experiment}-{}", stamp(now));
    let base = Path::new("weigh-runs");
    let mut path = base.join(&name);
    let mut number = 2;
    while path.exists() {
        path = base.join(format!("{name}-{number}"));
        number += 1;
    }
    path
}

/// `YYYYMMDD-HHMMSS` of seconds since 1970, UTC (the civil calendar from days, after H. Hinnant).
fn stamp(unix_s: u64) -> String {
    let (days, seconds) = (unix_s / 86_400, unix_s % 86_400);
    let z = days + 719_468;
    let era = z / 146_097;
    let day_of_era = z % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let mp = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!(
        "{year:04}{month:02}{day:02}-{:02}{:02}{:02}",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// The folder below that of a run with what belongs to single trials.
const TRIALS: &str = "trials";
const EXPERIMENT: &str = "experiment.toml";

/// What this start has made for a new run.
pub(crate) struct Made {
    folder: PathBuf,
    /// What was not there before.
    new: Vec<PathBuf>,
}

impl Made {
    /// Makes the folder of a new run and writes the experiment with all its defaults. The journal
    /// comes first, so that of two that begin here at once one is refused before it has written
    /// anything.
    pub(crate) fn make(
        folder: &Path,
        experiment: &Experiment,
    ) -> Result<(Self, JournalWriter), RunError> {
        let error = |why: String| RunError::Folder {
            path: folder.to_path_buf(),
            why,
        };
        let system = |e: io::Error| error(e.to_string());
        let (trials, file) = (folder.join(TRIALS), folder.join(EXPERIMENT));
        let mut new = vec![trials.clone(), file.clone(), folder.to_path_buf()];
        new.retain(|path| !path.exists());
        fs::create_dir_all(folder).map_err(system)?;
        let writer = JournalWriter::create(folder).map_err(|e| match e {
            JournalError::Exists { .. } => error(format!(
                "it holds a run already; go on with it by --resume {}, or name another folder",
                folder.display()
            )),
            other => error(other.to_string()),
        })?;
        fs::create_dir_all(trials).map_err(system)?;
        fs::write(file, experiment.to_toml()).map_err(system)?;
        let folder = folder.to_path_buf();
        Ok((Self { folder, new }, writer))
    }

    /// Removes it all: nothing was measured. What somebody else has put there stays, and so does
    /// the folder then.
    pub(crate) fn take_back(self, journal: JournalWriter) {
        let _ = fs::remove_file(self.folder.join(journal::FILE_NAME));
        for path in self.new {
            // A folder only when it is empty.
            let _ = match path.is_dir() {
                true => fs::remove_dir(path),
                false => fs::remove_file(path),
            };
        }
        // Nobody else begins here before all is gone.
        drop(journal);
    }
}

/// Writes a trial's server logs; a full disk must not cost the trial.
pub(crate) fn write_logs(folder: &Path, trial: u32, files: &BTreeMap<String, String>) {
    if files.is_empty() {
        return;
    }
    let dir = folder.join(TRIALS).join(trial.to_string());
    if fs::create_dir_all(&dir).is_ok() {
        for (name, text) in files {
            let _ = fs::write(dir.join(name.replace('/', "_")), text);
        }
    }
}

/// What the machine is described in.
const MACHINE: &str = "hosts.json";

/// What stands in a run's `hosts.json` already.
pub(crate) fn described(folder: &Path) -> Option<Value> {
    let document: Value = serde_json::from_slice(&fs::read(folder.join(MACHINE)).ok()?).ok()?;
    document["local"].is_object().then_some(document)
}

/// What `hosts.json` says beside this machine.
pub(crate) struct Described<'a> {
    pub(crate) placement: &'a CpuPlacement,
    /// What servers were given.
    pub(crate) given: &'a Given,
    /// Versions of outside drivers.
    pub(crate) drivers: &'a BTreeMap<String, Option<String>>,
    /// Versions of servers that are on other machines, by recipe.
    pub(crate) servers: BTreeMap<String, Option<String>>,
    /// The hosts, and the key that they stand below.
    pub(crate) hosts: Option<(&'static str, Value)>,
}

/// Writes `hosts.json`.
pub(crate) fn write_machine(
    options: &RunOptions<'_>,
    described: Described<'_>,
) -> Result<(), RunError> {
    let Described {
        placement,
        given,
        drivers,
        servers: mut versions,
        hosts,
    } = described;
    let configurations = given.first();
    for server in options.experiment.start_order() {
        if let Some(recipe) = options.recipes.get(&server.recipe) {
            versions
                .entry(server.recipe.clone())
                .or_insert_with(|| version(configurations.get(&server.name), recipe));
        }
    }
    let mut machine = agent::machine::describe();
    // This thread keeps to the servers' CPUs by now, so it cannot be asked.
    let mut cpus = [placement.load_cpus.as_slice(), &placement.server_cpus].concat();
    cpus.sort_unstable();
    if !matches!(hosts, Some(("machines", _))) {
        machine["cpus"] = json!(cpus);
    }
    machine["weigh"] = json!(env!("CARGO_PKG_VERSION"));
    machine["load_cpus"] = json!(placement.load_cpus);
    machine["server_cpus"] = json!(placement.server_cpus);
    machine["versions"] = json!(versions);
    machine["servers"] = given.document(options.experiment);
    machine["drivers"] = json!(drivers);
    let wanted: BTreeMap<_, _> = options.experiment.sysctls.iter().cloned().collect();
    machine["sysctls_wanted"] = json!(wanted);
    let mut document = json!({ "local": machine });
    if let Some((key, hosts)) = hosts {
        document[key] = hosts;
    }
    keep(options.folder, &document)
}

/// Writes into `hosts.json` what servers were given since it was made.
pub(crate) fn write_given(options: &RunOptions<'_>, given: &Given) -> Result<(), RunError> {
    let Some(mut document) = described(options.folder) else {
        return Ok(());
    };
    document["local"]["servers"] = given.document(options.experiment);
    keep(options.folder, &document)
}

/// A program that is killed leaves the whole file, as it was or as it is.
fn keep(folder: &Path, document: &Value) -> Result<(), RunError> {
    let text = serde_json::to_string_pretty(document).unwrap_or_default();
    let new = folder.join(format!("{MACHINE}.new"));
    fs::write(&new, text + "\n")
        .and_then(|()| fs::rename(&new, folder.join(MACHINE)))
        .map_err(|e| RunError::Folder {
            path: folder.to_path_buf(),
            why: e.to_string(),
        })
}

/// The version that a server's program tells, with the command of its configuration.
pub(crate) fn version(
    configuration: Option<&Value>,
    recipe: &experiment::recipe::Recipe,
) -> Option<String> {
    let command: Vec<String> =
        serde_json::from_value(configuration?.get("version_command")?.clone()).ok()?;
    let (program, arguments) = command.split_first()?;
    let output = Command::new(program).args(arguments).output().ok()?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    recipe.version_in(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_calendar_dates() {
        assert_eq!(stamp(0), "19700101-000000");
        assert_eq!(stamp(951_827_696), "20000229-123456");
        assert_eq!(stamp(1_735_689_599), "20241231-235959");
    }
}
