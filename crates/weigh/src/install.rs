//! `weigh install`: programs of recipes and drivers, from registries, into a cache of the user's.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;

use builds::{Installation, Sources};
use experiment::driver::Driver;
use experiment::recipe::Recipe;
use experiment::{Experiment, Recipes, catalogue, nearest};
use installed::{DEBIAN, Packages, PinnedPackage};

use crate::cli::InstallArgs;
use crate::failure::Failure;
use crate::recipes::recipes;
use crate::terminal::output::print_text;

/// What is to be installed.
#[derive(Default)]
struct Wanted {
    /// Each with the name of its recipe or driver.
    installations: Vec<(String, Installation)>,
    /// What root has to install, a sentence each.
    of_root: Vec<String>,
}

/// Shows what is run, asks, and runs it.
///
/// # Errors
/// When a name is unknown or has no package in a registry, nobody agreed, an installation fails, or an
/// experiment needs more than registries have.
pub fn install(args: &InstallArgs) -> Result<u8, Failure> {
    let recipes = recipes(&args.own)?;
    let mut wanted = Wanted::default();
    for name in &args.names {
        wanted.add(name, args.version.as_deref(), &recipes)?;
    }
    let mut missing = Vec::new();
    for (name, one) in &wanted.installations {
        match one.installed() {
            Some(path) => print_text(&format!(
                "{name}: {} is there: {}\n",
                one.package(),
                path.display()
            )),
            None => missing.push((name, one)),
        }
    }
    for (name, one) in &missing {
        print_text(&shown(name, one));
    }
    if !args.dry_run && !missing.is_empty() && !args.yes {
        agreed()?;
    }
    if !args.dry_run {
        for (name, one) in &missing {
            let path = one.carry_out().map_err(Failure::failed)?;
            print_text(&format!("{name}: {}\n", path.display()));
        }
    }
    match wanted.of_root.as_slice() {
        [] => Ok(0),
        sentences => Err(Failure::failed(format!(
            "what else is missing, `weigh install` does not install:\n{}",
            sentences.join("\n")
        ))),
    }
}

/// What would be run.
fn shown(name: &str, one: &Installation) -> String {
    let kind = one.package().kind;
    let mut text = format!(
        "{name}: {} from {} into {}:\n",
        one.package(),
        kind.registry,
        one.folder().display()
    );
    for line in one.shown(Path::new("TEMPORARY")) {
        text.push_str(&format!("    {line}\n"));
    }
    if let Some(runs) = kind.runs {
        text.push_str(&format!("  {} {runs}\n", kind.client));
    }
    text
}

impl Wanted {
    /// Adds what a recipe, a driver or an experiment needs.
    fn add(&mut self, name: &str, version: Option<&str>, recipes: &Recipes) -> Result<(), Failure> {
        if let Some(recipe) = recipes.get(name) {
            let package = chosen(name, version, &recipe.packages)?;
            return self.recipe(recipe, package);
        }
        if let Some(driver) = recipes.driver(name) {
            let package = chosen(name, version, &driver.packages)?;
            return self.driver(driver, package);
        }
        let Ok(experiment) = catalogue::open_experiment(name, &[], false, recipes) else {
            return Err(unknown(name, recipes));
        };
        if version.is_some() {
            return Err(Failure::words(
                "--version is for recipes: an experiment says which versions it needs",
            ));
        }
        self.experiment(&experiment, recipes)
    }

    fn recipe(&mut self, recipe: &Recipe, package: &PinnedPackage) -> Result<(), Failure> {
        let sources = Sources {
            files: recipe.sources(package),
            recipe: recipe.folder.clone(),
        };
        self.put(
            &recipe.name,
            Installation::of(package, &recipe.programs, sources),
        )
    }

    fn driver(&mut self, driver: &Driver, package: &PinnedPackage) -> Result<(), Failure> {
        let sources = Sources::default();
        self.put(
            &driver.name,
            Installation::of(package, &driver.programs, sources),
        )
    }

    fn put(
        &mut self,
        name: &str,
        installation: Result<Installation, builds::InstallError>,
    ) -> Result<(), Failure> {
        let one = installation.map_err(Failure::failed)?;
        let is_known = |(_, known): &(String, Installation)| known.package() == one.package();
        if !self.installations.iter().any(is_known) {
            self.installations.push((name.to_owned(), one));
        }
        Ok(())
    }

    /// Adds the packages of all versions that an experiment needs here, and says what else is missing.
    fn experiment(&mut self, experiment: &Experiment, recipes: &Recipes) -> Result<(), Failure> {
        for one in experiment.needed(recipes) {
            let version = one.version.as_deref();
            if experiment.is_elsewhere(one.host.as_deref()) {
                continue;
            }
            match one.recipe.packages.pinned(version) {
                Some(package) => self.recipe(one.recipe, package)?,
                None => self
                    .of_root
                    .extend(one.recipe.available_in(version).sentence()),
            }
        }
        for driver in recipes.drivers_of(experiment) {
            match driver.packages.pinned(None) {
                Some(package) => self.driver(driver, package)?,
                None => self.of_root.extend(driver.available().sentence()),
            }
        }
        self.of_root.sort();
        self.of_root.dedup();
        Ok(())
    }
}

/// The package of a version, or else the first one.
fn chosen<'p>(
    name: &str,
    version: Option<&str>,
    packages: &'p Packages,
) -> Result<&'p PinnedPackage, Failure> {
    let debian = packages.debian.join(" ");
    let by_debian = format!("`apt-get install --no-install-recommends {debian}`");
    let found = match version {
        Some(version) => packages.pinned(Some(version)),
        None => packages.pinned.first(),
    };
    found.ok_or_else(|| match version {
        Some(DEBIAN) if !debian.is_empty() => {
            Failure::words(format!("Debian's packages of `{name}`: {by_debian}"))
        }
        Some(version) if packages.has_versions() => {
            let pinned = packages.pinned.iter().filter(|one| !one.kind.is_source);
            let known: Vec<&str> = pinned.map(|one| one.version.as_str()).collect();
            let known = known.join(", ");
            Failure::words(format!(
                "`{name}` has no version {version}: expected {known}"
            ))
        }
        _ => {
            let help = match debian.is_empty() {
                true => "it has no package".to_owned(),
                false => format!("its packages are Debian's: {by_debian}"),
            };
            Failure::words(format!("`{name}` names no package of a registry: {help}"))
        }
    })
}

fn unknown(name: &str, recipes: &Recipes) -> Failure {
    // A file with mistakes says what they are.
    if Path::new(name).is_file()
        && let Err(error) = catalogue::open_experiment(name, &[], false, recipes)
    {
        return Failure::file(error);
    }
    let known = recipes.names().chain(recipes.drivers().names());
    let catalogue = catalogue::names();
    let help = match nearest::nearest(name, known.chain(catalogue)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`weigh list` shows all names".to_owned(),
    };
    Failure::words(format!(
        "no recipe, driver or experiment is called `{name}`: {help}"
    ))
}

/// Asks at the terminal.
fn agreed() -> Result<(), Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::words(
            "nobody can be asked whether to run this: add --yes, or --dry-run to see it only",
        ));
    }
    eprint!("Run this? [y/N] ");
    let _ = io::stderr().flush();
    let mut answer = String::new();
    io::stdin()
        .read_line(&mut answer)
        .map_err(|e| Failure::failed(format!("no answer: {e}")))?;
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::failed("nothing was installed")),
    }
}
