//! `weigh list`: experiments, recipes and drivers, and whether each can run here.

mod whole;

use doctor::listing::{
    ListedDriver, ListedExperiment, ListedRecipe, Listing, RecipeSource, list as listing,
};

use crate::cli::{Format, ListArgs};
use crate::failure::Failure;
use crate::recipes::{own_program, recipes as own_recipes};
use crate::terminal::output::{print_json, print_text};

/// Lists experiments, recipes and drivers, or shows one of them whole.
pub fn list(args: &ListArgs) -> Result<u8, Failure> {
    let weigh = own_program()?;
    let recipes = own_recipes(&args.own)?;
    if let Some(name) = &args.name {
        return whole::show(name, &recipes, &weigh, args.format);
    }
    let found = listing(&recipes, &weigh);
    match args.format {
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
    let row = |one: &ListedExperiment| {
        let command = one.can_run.then(|| one.command.clone());
        let missing = one.missing.iter().map(|what| format!("missing: {what}"));
        Row {
            name: one.name.clone(),
            ready: one.can_run,
            what: one.title.clone(),
            more: command.into_iter().chain(missing).collect(),
        }
    };
    listing.experiments.iter().map(row).collect()
}

fn recipes(listing: &Listing) -> Vec<Row> {
    let row = |one: &ListedRecipe| {
        let missing = one.missing.join(", ");
        let missing = (!missing.is_empty()).then(|| format!("missing: {missing}"));
        let page = one.homepage.as_ref();
        let page = page.map(|page| format!("no package is known: see {page}"));
        let install = one.install_command.clone();
        Row {
            name: one.name.clone(),
            ready: one.can_run,
            what: one.summary.clone(),
            more: [missing, install, page, own(one.source)]
                .into_iter()
                .flatten()
                .collect(),
        }
    };
    listing.recipes.iter().map(row).collect()
}

fn drivers(listing: &Listing) -> Vec<Row> {
    let row = |one: &ListedDriver| {
        let missing = one.missing.iter().map(|what| format!("missing: {what}"));
        Row {
            name: one.name.clone(),
            ready: one.can_run,
            what: match &one.version {
                Some(version) => format!("{}; version {version}", one.summary),
                None => one.summary.clone(),
            },
            more: missing
                .chain(one.install_command.clone())
                .chain(own(one.source))
                .collect(),
        }
    };
    listing.drivers.iter().map(row).collect()
}

fn own(source: RecipeSource) -> Option<String> {
    (source == RecipeSource::Path).then(|| "from a folder of yours".to_owned())
}

fn section(title: &str, rows: &[Row], out: &mut String) {
    if rows.is_empty() {
        return;
    }
    let widths = rows.iter().map(|row| row.name.chars().count());
    let width = widths.max().unwrap_or(0);
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
            versions: Vec::new(),
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
        assert_eq!(text(&listing()), include_str!("listing.txt"));
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
