//! What there is to run, and whether it can run on this machine.

use std::path::Path;

use serde::Serialize;

use experiment::driver::{Driver, ENGINE};
use experiment::recipe::Recipe;
use experiment::{Recipes, catalogue};

/// Experiments, recipes and drivers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listing {
    /// The catalogue, in alphabetical order.
    pub experiments: Vec<ListedExperiment>,
    /// The recipes, in alphabetical order.
    pub recipes: Vec<ListedRecipe>,
    /// What can make the load.
    pub drivers: Vec<ListedDriver>,
}

/// An experiment of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListedExperiment {
    pub name: String,
    pub title: String,
    /// The question in full, where it has one.
    pub question: Option<String>,
    /// Whether nothing is missing.
    pub can_run: bool,
    /// What is missing, a sentence each.
    pub missing: Vec<String>,
    /// The command that runs it.
    pub command: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListedRecipe {
    pub name: String,
    /// What it is, in a sentence.
    pub summary: String,
    /// Whether what it needs is installed.
    pub can_run: bool,
    /// Programs and files that are not installed.
    pub missing: Vec<String>,
    /// The command that installs them; absent where none is needed or known.
    pub install_command: Option<String>,
    /// Where to get them, where something is missing and no package is known to have it.
    pub homepage: Option<String>,
    /// The versions of which an experiment can choose one; empty if there is no choice.
    pub versions: Vec<ListedVersion>,
    /// Where it comes from.
    pub source: RecipeSource,
}

/// A version of a recipe's program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListedVersion {
    /// What an experiment writes: `debian` for what is installed, or a version.
    pub version: String,
    /// Where it is from: its package.
    pub package: String,
    /// Whether it can run.
    pub can_run: bool,
    pub install_command: String,
}

/// Where a recipe or a driver comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecipeSource {
    /// The program.
    BuiltIn,
    /// A user's folder.
    Path,
}

/// What can make the load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListedDriver {
    pub name: String,
    /// What it is or how it works here, in a sentence.
    pub summary: String,
    /// Its version, where it is installed and reports one.
    pub version: Option<String>,
    /// Whether it can run.
    pub can_run: bool,
    pub missing: Vec<String>,
    /// The command that installs it; absent where none is needed or known.
    pub install_command: Option<String>,
    /// What to know before its figures are used, a sentence each.
    pub notes: Vec<String>,
    /// Where it comes from.
    pub source: RecipeSource,
}

/// Lists all that there is, with what is missing on this machine.
///
/// Drivers are asked for their versions; `weigh` is the running program.
pub fn list(recipes: &Recipes, weigh: &Path) -> Listing {
    let built_in = Recipes::embedded().ok();
    let have = net::os::allowed_cpus().unwrap_or_default();
    Listing {
        experiments: catalogue::names()
            .into_iter()
            .map(|name| experiment(name, recipes, &have))
            .collect(),
        recipes: recipes
            .iter()
            .map(|one| recipe(one, built_in.as_ref()))
            .collect(),
        drivers: std::iter::once(engine(net::uring_unavailable()))
            .chain(
                recipes
                    .drivers()
                    .iter()
                    .map(|one| driver(one, built_in.as_ref(), weigh)),
            )
            .collect(),
    }
}

/// The recipes, drivers and experiments of one name, one of each at most.
///
/// An experiment may also be the path of a file; one with mistakes is not listed.
pub fn named(name: &str, recipes: &Recipes, weigh: &Path) -> Listing {
    let built_in = Recipes::embedded().ok();
    let built_in = built_in.as_ref();
    let have = net::os::allowed_cpus().unwrap_or_default();
    let is_there = catalogue::open_experiment(name, &[], false, recipes).is_ok();
    let engine = (name == ENGINE).then(|| engine(net::uring_unavailable()));
    let outside = recipes.driver(name).map(|one| driver(one, built_in, weigh));
    Listing {
        experiments: is_there
            .then(|| experiment(name, recipes, &have))
            .into_iter()
            .collect(),
        recipes: recipes
            .get(name)
            .map(|one| recipe(one, built_in))
            .into_iter()
            .collect(),
        drivers: engine.into_iter().chain(outside).collect(),
    }
}

