//! `weigh board`.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ::board::{File, Run};
use ::history::store::{self, Loaded, StoreError};
use experiment::Recipes;
use experiment::describe::RecipeDescription;
use net::plain_file;

use crate::cli::{BoardArgs, OwnFolders};
use crate::failure::Failure;
use crate::recipes::recipes;
use crate::show::run_facts::run_facts;
use crate::terminal::output::print_text;

/// The names of the files of a site, a line each.
const LIST: &str = "board-files.txt";
const LIST_BYTES_MAX: usize = 16 << 20;
/// Each file is written here, and then takes its place.
const BEGUN: &str = "board-files.txt.new";
/// Recipes that run whatever they are told.
const GENERIC: [&str; 2] = [experiment::COMMAND, "image"];
/// The width of a recipe's description.
const COLUMNS: usize = 96;

/// Makes a site of runs.
pub fn board(args: &BoardArgs) -> Result<u8, Failure> {
    let before = files_before(&args.out)?;
    let known = match recipes(&OwnFolders::default()) {
        Ok(recipes) => recipes,
        // A mistake in one of the user's recipes does not concern runs that are over.
        Err(_) => Recipes::embedded().map_err(Failure::words)?,
    };
    let mut runs = Vec::new();
    for folder in run_folders(&args.folders)? {
        runs.push(run(&folder, &known)?);
    }
    let files = ::board::board(runs, &Known(&known));
    update(&args.out, &files, &before).map_err(Failure::words)?;
    print_text(&format!("{}\n", args.out.join("index.html").display()));
    Ok(0)
}

struct Known<'a>(&'a Recipes);

impl ::board::Recipes for Known<'_> {
    fn text(&self, name: &str) -> Option<String> {
        let page = RecipeDescription::of(self.0.get(name)?).page();
        Some(page.text("recipe", COLUMNS))
    }

    fn is_generic(&self, name: &str) -> bool {
        GENERIC.contains(&name)
    }
}

fn run_folders(folders: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for folder in folders {
        if folder.join(run::journal::FILE_NAME).is_file() {
            found.push(folder.clone());
            continue;
        }
        let below = store::runs_below(folder).map_err(Failure::words)?;
        if below.is_empty() {
            return Err(Failure::words(format!(
                "{}: expected the folder of a run, or a folder with runs below it, found no \
                 journal.jsonl; `weigh run` and `weigh compare` write runs to weigh-runs",
                folder.display()
            )));
        }
        found.extend(below.iter().map(|name| folder.join(name)));
    }
    Ok(found)
}

fn run(folder: &Path, recipes: &Recipes) -> Result<Run, Failure> {
    let loaded = store::load(folder).map_err(|e| match e {
        StoreError::Journal { .. } => Failure::words(format!(
            "{e}; `weigh report --salvage {}` shows the intact rows; a board is made of whole \
             journals only: move this run elsewhere",
            folder.display()
        )),
        other => Failure::words(other),
    })?;
    let Loaded {
        journal,
        experiment,
        hosts,
    } = loaded;
    let mut facts = run_facts(folder, recipes);
    // They belong to the report of the run.
    facts.profiles.clear();
    Ok(Run {
        journal,
        facts,
        experiment,
        hosts,
    })
}

/// The files that were made before.
fn files_before(out: &Path) -> Result<BTreeSet<String>, Failure> {
    let entries = match fs::read_dir(out) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(e) => return Err(Failure::words(format!("--out {}: {e}", out.display()))),
        // A first list that was not finished.
        Ok(entries) => entries.flatten().find(|entry| entry.file_name() != BEGUN),
    };
    let path = out.join(LIST);
    match plain_file::read(&path, LIST_BYTES_MAX) {
        Ok(text) => {
            let text = String::from_utf8_lossy(&text);
            let names = text.lines().map(str::to_owned);
            Ok(names.filter(|name| is_ours(name)).collect())
        }
        Err(e) if e.kind() == ErrorKind::NotFound && entries.is_none() => Ok(BTreeSet::new()),
        Err(e) if e.kind() == ErrorKind::NotFound => Err(Failure::words(format!(
            "--out {}: expected a new or an empty folder, or one that `weigh board` wrote (with \
             {LIST}), found other files",
            out.display()
        ))),
        Err(e) => Err(Failure::words(format!("{}: {e}", path.display()))),
    }
}

