//! A run's folder and its files, apart from the journal.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use net::plain_file;
use readings::Utc;

use crate::RunError;
use crate::journal::{self, JournalError, JournalWriter};
use experiment::Experiment;

/// The default folder of a run: `weigh-runs/NAME-YYYYMMDD-HHMMSS`, UTC, with a number appended if
/// it exists.
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

/// `YYYYMMDD-HHMMSS` of seconds since 1970, UTC.
fn stamp(unix_s: u64) -> String {
    let utc = Utc::of(unix_s);
    let date = format!("{:04}{:02}{:02}", utc.year, utc.month, utc.day);
    format!("{date}-{:02}{:02}{:02}", utc.hour, utc.minute, utc.second)
}

const TRIALS: &str = "trials";
const EXPERIMENT: &str = "experiment.toml";

/// The folder of a new run, and the paths that this process created.
pub(crate) struct NewFolder {
    folder: PathBuf,
    new: Vec<PathBuf>,
}

impl NewFolder {
    /// Creates the folder of a new run and writes the experiment with all its defaults. The journal
    /// comes first, so that of two concurrent runs one is refused before it writes anything.
    pub(crate) fn create(
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
                "it holds a run already; continue it with weigh run --resume {}, or choose another \
                 folder",
                folder.display()
            )),
            other => error(other.to_string()),
        })?;
        fs::create_dir_all(trials).map_err(system)?;
        plain_file::write(&file, experiment.to_toml().as_bytes()).map_err(system)?;
        let folder = folder.to_path_buf();
        Ok((Self { folder, new }, writer))
    }

    /// Removes the created files of a run that measured nothing. Foreign files, and then the
    /// folder, stay.
    pub(crate) fn remove(self, journal: JournalWriter) {
        let _ = fs::remove_file(self.folder.join(journal::FILE_NAME));
        for path in self.new {
            // `remove_dir` fails unless the folder is empty.
            let _ = match path.is_dir() {
                true => fs::remove_dir(path),
                false => fs::remove_file(path),
            };
        }
        // The lock is held until all is removed.
        drop(journal);
    }
}

/// Writes a trial's server logs; a full disk must not cost the trial. Symbolic links in the folder
/// are not followed.
pub(crate) fn write_logs(folder: &Path, trial: u32, files: &BTreeMap<String, String>) {
    if files.is_empty() {
        return;
    }
    let trials = folder.join(TRIALS);
    let dir = trials.join(trial.to_string());
    if [&trials, &dir].into_iter().all(|dir| is_made(dir)) {
        for (name, text) in files {
            let path = dir.join(name.replace('/', "_"));
            let _ = plain_file::write(&path, text.as_bytes());
        }
    }
}

/// Makes a folder if there is none; `false` where something else stands, such as a link to one.
fn is_made(folder: &Path) -> bool {
    let _ = fs::create_dir(folder);
    fs::symlink_metadata(folder).is_ok_and(|there| there.is_dir())
}

/// Writes a file beside the one that it then replaces: what stood there stays if the disk is full,
/// and a killed process leaves a whole file.
///
/// # Errors
/// When it cannot be written or renamed; nothing of it is left then.
pub fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    plain_file::replace(path, Path::new(&new), text.as_bytes())
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

    #[test]
    fn a_folder_that_holds_a_run_is_continued_by_weigh_run() {
        let recipes = experiment::Recipes::embedded().unwrap();
        let text =
            "title = \"t\"\n[servers.a]\nrecipe = \"origin\"\n[subjects]\na = \"http://a/\"\n";
        let experiment = Experiment::parse("t.toml", text, &[], false, &recipes).unwrap();
        let folder = std::env::temp_dir().join(format!("weigh-held-{}", std::process::id()));
        let _held = NewFolder::create(&folder, &experiment).ok().unwrap();
        // `weigh compare` writes to it too, and cannot continue it.
        let error = NewFolder::create(&folder, &experiment).err().unwrap();
        let words = error.to_string();
        let command = format!("continue it with weigh run --resume {}", folder.display());
        assert!(words.contains(&command), "{words}");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_written_into_a_folder_follows_no_link() {
        use std::os::unix::fs::symlink;
        let folder = std::env::temp_dir().join(format!("weigh-links-{}", std::process::id()));
        let other = folder.join("other");
        fs::create_dir_all(&other).unwrap();
        let run = folder.join("run");
        fs::create_dir_all(run.join(TRIALS).join("2")).unwrap();
        symlink(&other, run.join(TRIALS).join("1")).unwrap();
        let kept = other.join("kept");
        fs::write(&kept, "old").unwrap();
        symlink(&kept, run.join("trials/2/b.log")).unwrap();
        symlink(&kept, run.join("summary.md.new")).unwrap();
        let logs = ["a.log", "b.log"].map(|name| (name.to_owned(), "new".to_owned()));
        for trial in [1, 2, 3] {
            write_logs(&run, trial, &logs.clone().into());
        }
        assert!(!other.join("a.log").exists());
        let written = ["trials/2/a.log", "trials/3/a.log", "trials/3/b.log"];
        for name in written {
            assert_eq!(fs::read_to_string(run.join(name)).unwrap(), "new", "{name}");
        }
        replace_file(&run.join("summary.md"), "new").unwrap();
        assert_eq!(fs::read_to_string(&kept).unwrap(), "old");
        assert!(!run.join("summary.md").is_symlink());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_replaced_stays() {
        let folder = std::env::temp_dir().join(format!("weigh-replaced-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let path = folder.join("summary.md");
        replace_file(&path, "old").unwrap();
        replace_file(&path, "whole").unwrap();
        // A folder in its way, as a stand-in for a full disk.
        fs::create_dir(folder.join("summary.md.new")).unwrap();
        assert!(replace_file(&path, "new").is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        fs::remove_dir(folder.join("summary.md.new")).unwrap();
        fs::remove_file(&path).unwrap();
        fs::remove_dir(&folder).unwrap();
    }
}