fn experiment(name: &str, recipes: &Recipes, have: &[u32]) -> ListedExperiment {
    let command = format!("weigh run {name}");
    match catalogue::open_experiment(name, &[], false, recipes) {
        Ok(found) => {
            let mut missing = crate::missing(&found, recipes);
            if found.hosts_are_apart() {
                missing.extend(hosts::lacking(&found.hosts));
            }
            for host in &found.hosts {
                for cpu in host.cpus.iter().filter(|cpu| !have.contains(cpu)) {
                    missing.push(format!("CPU {cpu} of host `{}` may not be used", host.name));
                }
            }
            ListedExperiment {
                name: name.to_owned(),
                title: found.title,
                question: found.question,
                can_run: missing.is_empty(),
                missing,
                command,
            }
        }
        // A user's recipe may replace one that the experiment is written for.
        Err(error) => ListedExperiment {
            name: name.to_owned(),
            title: String::new(),
            question: None,
            can_run: false,
            missing: vec![format!("it does not fit your recipes: {error}")],
            command,
        },
    }
}

fn recipe(recipe: &Recipe, built_in: Option<&Recipes>) -> ListedRecipe {
    let available = recipe.available();
    let files = available
        .missing_files
        .iter()
        .map(|file| file.display().to_string());
    let own = built_in.and_then(|built_in| built_in.get(&recipe.name)) == Some(recipe);
    ListedRecipe {
        name: recipe.name.clone(),
        summary: recipe.summary.clone(),
        can_run: available.is_complete(),
        missing: available
            .missing_programs
            .iter()
            .cloned()
            .chain(files)
            .collect(),
        install_command: available.install_command.clone(),
        homepage: available.homepage.clone(),
        versions: versions(recipe),
        source: if own {
            RecipeSource::BuiltIn
        } else {
            RecipeSource::Path
        },
    }
}

fn versions(recipe: &Recipe) -> Vec<ListedVersion> {
    let packages = &recipe.packages;
    if !packages.has_versions() {
        return Vec::new();
    }
    let is_there = |version: &str| recipe.available_in(Some(version)).is_complete();
    let names = packages.debian.join(" ");
    let debian = (!names.is_empty()).then(|| ListedVersion {
        version: installed::DEBIAN.to_owned(),
        package: format!("{names} of Debian"),
        can_run: is_there(installed::DEBIAN),
        install_command: format!("apt-get install --no-install-recommends {names}"),
    });
    let pinned = packages.pinned.iter().filter(|one| !one.kind.is_source);
    let pinned = pinned.map(|one| ListedVersion {
        version: one.version.clone(),
        package: format!("{} of {}", one.name, one.kind.registry),
        can_run: is_there(&one.version),
        install_command: one.install.clone(),
    });
    debian.into_iter().chain(pinned).collect()
}

fn driver(driver: &Driver, built_in: Option<&Recipes>, weigh: &Path) -> ListedDriver {
    let available = driver.available();
    let own = built_in.and_then(|built_in| built_in.driver(&driver.name)) == Some(driver);
    ListedDriver {
        name: driver.name.clone(),
        summary: driver.title.clone(),
        version: available
            .is_complete()
            .then(|| driver.version(weigh))
            .flatten(),
        can_run: available.is_complete(),
        missing: available.missing_programs.clone(),
        install_command: available.install_command.clone(),
        notes: driver.notes.clone(),
        source: if own {
            RecipeSource::BuiltIn
        } else {
            RecipeSource::Path
        },
    }
}

