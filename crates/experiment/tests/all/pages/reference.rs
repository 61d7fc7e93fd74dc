//! The generated pages of the reference are what the program says of recipes, drivers and
//! experiments.

use std::path::PathBuf;

use crate::support::recipes;
use experiment::catalogue;
use experiment::describe::{
    DriverDescription, ExperimentDescription, Page, RecipeDescription, book,
};

const HOW: &str = "WEIGH_WRITE_SHOWN=1 cargo test -p experiment --test all reference";

fn path_of(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/src/reference")
        .join(file)
}

/// Compares a page of the book with what is generated.
fn assert_page(file: &str, title: &str, introduction: &str, pages: &[Page]) {
    let note = format!("<!-- Generated: {HOW} -->\n\n");
    assert_text(file, &(note + &book(title, introduction, pages)));
}

/// Compares the text of a page with what it should be; with `WEIGH_WRITE_SHOWN=1` writes it.
fn assert_text(file: &str, text: &str) {
    let path = path_of(file);
    if std::env::var_os("WEIGH_WRITE_SHOWN").is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let line = written.lines().zip(text.lines()).position(|(a, b)| a != b);
    assert!(
        written == text,
        "docs/src/reference/{file} is not what the program says, first in line {}; to write it anew: {HOW}",
        line.map_or(0, |at| at + 1)
    );
}

#[test]
fn the_page_of_recipes_is_what_the_program_says() {
    let pages: Vec<Page> = recipes()
        .iter()
        .map(|one| RecipeDescription::of(one).page())
        .collect();
    assert!(pages.len() > 20);
    assert_page(
        "all-recipes.md",
        "Built-in recipes, whole",
        "What can be set of each server, and what does it need? `weigh list NAME` shows the same, \
         also for recipes of your own; [Recipes](recipes.md) says how to write one.",
        &pages,
    );
}

#[test]
fn the_page_of_drivers_is_what_the_program_says() {
    let recipes = recipes();
    let outside = recipes.drivers().iter().map(DriverDescription::of);
    let pages: Vec<Page> = std::iter::once(DriverDescription::engine())
        .chain(outside)
        .map(|one| one.page())
        .collect();
    assert!(pages.len() > 5);
    assert_page(
        "all-drivers.md",
        "Built-in drivers, whole",
        "Which settings of the load does each driver support? `weigh list NAME` shows the same, \
         also for drivers of your own; [Drivers](drivers.md) says how to write one.",
        &pages,
    );
}

#[test]
fn the_page_of_experiments_is_what_the_program_says() {
    let recipes = recipes();
    let pages: Vec<Page> = catalogue::names()
        .into_iter()
        .map(|name| ExperimentDescription::open(name, recipes).unwrap().page())
        .collect();
    assert!(pages.len() > 15);
    assert_page(
        "all-experiments.md",
        "Experiments of the catalogue, whole",
        "What does each experiment start, load and vary, and how long does it take? `weigh list \
         NAME` shows the same, also for a file of your own. [The catalogue](catalogue.md) says what \
         they have shown.",
        &pages,
    );
}

/// The last columns of the catalogue's table follow from the files of the experiments.
#[test]
fn the_catalogue_says_how_long_each_takes_and_which_have_a_search_for_bottlenecks() {
    let recipes = recipes();
    let page = std::fs::read_to_string(path_of("catalogue.md")).unwrap();
    let (table, rest) = page.split_once("\n## ").unwrap();
    let mut rows = 0;
    let lines = table.lines().map(|line| {
        let Some((name, _)) = line.strip_prefix("| `").and_then(|row| row.split_once('`')) else {
            return line.to_owned();
        };
        let one = ExperimentDescription::open(name, recipes).unwrap();
        rows += 1;
        let written: Vec<&str> = line.split(" | ").take(3).collect();
        let bottlenecks = match one.full.searches {
            0 if !one.events.is_empty() => "no: events",
            0 if !one.loads.is_empty() => "no: several loads",
            0 => "no: outside drivers",
            _ => "yes",
        };
        let (full, quick) = (one.full.about(), one.quick.about());
        format!(
            "{} | {full} | {quick} | {bottlenecks} |",
            written.join(" | ")
        )
    });
    let lines: Vec<String> = lines.collect();
    assert_eq!(rows, catalogue::names().len());
    assert_text(
        "catalogue.md",
        &format!("{}\n\n## {rest}", lines.join("\n")),
    );
}

#[test]
fn every_parameter_says_what_it_does() {
    for recipe in recipes().iter() {
        for param in &recipe.params {
            assert!(param.doc.len() > 10, "{}: {}", recipe.name, param.name);
        }
    }
    for driver in recipes().drivers().iter() {
        for param in &driver.params {
            assert!(param.doc.len() > 10, "{}: {}", driver.name, param.name);
        }
    }
}
