//! What a run's folder says beyond its journal. Whatever is missing or damaged is left out, as the
//! journal is enough for a report.

use std::path::Path;

use experiment::{Experiment, Recipes, Target, Upstream};
use report::{MachineFacts, Profile, RunFacts, TopologyFacts, TopologyServer, TopologySubject};
use serde_json::Value;

use crate::cli::OwnFolders;
use crate::recipes::recipes;

/// Larger profiles are linked to, not read.
const PROFILE_BYTES_MAX: u64 = 200_000;
/// The most profiles that are shown.
const PROFILES_MAX: usize = 24;

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
    let inventory = std::fs::read(folder.join("hosts.json")).ok();
    let inventory = inventory.and_then(|text| serde_json::from_slice::<Value>(&text).ok());
    let inventory = inventory.unwrap_or_default();
    let experiment = Experiment::read(&folder.join("experiment.toml"), &[], false, recipes).ok();
    RunFacts {
        question: experiment.as_ref().and_then(|one| one.question.clone()),
        machines: machines(&inventory),
        versions: versions(&inventory),
        topology: experiment.as_ref().map(topology),
        profiles: profiles(&folder.join("profile")),
    }
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

/// The pictures of the folder, by name.
fn profiles(folder: &Path) -> Vec<Profile> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let files = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|end| end == "svg"))
        .collect();
    files.sort();
    files.truncate(PROFILES_MAX);
    let read = files.iter().map(|path| {
        let is_small = path
            .metadata()
            .is_ok_and(|file| file.len() <= PROFILE_BYTES_MAX);
        Profile {
            name: path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default(),
            svg: is_small
                .then(|| std::fs::read_to_string(path).ok())
                .flatten(),
        }
    });
    read.collect()
}
