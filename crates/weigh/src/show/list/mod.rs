//! `weigh list`: experiments, recipes and drivers, and whether each can run here.

mod whole;

use doctor::listing::{Listing, RecipeSource, list as listing};

use crate::cli::{Format, ListArgs};
use crate::failure::Failure;
use crate::recipes::{own_program, recipes as own_recipes};
use crate::terminal::output::{print_json, print_text};

/// Lists experiments, recipes and drivers, or shows one of them whole.
pub fn list(args: &ListArgs) -> Result<u8, Failure> {
    let weigh = own_program()?;
    let recipes = own_recipes(&args.own)?;
    let format = match args.json {
        true => Format::Json,
        false => args.format,
    };
    if let Some(name) = &args.name {
        return whole::show(name, &recipes, &weigh, format);
    }
    let found = listing(&recipes, &weigh);
    match format {
        Format::Json => print_json(&serde_json::to_value(&found).unwrap_or_default()),
        Format::Text => print_text(&text(&found)),
    }
    Ok(0)
}

/// A listing for people: sections for experiments, recipes and drivers, and a sentence on what is
/// missing.
fn text(listing: &Listing) -> String {
    let mut out = String::new();
    section("experiments", &experiments(listing), &mut out);
    section("recipes", &recipes(listing), &mut out);
    section("drivers", &drivers(listing), &mut out);
    let ready = listing.experiments.iter().filter(|e| e.can_run).count();
    let all = listing.experiments.len();
    out.push_str("weigh list NAME shows one of them whole, with all its parameters.\n");
    out.push_str(&match (ready, listing.experiments.first()) {
        (_, None) => "There are no experiments.\n".to_owned(),
        (0, _) => format!("None of {all} experiments can run here yet.\n"),
        _ if ready == all => "Every experiment can run here.\n".to_owned(),
        _ => format!("{ready} of {all} experiments can run here.\n"),
    });
    out
}

/// One row: a name, whether it is ready, what it is, and further lines.
struct Row {
    name: String,
    ready: bool,
    what: String,
    more: Vec<String>,
}

fn experiments(listing: &Listing) -> Vec<Row> {
    listing
        .experiments
        .iter()
        .map(|experiment| {
            let mut more = Vec::new();
            if experiment.can_run {
                more.push(experiment.command.clone());
            }
            more.extend(
                experiment
                    .missing
                    .iter()
                    .map(|sentence| format!("missing: {sentence}")),
            );
            Row {
                name: experiment.name.clone(),
                ready: experiment.can_run,
                what: experiment.title.clone(),
                more,
            }
        })
        .collect()
}

fn recipes(listing: &Listing) -> Vec<Row> {
    listing
        .recipes
        .iter()
        .map(|recipe| {
            let mut more = Vec::new();
            if !recipe.missing.is_empty() {
                more.push(format!("missing: {}", recipe.missing.join(", ")));
            }
            more.extend(recipe.install_command.clone());
            more.extend(
                recipe
                    .homepage
                    .as_ref()
                    .map(|page| format!("no package is known: see {page}")),
            );
            if recipe.source == RecipeSource::Path {
                more.push("from a folder of yours".to_owned());
            }
            Row {
                name: recipe.name.clone(),
                ready: recipe.can_run,
                what: recipe.summary.clone(),
                more,
            }
        })
        .collect()
}

fn drivers(listing: &Listing) -> Vec<Row> {
    listing
        .drivers
        .iter()
        .map(|driver| Row {
            name: driver.name.clone(),
            ready: driver.can_run,
            what: match &driver.version {
                Some(version) => format!("{}; version {version}", driver.summary),
                None => driver.summary.clone(),
            },
            more: driver
                .missing
                .iter()
                .map(|what| format!("missing: {what}"))
                .chain(driver.install_command.clone())
                .chain(
                    (driver.source == RecipeSource::Path)
                        .then(|| "from a folder of yours".to_owned()),
                )
                .collect(),
        })
        .collect()
}

