//! A revision, checked out and built.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, SystemTime};

use net::os::{self, ChildSetup};
use serde_json::json;

use crate::cache::{Cache, Hold, key, lock};
use crate::git::{ask, git, output, without_repository};
use crate::{BuildError, BuildEvent, FailedBuild, Wanted, snapshot};

/// The revision that stands for the working tree.
const WORKING_TREE: &str = ".";
/// Lines of a failed build's output in a message.
const LAST_LINES: usize = 20;
const LAST_BYTES: u64 = 16 * 1024;
/// Digits of a commit in messages.
const SHORT: usize = 12;
const POLL: Duration = Duration::from_millis(20);
const SIGKILL: i32 = 9;

/// A built revision in the cache. It stays there while this value lives.
#[derive(Debug)]
pub struct Built {
    path: PathBuf,
    revision: String,
    commit: String,
    pub(crate) log: PathBuf,
    _in_use: File,
}

impl Built {
    #[cfg(test)]
    pub(crate) fn fake(commit: &str, log: PathBuf) -> Self {
        Self {
            path: PathBuf::new(),
            revision: String::new(),
            commit: commit.to_owned(),
            log,
            _in_use: File::open("/dev/null").unwrap(),
        }
    }

    /// The checkout, in which it was built.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The revision as the user wrote it.
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// The full hash of the commit. That of a changed working tree is not in the user's repository.
    pub fn commit(&self) -> &str {
        &self.commit
    }
}

