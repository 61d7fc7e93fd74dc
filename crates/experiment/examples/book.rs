//! Writes the generated pages of the book into the folder of its reference: all recipes, drivers and
//! experiments as `weigh list NAME` shows them, and the tables of fields of the schemas.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;

use experiment::describe::{
    DriverDescription, ExperimentDescription, Page, RecipeDescription, book,
};
use experiment::{Recipes, catalogue};
use serde_json::{Map, Value};

/// The tables of fields: their names, and where their objects stand in a schema.
const TABLES: [(&str, &str, &str); 11] = [
    ("reading", "journal", "/$defs/reading"),
    ("samples", "journal", "/$defs/samples"),
    ("load-reading", "journal", "/$defs/load"),
    ("result", "result", ""),
    ("comparison", "result", "/properties/comparisons/items"),
    ("level", "result", "/properties/levels/items"),
    ("tiers", "result", "/properties/tiers/items"),
    ("rankings", "result", "/properties/rankings/items"),
    ("interaction", "result", "/properties/interactions/items"),
    ("bottleneck", "result", "/properties/bottlenecks/items"),
    ("gate", "result", "/properties/gates/items"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args()
        .nth(1)
        .ok_or("expected the folder of the reference")?;
    let folder = Path::new(&folder);
    let recipes = Recipes::embedded()?;
    fs::write(folder.join("all-recipes.md"), all_recipes(&recipes))?;
    fs::write(folder.join("all-drivers.md"), all_drivers(&recipes))?;
    fs::write(
        folder.join("all-experiments.md"),
        all_experiments(&recipes)?,
    )?;
    let fields = folder.join("fields");
    fs::create_dir_all(&fields)?;
    let mut schemas = BTreeMap::new();
    for name in ["journal", "result"] {
        let text = fs::read_to_string(folder.join(format!("schemas/{name}.schema.json")))?;
        schemas.insert(name, serde_json::from_str::<Value>(&text)?);
    }
    fs::write(fields.join("journal-rows.md"), rows(&schemas["journal"])?)?;
    for (name, schema, place) in TABLES {
        let object = schemas[schema].pointer(place).ok_or(place)?;
        fs::write(fields.join(format!("{name}.md")), table(object)?)?;
    }
    Ok(())
}

fn all_recipes(recipes: &Recipes) -> String {
    let pages: Vec<Page> = recipes
        .iter()
        .map(|one| RecipeDescription::of(one).page())
        .collect();
    book(
        "Built-in recipes, whole",
        "What can be set of each server, and what does it need? `weigh list NAME` shows the same, \
         also for recipes of your own; [Recipes](recipes.md) says how to write one.",
        &pages,
    )
}

fn all_drivers(recipes: &Recipes) -> String {
    let outside = recipes.drivers().iter().map(DriverDescription::of);
    let pages: Vec<Page> = std::iter::once(DriverDescription::engine())
        .chain(outside)
        .map(|one| one.page())
        .collect();
    book(
        "Built-in drivers, whole",
        "Which settings of the load does each driver support? `weigh list NAME` shows the same, \
         also for drivers of your own; [Drivers](drivers.md) says how to write one.",
        &pages,
    )
}

fn all_experiments(recipes: &Recipes) -> Result<String, Box<dyn Error>> {
    let mut pages = Vec::new();
    for name in catalogue::names() {
        pages.push(ExperimentDescription::open(name, recipes)?.page());
    }
    Ok(book(
        "Experiments of the catalogue, whole",
        "What does each experiment start, load and vary, and how long does it take? `weigh list \
         NAME` shows the same, also for a file of your own. [The catalogue](catalogue.md) says what \
         they have shown.",
        &pages,
    ))
}

/// A table of an object's fields. Neighbours with one description share a row.
fn table(object: &Value) -> Result<String, Box<dyn Error>> {
    let mut table = "| field | meaning |\n|---|---|\n".to_owned();
    let fields: Vec<(&String, &str)> = properties(object)?
        .iter()
        .map(|(name, field)| (name, field["description"].as_str().unwrap_or_default()))
        .collect();
    for same in fields.chunk_by(|one, other| one.1 == other.1) {
        let names: Vec<String> = same.iter().map(|(name, _)| format!("`{name}`")).collect();
        table += &format!("| {} | {} |\n", names.join(", "), same[0].1);
    }
    Ok(table)
}

/// A table of the rows of a journal, each with its fields.
fn rows(schema: &Value) -> Result<String, Box<dyn Error>> {
    let mut table = "| `row` | fields |\n|---|---|\n".to_owned();
    for row in schema["oneOf"].as_array().ok_or("expected rows")? {
        let name = row["properties"]["row"]["const"]
            .as_str()
            .ok_or("expected a row's name")?;
        let fields: Vec<String> = properties(row)?
            .iter()
            .filter(|(name, _)| *name != "row")
            .map(|(name, field)| match field["description"].as_str() {
                Some(text) => format!("`{name}` ({text})"),
                None => format!("`{name}`"),
            })
            .collect();
        let about = row["description"].as_str();
        let about = about.map_or(String::new(), |text| format!("{text}: "));
        table += &format!("| `{name}` | {about}{} |\n", fields.join(", "));
    }
    Ok(table)
}

fn properties(object: &Value) -> Result<&Map<String, Value>, &'static str> {
    object["properties"]
        .as_object()
        .ok_or("expected an object with properties")
}