fn section(title: &str, rows: &[Row], out: &mut String) {
    if rows.is_empty() {
        return;
    }
    let width = rows
        .iter()
        .map(|row| row.name.chars().count())
        .max()
        .unwrap_or(0);
    out.push_str(&format!("{title}\n"));
    for row in rows {
        let ready = if row.ready { "ready" } else { "-" };
        let line = format!(
            "  {:width$}  {ready:5}  {}",
            plain(&row.name),
            plain(&row.what)
        );
        out.push_str(&format!("{}\n", line.trim_end()));
        for more in &row.more {
            out.push_str(&format!("  {:width$}         {}\n", "", plain(more)));
        }
    }
    out.push('\n');
}

/// Text without control characters; titles and summaries may be in any language.
fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use doctor::listing::{ListedDriver, ListedExperiment, ListedRecipe};

    fn listing() -> Listing {
        let experiment = |name: &str, missing: &[&str]| ListedExperiment {
            name: name.into(),
            title: format!("what {name} asks"),
            question: Some("more of it".into()),
            can_run: missing.is_empty(),
            missing: missing.iter().map(|&what| what.into()).collect(),
            command: format!("weigh run {name}"),
        };
        let recipe = |name: &str, missing: &[&str], source| ListedRecipe {
            name: name.into(),
            summary: format!("{name}, a server"),
            can_run: missing.is_empty(),
            missing: missing.iter().map(|&what| what.into()).collect(),
            install_command: missing
                .first()
                .map(|what| format!("apt-get install {what}")),
            homepage: None,
            source,
        };
        let driver = |name: &str, summary: &str, version: Option<&str>, install: Option<&str>| {
            let lacks = install.map(|_| name.to_owned());
            ListedDriver {
                name: name.into(),
                summary: summary.into(),
                version: version.map(str::to_owned),
                can_run: install.is_none(),
                missing: lacks.into_iter().collect(),
                install_command: install.map(str::to_owned),
                notes: vec![],
                source: RecipeSource::BuiltIn,
            }
        };
        Listing {
            experiments: vec![
                experiment("floor", &[]),
                experiment("tiny-proxy", &["tinyd is not installed: `get tiny`"]),
            ],
            recipes: vec![
                recipe("origin", &[], RecipeSource::BuiltIn),
                recipe("tiny", &["tinyd"], RecipeSource::Path),
            ],
            drivers: vec![
                driver("engine", "on epoll", Some("1.2"), None),
                driver("tool", "a tool", None, Some("apt-get install tool")),
            ],
        }
    }

    #[test]
    fn each_row_says_what_can_run_and_what_the_others_lack() {
        assert_eq!(
            text(&listing()),
            "\
experiments
  floor       ready  what floor asks
                     weigh run floor
  tiny-proxy  -      what tiny-proxy asks
                     missing: tinyd is not installed: `get tiny`

recipes
  origin  ready  origin, a server
  tiny    -      tiny, a server
                 missing: tinyd
                 apt-get install tinyd
                 from a folder of yours

drivers
  engine  ready  on epoll; version 1.2
  tool    -      a tool
                 missing: tool
                 apt-get install tool

weigh list NAME shows one of them whole, with all its parameters.
1 of 2 experiments can run here.
"
        );
    }

    #[test]
    fn the_last_line_sums_up() {
        let last = |listing: &Listing| text(listing).lines().last().unwrap_or_default().to_owned();
        let mut all = listing();
        all.experiments.remove(1);
        assert_eq!(last(&all), "Every experiment can run here.");
        all.experiments[0].can_run = false;
        assert_eq!(last(&all), "None of 1 experiments can run here yet.");
        all.experiments.clear();
        assert_eq!(last(&all), "There are no experiments.");
        assert!(text(&all).starts_with("recipes\n"));
    }

    #[test]
    fn a_summary_of_a_users_recipe_cannot_act_on_the_terminal() {
        let mut listing = listing();
        listing.recipes[0].summary = "a\u{1b}[2Jb\nc, d\u{e9}j\u{e0}".into();
        assert!(text(&listing).contains("a [2Jb c, d\u{e9}j\u{e0}\n"));
    }
}