/// Whether a name in a list can be that of one of our files: nothing else is ever removed.
fn is_ours(name: &str) -> bool {
    let kinds = ["index.", "experiment-", "server-", "subject-", "blocks-"];
    let ends = [".html", ".json", ".toml"];
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    name.chars().all(is_plain)
        && kinds.iter().any(|kind| name.starts_with(kind))
        && ends.iter().any(|end| name.ends_with(end))
}

/// Writes the files, and removes those of before that are no longer shown. What is there and was not
/// made before stays, and nothing is written then. What cannot be removed stays in the list.
fn update(out: &Path, files: &[File], before: &BTreeSet<String>) -> Result<(), String> {
    let foreign = files.iter().find(|file| {
        !before.contains(&file.name) && out.join(&file.name).symlink_metadata().is_ok()
    });
    if let Some(file) = foreign {
        return Err(format!(
            "{}: it is there already, and `weigh board` did not make it; move it elsewhere",
            out.join(&file.name).display()
        ));
    }
    fs::create_dir_all(out).map_err(|e| format!("cannot make {}: {e}", out.display()))?;
    let put = |name: &str, text: &str| {
        let path = out.join(name);
        plain_file::replace(&path, &out.join(BEGUN), text.as_bytes())
            .map_err(|e| format!("cannot write {}: {e}", path.display()))
    };
    let list = |names: BTreeSet<&str>| {
        let lines: String = names.iter().map(|name| format!("{name}\n")).collect();
        put(LIST, &lines)
    };
    let shown: BTreeSet<&str> = files.iter().map(|file| file.name.as_str()).collect();
    let before: BTreeSet<&str> = before.iter().map(String::as_str).collect();
    // First, so that a site that was cut off is known as ours.
    list(shown.union(&before).copied().collect())?;
    for file in files {
        put(&file.name, &file.text)?;
    }
    let mut listed = shown.clone();
    let mut failures = Vec::new();
    for name in before.difference(&shown) {
        let path = out.join(name);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => {
                listed.insert(name);
                failures.push(format!("cannot remove {}: {e}", path.display()));
            }
            _ => {}
        }
    }
    list(listed)?;
    match failures.is_empty() {
        true => Ok(()),
        false => Err(failures.join("\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_a_board_gives_are_ever_removed() {
        for name in [
            "index.html",
            "experiment-a_b-2.json",
            "blocks-experiment-a-1.html",
        ] {
            assert!(is_ours(name), "{name}");
        }
        for name in [
            "../index.html",
            "index.html/x",
            "photo.html",
            "server-.ssh",
            "",
            "index.",
            LIST,
        ] {
            assert!(!is_ours(name), "{name}");
        }
    }

    #[test]
    fn what_cannot_be_removed_stays_listed_and_keeps_nothing_else() {
        let out = std::env::temp_dir().join(format!("weigh-board-{}", std::process::id()));
        let file = |name: &str| File {
            name: name.to_owned(),
            text: name.to_owned(),
        };
        fs::create_dir(&out).unwrap();
        // The first list was cut off.
        fs::write(out.join(BEGUN), "index").unwrap();
        let names = ["index.html", "server-a.html", "server-b.html"];
        let all = names.map(file);
        update(&out, &all, &files_before(&out).unwrap()).unwrap();
        let kept = fs::File::open(out.join(LIST)).unwrap();
        // A folder is not removed as a file.
        fs::remove_file(out.join("server-a.html")).unwrap();
        fs::create_dir(out.join("server-a.html")).unwrap();
        let why = update(&out, &all[..1], &files_before(&out).unwrap()).unwrap_err();
        assert!(why.contains("server-a.html"), "{why}");
        let list = fs::read_to_string(out.join(LIST)).unwrap();
        assert_eq!(list, "index.html\nserver-a.html\n");
        assert!(!out.join("server-b.html").exists() && !out.join(BEGUN).exists());
        // A list takes the place of the former one, which is never half written.
        let former = plain_file::read_open(kept, LIST_BYTES_MAX).unwrap();
        assert_eq!(former, format!("{}\n", names.join("\n")).as_bytes());
        fs::remove_dir_all(&out).unwrap();
    }
}