/// The built-in load engine; it runs everywhere, on one of two interfaces of the kernel.
fn engine(uring_unavailable: Option<&str>) -> ListedDriver {
    ListedDriver {
        name: ENGINE.to_owned(),
        summary: match uring_unavailable {
            None => "on io_uring, which this kernel allows".to_owned(),
            Some(reason) => format!("on epoll, since io_uring cannot be used: {reason}"),
        },
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        can_run: true,
        missing: Vec::new(),
        install_command: None,
        notes: Vec::new(),
        source: RecipeSource::BuiltIn,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn everything_is_listed_and_the_cost_floor_runs_everywhere() {
        let recipes = Recipes::embedded().unwrap();
        let listing = list(&recipes, Path::new("weigh"));
        let names: Vec<&str> = listing
            .experiments
            .iter()
            .map(|e| e.name.as_str())
            .collect();
        assert_eq!(names, catalogue::names());
        let floor = listing
            .experiments
            .iter()
            .find(|experiment| experiment.name == "proxy-cost")
            .unwrap();
        assert!(floor.can_run, "{:?}", floor.missing);
        assert_eq!(floor.command, "weigh run proxy-cost");
        assert!(!floor.title.is_empty());
        let names: Vec<&str> = listing.recipes.iter().map(|r| r.name.as_str()).collect();
        assert_eq!(names, recipes.names().collect::<Vec<_>>());
        for recipe in &listing.recipes {
            assert_eq!(recipe.source, RecipeSource::BuiltIn);
            assert_eq!(recipe.can_run, recipe.missing.is_empty());
            // What is missing can be had: from a package, or where no package has it.
            let remedies = [&recipe.install_command, &recipe.homepage];
            let count = remedies.iter().filter(|one| one.is_some()).count();
            assert_eq!(count, usize::from(!recipe.can_run), "{recipe:?}");
        }
        assert!(listing.drivers[0].can_run);
        assert_eq!(listing.drivers[0].name, ENGINE);
        let names: Vec<&str> = listing.drivers[1..]
            .iter()
            .map(|d| d.name.as_str())
            .collect();
        assert_eq!(names, recipes.drivers().names().collect::<Vec<_>>());
        for driver in &listing.drivers {
            assert_eq!(driver.source, RecipeSource::BuiltIn);
            // Not every driver comes in a package.
            let is_missing = !driver.missing.is_empty();
            assert_eq!(driver.can_run, !is_missing, "{driver:?}");
            assert!(driver.install_command.is_none() || is_missing, "{driver:?}");
        }
    }

    #[test]
    fn a_recipe_of_the_user_is_told_apart_and_what_it_lacks_is_named() {
        let dir = std::env::temp_dir().join(format!("weigh-listing-{}", std::process::id()));
        // One with a new name, and one that replaces a built-in recipe.
        for name in ["own", "origin"] {
            fs::create_dir_all(dir.join(name)).unwrap();
            fs::write(
                dir.join(name).join("recipe.toml"),
                "summary = \"of my own\"\n[programs]\nown = [\"no-such-program-here\"]\n\
                 [packages]\ndebian = [\"own\"]\n[start]\ncommand = [\"{{ programs.own }}\"]\n",
            )
            .unwrap();
        }
        let recipes = Recipes::load(std::slice::from_ref(&dir), &[]);
        fs::remove_dir_all(&dir).unwrap();
        let listing = list(&recipes.unwrap(), Path::new("weigh"));
        for recipe in &listing.recipes {
            let mine = ["own", "origin"].contains(&recipe.name.as_str());
            let expected = if mine {
                RecipeSource::Path
            } else {
                RecipeSource::BuiltIn
            };
            assert_eq!(recipe.source, expected, "{}", recipe.name);
            if mine {
                assert_eq!(recipe.missing, ["no-such-program-here"]);
                let command = recipe.install_command.as_deref().unwrap();
                assert!(command.ends_with(" own"), "{command}");
            }
        }
        let floor = &listing.experiments[listing
            .experiments
            .iter()
            .position(|experiment| experiment.name == "proxy-cost")
            .unwrap()];
        assert!(!floor.can_run);
        assert!(!floor.missing.is_empty());
    }

    #[test]
    fn the_engine_says_which_interface_it_takes_and_why() {
        assert!(engine(None).summary.starts_with("on io_uring"));
        let fallback = engine(Some("not permitted"));
        assert!(fallback.can_run);
        assert!(fallback.summary.starts_with("on epoll"));
        assert!(fallback.summary.ends_with("not permitted"));
    }

    #[test]
    fn the_document_says_where_a_recipe_comes_from() {
        let word = |source: RecipeSource| serde_json::to_value(source).unwrap();
        assert_eq!(word(RecipeSource::BuiltIn), "built-in");
        assert_eq!(word(RecipeSource::Path), "path");
    }
}
