//! What a run's folder says beyond its journal. Whatever is missing or damaged is left out, as the
//! journal is enough for a report.

use std::path::Path;

use experiment::{Experiment, Recipes, Target, Upstream};
use net::folder::Folder;
use net::plain_file;
use report::{MachineFacts, Profile, RunFacts, TopologyFacts, TopologyServer, TopologySubject};
use serde_json::Value;

use crate::cli::OwnFolders;
use crate::recipes::recipes;

/// Larger profiles are linked to, not read.
const PROFILE_BYTES_MAX: usize = 200_000;
/// The most profiles that are shown.
const PROFILES_MAX: usize = 24;
/// The most bytes of `hosts.json`.
const INVENTORY_BYTES_MAX: usize = 16 << 20;
/// The most bytes of `experiment.toml`.
const EXPERIMENT_BYTES_MAX: usize = 1 << 20;

/// The facts of a run's folder. Its experiment is read with the recipes that exist now.
pub fn stored_run_facts(folder: &Path) -> RunFacts {
    match recipes(&OwnFolders::default()) {
        Ok(recipes) => run_facts(folder, &recipes),
        // A mistake in one of the user's recipes does not concern a run that is over.
        Err(_) => Recipes::embedded().map_or_else(
            |_| RunFacts::default(),
            |recipes| run_facts(folder, &recipes),
        ),
    }
}

/// The facts of a run's folder. Its experiment is read with these recipes.
pub fn run_facts(folder: &Path, recipes: &Recipes) -> RunFacts {
    let inventory = plain_file::read(&folder.join("hosts.json"), INVENTORY_BYTES_MAX).ok();
    let inventory = inventory.and_then(|text| serde_json::from_slice::<Value>(&text).ok());
    let inventory = inventory.unwrap_or_default();
    let experiment = stored_experiment(folder, recipes);
    RunFacts {
        question: experiment.as_ref().and_then(|one| one.question.clone()),
        machines: machines(&inventory),
        versions: versions(&inventory),
        topology: experiment.as_ref().map(topology),
        profiles: profiles(folder),
    }
}

/// The experiment of a run's folder.
pub fn stored_experiment(folder: &Path, recipes: &Recipes) -> Option<Experiment> {
    let path = folder.join("experiment.toml");
    let text = plain_file::read(&path, EXPERIMENT_BYTES_MAX).ok()?;
    let text = String::from_utf8(text).ok()?;
    Experiment::parse(&path.display().to_string(), &text, &[], false, recipes).ok()
}

fn machines(inventory: &Value) -> Vec<MachineFacts> {
    let here = &inventory["local"];
    let mut found = Vec::new();
    if here.is_object() {
        let name = here["host"].as_str().unwrap_or("this machine");
        found.push(machine(name, here));
    }
    let others = inventory["machines"].as_object();
    for (name, other) in others.into_iter().flatten() {
        let described = match other["machine"].is_object() {
            true => &other["machine"],
            false => other,
        };
        found.push(machine(name, described));
    }
    found
}

fn machine(name: &str, described: &Value) -> MachineFacts {
    let text = |key: &str| described[key].as_str().map(str::to_owned);
    let memory = text("memory").and_then(|line| {
        let digits: String = line.chars().filter(char::is_ascii_digit).collect();
        digits.parse::<u64>().ok()?.checked_mul(1024)
    });
    MachineFacts {
        name: name.to_owned(),
        cpu: text("cpu"),
        cpus: described["cpus"].as_array().map(Vec::len),
        memory_bytes: memory,
        kernel: text("kernel"),
        architecture: text("architecture"),
    }
}

fn versions(inventory: &Value) -> Vec<(String, String)> {
    let known = inventory["local"]["versions"].as_object();
    let known = known.into_iter().flatten();
    let told = known.filter_map(|(recipe, version)| Some((recipe, version.as_str()?)));
    told.map(|(recipe, version)| (recipe.clone(), version.to_owned()))
        .collect()
}

