//! One recipe, driver or experiment, whole: `weigh list NAME`.

use std::path::Path;

use doctor::listing::{ListedVersion, Listing, named};
use experiment::describe::{DriverDescription, ExperimentDescription, Page, RecipeDescription};
use experiment::driver::ENGINE;
use experiment::{Recipes, catalogue, nearest};
use serde_json::{Value, json, to_value};

use crate::cli::Format;
use crate::failure::Failure;
use crate::terminal::output::{print_json, print_text, width};

/// Shows every recipe, driver and experiment of this name.
pub fn show(name: &str, recipes: &Recipes, weigh: &Path, format: Format) -> Result<u8, Failure> {
    let recipe = recipes.get(name).map(RecipeDescription::of);
    let driver = match name {
        ENGINE => Some(DriverDescription::engine()),
        name => recipes.driver(name).map(DriverDescription::of),
    };
    let experiment = match ExperimentDescription::open(name, recipes) {
        Ok(found) => Some(found),
        Err(_) if recipe.is_some() || driver.is_some() => None,
        // A file that exists but has mistakes, or a name of the catalogue.
        Err(why) if catalogue::find(name).is_ok() => return Err(Failure::file(why)),
        Err(_) => return Err(unknown(name, recipes)),
    };
    let listing = named(name, recipes, weigh);
    match format {
        Format::Json => print_json(&json!({
            "experiments": document(to_value(&listing.experiments), experiment.map(to_value)),
            "recipes": document(to_value(&listing.recipes), recipe.map(to_value)),
            "drivers": document(to_value(&listing.drivers), driver.map(to_value)),
        })),
        Format::Text => {
            let shown = [
                experiment.map(|one| ("experiment", one.page())),
                recipe.map(|one| ("recipe", one.page())),
                driver.map(|one| ("driver", one.page())),
            ];
            print_text(&text(shown.into_iter().flatten(), &listing));
        }
    }
    Ok(0)
}

/// What its file says and whether it can run on this machine, in one object.
fn document(
    listed: serde_json::Result<Value>,
    described: Option<serde_json::Result<Value>>,
) -> Vec<Value> {
    let Some(Ok(Value::Object(mut whole))) = described else {
        return Vec::new();
    };
    if let Some(Value::Object(one)) = listed.ok().and_then(|listed| listed.get(0).cloned()) {
        for (key, value) in one {
            whole.entry(key).or_insert(value);
        }
    }
    vec![Value::Object(whole)]
}

fn text(shown: impl Iterator<Item = (&'static str, Page)>, listing: &Listing) -> String {
    let mut out = String::new();
    for (kind, page) in shown {
        out.push_str(&page.text(kind, width()));
        if kind == "recipe" {
            let recipe = listing.recipes.first();
            out.push_str(&versions(recipe.map_or(&[], |one| &one.versions)));
        }
        let listed = match kind {
            "experiment" => {
                let one = listing.experiments.first();
                one.map(|one| (one.can_run, &one.missing, None))
            }
            "recipe" => {
                let one = listing.recipes.first();
                one.map(|one| (one.can_run, &one.missing, one.install_command.as_ref()))
            }
            _ => {
                let one = listing.drivers.first();
                one.map(|one| (one.can_run, &one.missing, one.install_command.as_ref()))
            }
        };
        if let Some((true, ..)) = listed {
            out.push_str("It can run here.\n\n");
            continue;
        }
        out.push_str("It cannot run here. Missing:\n");
        for what in listed.iter().flat_map(|(_, missing, _)| *missing) {
            out.push_str(&format!("  {what}\n"));
        }
        if let Some((.., Some(command))) = listed {
            out.push_str(&format!("  to install it: {command}\n"));
        }
        out.push('\n');
    }
    out
}

/// The versions, a line each; nothing if there is no choice.
fn versions(all: &[ListedVersion]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let width = |of: fn(&ListedVersion) -> &str| {
        let widths = all.iter().map(|one| of(one).chars().count());
        widths.max().unwrap_or(0)
    };
    let (first, second) = (width(|one| &one.version), width(|one| &one.package));
    let mut out =
        "Versions: `with = { version = … }` of a server, or a factor `SERVER.version`\n".to_owned();
    for one in all {
        let had = match one.can_run {
            true => "is installed",
            false => &one.install_command,
        };
        let (version, package) = (&one.version, &one.package);
        out.push_str(&format!("  {version:first$}  {package:second$}  {had}\n"));
    }
    out.push('\n');
    out
}

fn unknown(name: &str, recipes: &Recipes) -> Failure {
    let names = catalogue::names();
    let known = names.into_iter().chain(recipes.names());
    let known = known.chain(recipes.drivers().names()).chain([ENGINE]);
    let help = match nearest::nearest(name, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`weigh list` shows all names".to_owned(),
    };
    Failure::words(format!(
        "no experiment, recipe or driver is called `{name}`: {help}"
    ))
}
