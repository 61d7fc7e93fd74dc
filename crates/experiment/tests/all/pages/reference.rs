//! What is said of recipes, drivers and experiments, in `weigh list NAME` and in the book.

use std::path::PathBuf;

use crate::support::{assert_shown, recipes};
use experiment::catalogue;
use experiment::describe::{DriverDescription, ExperimentDescription, Page, RecipeDescription};

const HOW: &str = "WEIGH_WRITE_SHOWN=1 cargo test -p weigh-experiment --test all reference";

/// One page of each kind; the book has them all.
#[test]
fn a_recipe_a_driver_and_an_experiment_are_described() {
    let recipes = recipes();
    let nginx = RecipeDescription::of(recipes.get("nginx").unwrap());
    let wrk = DriverDescription::of(recipes.driver("wrk").unwrap());
    let cost = ExperimentDescription::open("proxy-cost", recipes).unwrap();
    for (kind, page) in [
        ("recipe", nginx.page()),
        ("driver", wrk.page()),
        ("experiment", cost.page()),
    ] {
        let shown = page.text(kind, 100) + "\n" + &page.markdown();
        assert_shown(&format!("described-{kind}"), &shown);
    }
}

/// The page mentions these names, for a terminal and in the book.
fn assert_described(page: &Page, kind: &str, names: &[&str]) {
    let (text, in_book) = (page.text(kind, 80), page.markdown());
    for name in names {
        assert!(text.contains(name), "{kind} {}: {name}\n{text}", page.name);
        assert!(
            in_book.contains(name),
            "{kind} {}: {name}\n{in_book}",
            page.name
        );
    }
}

#[test]
fn every_description_names_what_can_be_set() {
    let recipes = recipes();
    for recipe in recipes.iter() {
        let names: Vec<&str> = recipe
            .params
            .iter()
            .map(|param| param.name.as_str())
            .collect();
        assert_described(&RecipeDescription::of(recipe).page(), "recipe", &names);
    }
    for driver in recipes.drivers().iter() {
        let names: Vec<&str> = driver
            .params
            .iter()
            .map(|param| param.name.as_str())
            .collect();
        assert_described(&DriverDescription::of(driver).page(), "driver", &names);
    }
    assert_described(&DriverDescription::engine().page(), "driver", &[]);
    for name in catalogue::names() {
        let one = catalogue::open_experiment(name, &[], false, recipes).unwrap();
        let factors = one.factors.iter().map(|factor| factor.name.as_str());
        let names: Vec<&str> = one
            .servers
            .iter()
            .map(|server| server.name.as_str())
            .chain(factors)
            .collect();
        let page = ExperimentDescription::open(name, recipes).unwrap().page();
        assert_described(&page, "experiment", &names);
    }
}

/// The last columns of the catalogue's table follow from the files of the experiments.
#[test]
fn the_catalogue_says_how_long_each_takes_and_which_have_a_search_for_bottlenecks() {
    let recipes = recipes();
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/reference/catalogue.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (table, rest) = page.split_once("\n## ").unwrap();
    let mut rows = 0;
    let lines = table.lines().map(|line| {
        let Some((name, _)) = line.strip_prefix("| `").and_then(|row| row.split_once('`')) else {
            return line.to_owned();
        };
        let one = ExperimentDescription::open(name, recipes).unwrap();
        let read = catalogue::open_experiment(name, &[], false, recipes).unwrap();
        rows += 1;
        let written: Vec<&str> = line.split(" | ").take(3).collect();
        let bottlenecks = match one.full.searches {
            0 if !one.events.is_empty() => "no: events",
            0 if !one.loads.is_empty() => "no: several loads",
            0 if read.load.traffic.is_paced_by_sender() => "no: streams",
            0 if !read.design.growth.is_empty() => "no: growth",
            0 if !read.design.alternate => "no: not in slices",
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
    let text = format!("{}\n\n## {rest}", lines.join("\n"));
    if std::env::var_os("WEIGH_WRITE_SHOWN").is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let line = page.lines().zip(text.lines()).position(|(a, b)| a != b);
    assert!(
        page == text,
        "docs/src/reference/catalogue.md is not what the program says, first in line {}; to write it anew: {HOW}",
        line.map_or(0, |at| at + 1)
    );
}

#[test]
fn every_parameter_says_what_it_does() {
    let recipes = recipes();
    let of_drivers = recipes.drivers().iter().map(|one| (&one.name, &one.params));
    for (name, params) in recipes
        .iter()
        .map(|one| (&one.name, &one.params))
        .chain(of_drivers)
    {
        for param in params {
            assert!(param.doc.len() > 10, "{name}: {}", param.name);
        }
    }
}