fn topology(experiment: &Experiment) -> TopologyFacts {
    // Servers that no subject reaches are not started.
    let started = experiment.start_order();
    let servers = started.iter().map(|server| TopologyServer {
        name: server.name.clone(),
        recipe: server.recipe.clone(),
        host: server.host.clone(),
        upstreams: server
            .upstreams
            .iter()
            .map(|upstream| match upstream {
                Upstream::Server(name) => name.clone(),
                Upstream::Address(address) => address.to_string(),
            })
            .collect(),
    });
    let subjects = experiment.subjects.iter().map(|subject| {
        let target = match &subject.target {
            Target::Server(name) | Target::Address(name) => name.clone(),
        };
        TopologySubject {
            name: subject.name.clone(),
            url: format!("{}://{target}{}", subject.scheme, subject.path),
            target,
        }
    });
    TopologyFacts {
        load_host: experiment.load.host.clone(),
        loads: experiment
            .loads
            .iter()
            .map(|one| (one.name.clone(), one.load.host.clone()))
            .collect(),
        hosts: experiment.hosts.clone(),
        servers: servers.collect(),
        subjects: subjects.collect(),
    }
}

/// The pictures of a run's folder, by name. They become part of the report, so none is read through
/// a symbolic link, which may lead to any file of the reader's.
fn profiles(run: &Path) -> Vec<Profile> {
    let inside = Path::new("profile");
    let Ok(entries) = std::fs::read_dir(run.join(inside)) else {
        return Vec::new();
    };
    let Ok(run) = Folder::open(run) else {
        return Vec::new();
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    let mut names: Vec<_> = names
        .filter(|name| Path::new(name).extension().is_some_and(|end| end == "svg"))
        .collect();
    names.sort();
    let opened = names.iter().filter_map(|name| {
        let file = run.open_file(&inside.join(name)).ok()?;
        let is_file = file.metadata().is_ok_and(|about| about.is_file());
        is_file.then_some((name, file))
    });
    let read = opened.take(PROFILES_MAX).map(|(name, file)| {
        let svg = plain_file::read_open(file, PROFILE_BYTES_MAX).ok();
        Profile {
            name: name.to_string_lossy().into_owned(),
            svg: svg.and_then(|text| String::from_utf8(text).ok()),
        }
    });
    read.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    /// Makes a named pipe.
    fn pipe(path: &Path) {
        let made = Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    }

    #[test]
    fn what_a_sent_folder_links_to_is_not_read() {
        let folder = std::env::temp_dir().join(format!("weigh-facts-{}", std::process::id()));
        let (run, inside) = (folder.join("run"), folder.join("run/profile"));
        std::fs::create_dir_all(&inside).unwrap();
        let private = folder.join("private.svg");
        std::fs::write(&private, "secret").unwrap();
        std::fs::write(inside.join("a.svg"), "<svg/>").unwrap();
        std::fs::write(inside.join("large.svg"), vec![b' '; PROFILE_BYTES_MAX + 1]).unwrap();
        symlink(&private, inside.join("link.svg")).unwrap();
        symlink("/dev/zero", inside.join("zero.svg")).unwrap();
        pipe(&inside.join("pipe.svg"));
        pipe(&run.join("hosts.json"));
        pipe(&run.join("experiment.toml"));
        let facts = run_facts(&run, &Recipes::embedded().unwrap());
        let found = facts.profiles.into_iter();
        let found: Vec<_> = found.map(|one| (one.name, one.svg)).collect();
        let expected = [("a.svg", Some("<svg/>")), ("large.svg", None)];
        let expected = expected.map(|(name, svg)| (name.to_owned(), svg.map(str::to_owned)));
        assert_eq!(found, expected);
        // Nor is the whole folder of another place.
        std::fs::remove_dir_all(&inside).unwrap();
        symlink(&folder, &inside).unwrap();
        assert!(profiles(&run).is_empty());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