/// Checks out and builds a revision, unless the cache has it.
pub(crate) fn build(
    cache: &Cache,
    wanted: &Wanted,
    pin: Option<&String>,
    stop: &AtomicBool,
    emit: &mut dyn FnMut(BuildEvent<'_>),
) -> Result<Built, BuildError> {
    let revision = wanted.revision.as_str();
    let top = top(wanted.repository_folder())?;
    if cache.path().starts_with(&top) {
        return Err(cache.error(format!(
            "it lies in the repository {}, and would become part of it",
            top.display()
        )));
    }
    let top_name = top.display().to_string();
    let mirror_key = key(&[&top_name]);
    let mirror = cache.repository(&mirror_key);
    let waiting = |emit: &mut dyn FnMut(BuildEvent<'_>)| emit(BuildEvent::Waiting { revision });
    // Held only briefly.
    let mirror_lock = cache.repository_lock(&mirror_key);
    let lock_mirror = || lock(&mirror_lock, Hold::Alone, stop, || {});
    let commit = {
        let _mirror = lock_mirror()?;
        open_mirror(cache, &top, &mirror)?;
        match pin {
            Some(pin) => pin.clone(),
            None if revision == WORKING_TREE => snapshot::commit(&top, &mirror)?,
            None => commit_of(&top, revision)?,
        }
    };
    let key = key(&[&top_name, &commit, &wanted.build]);
    let path = cache.build(&key);
    let marker = cache.build_file(&key, "json");
    let log = cache.build_file(&key, "log");
    let lock_file = cache.build_file(&key, "lock");
    let mut hold = Hold::Shared;
    loop {
        let held = lock(&lock_file, hold, stop, || waiting(emit))?;
        if hold == Hold::Alone && !marker.exists() {
            {
                let _mirror = lock_mirror()?;
                check_out(cache, &mirror, &commit, &path)?;
            }
            emit(BuildEvent::Building {
                revision,
                commit: &commit,
                command: &wanted.build,
            });
            if let Err(e) = run_build(cache, wanted, &commit, &path, &log, stop) {
                let _ = fs::remove_dir_all(&path);
                return Err(e);
            }
            let document = json!({
                "repository": top_name,
                "revision": revision,
                "commit": commit,
                "build": wanted.build,
            });
            fs::write(&marker, format!("{document:#}\n")).map_err(|e| cache.error(e))?;
        }
        if hold == Hold::Alone {
            // Not atomic: another process may remove the build before this use is recorded.
            held.lock_shared().map_err(|e| cache.error(e))?;
        }
        let used = File::options().append(true).open(&marker);
        if used.is_ok_and(|file| file.set_modified(SystemTime::now()).is_ok()) {
            return Ok(Built {
                path,
                revision: revision.to_owned(),
                commit,
                log,
                _in_use: held,
            });
        }
        // It has to be built. Only then is the lock exclusive, as a run holds it while it measures.
        hold = Hold::Alone;
    }
}

/// The root of the working tree around a folder.
fn top(folder: &Path) -> Result<PathBuf, BuildError> {
    let no_repository = |why: String| BuildError::NoRepository {
        folder: folder.display().to_string(),
        why,
    };
    if !folder.is_dir() {
        return Err(no_repository("there is no such folder".to_owned()));
    }
    let top = ask(folder, &["rev-parse", "--show-toplevel"]).map_err(|e| match e {
        BuildError::Git { why, .. } => no_repository(why),
        other => other,
    })?;
    fs::canonicalize(&top).map_err(|e| no_repository(e.to_string()))
}

fn commit_of(top: &Path, revision: &str) -> Result<String, BuildError> {
    let name = format!("{revision}^{{commit}}");
    let words = [
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        &name,
    ];
    ask(top, &words).map_err(|e| match e {
        BuildError::Git { .. } => BuildError::NoRevision {
            folder: top.display().to_string(),
            revision: revision.to_owned(),
        },
        other => other,
    })
}

/// Creates or updates the bare repository that borrows the user's objects.
fn open_mirror(cache: &Cache, top: &Path, mirror: &Path) -> Result<(), BuildError> {
    let path_of = |name: &str| {
        let path = ask(top, &["rev-parse", "--git-path", name])?;
        Ok(top.join(path))
    };
    if !mirror.join("HEAD").exists() {
        let format = ask(top, &["rev-parse", "--show-object-format"])?;
        let format = format!("--object-format={format}");
        // Without a template there are no hooks.
        output(
            git(top)
                .args(["init", "--quiet", "--bare", "--template=", &format])
                .arg(mirror),
        )?;
        // Only checkouts refer to snapshots, so garbage collection could remove them.
        ask(mirror, &["config", "gc.auto", "0"])?;
    }
    let system = |e: io::Error| cache.error(e);
    let objects: PathBuf = path_of("objects")?;
    let objects = fs::canonicalize(objects).map_err(system)?;
    fs::create_dir_all(mirror.join("objects/info")).map_err(system)?;
    let alternates = format!("{}\n", objects.display());
    fs::write(mirror.join("objects/info/alternates"), alternates).map_err(system)?;
    // A shallow clone lacks the parents of some commits.
    let shallow: PathBuf = path_of("shallow")?;
    if fs::copy(shallow, mirror.join("shallow")).is_err() {
        let _ = fs::remove_file(mirror.join("shallow"));
    }
    // For builds that ask `git describe` for a version.
    let _ = output(
        git(mirror)
            .args(["fetch", "--quiet", "--no-auto-gc", "--no-tags"])
            .arg(top)
            .arg("+refs/tags/*:refs/tags/*"),
    );
    Ok(())
}

fn check_out(cache: &Cache, mirror: &Path, commit: &str, path: &Path) -> Result<(), BuildError> {
    match fs::remove_dir_all(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(cache.error(e)),
        _ => {}
    }
    ask(mirror, &["worktree", "prune"])?;
    output(
        git(mirror)
            .args(["worktree", "add", "--quiet", "--force", "--detach"])
            .arg(path)
            .arg(commit),
    )?;
    Ok(())
}

fn run_build(
    cache: &Cache,
    wanted: &Wanted,
    commit: &str,
    path: &Path,
    log: &Path,
    stop: &AtomicBool,
) -> Result<(), BuildError> {
    let system = |e: io::Error| cache.error(e);
    let output = File::create(log).map_err(system)?;
    if wanted.build.is_empty() {
        return Ok(());
    }
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", &wanted.build])
        .current_dir(path)
        .stdin(Stdio::null())
        .stdout(output.try_clone().map_err(system)?)
        .stderr(output);
    without_repository(&mut command);
    let setup = ChildSetup {
        own_session: true,
        die_with_parent: true,
        ..ChildSetup::default()
    };
    os::set_up_child(&mut command, setup);
    let mut child = command.spawn().map_err(system)?;
    let status = wait(&mut child, stop).map_err(system)?;
    let Some(status) = status else {
        return Err(BuildError::Stopped);
    };
    if status.success() {
        return Ok(());
    }
    Err(BuildError::Failed(Box::new(FailedBuild {
        revision: wanted.revision.clone(),
        commit: short(commit).to_owned(),
        build: wanted.build.clone(),
        status: described(status),
        log: log.to_owned(),
        lines: last_lines(log),
    })))
}

/// Waits for a child. If `stop` is set, kills its process group and returns no status.
fn wait(child: &mut Child, stop: &AtomicBool) -> io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if stop.load(Ordering::Relaxed) {
            // It leads its own process group, and its number is not reused before it is reaped.
            let _ = os::kill(-(child.id() as i32), SIGKILL);
            child.wait()?;
            return Ok(None);
        }
        sleep(POLL);
    }
}

/// The short form of a commit for messages.
pub fn short(commit: &str) -> &str {
    commit.get(..SHORT).unwrap_or(commit)
}

fn described(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        _ => "for an unknown reason".to_owned(),
    }
}

fn last_lines(log: &Path) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LAST_BYTES)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    if lines.is_empty() {
        return "  (it printed nothing)".to_owned();
    }
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    let last: Vec<String> = last.iter().map(|line| format!("  {line}")).collect();
    last.join("\n")
}
