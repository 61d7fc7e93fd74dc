//! The published schemas and the program accept the same files.

use std::path::{Path, PathBuf};

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::support::{parse, recipes, rendered};
use experiment::catalogue;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn schema(name: &str) -> Value {
    let path = root().join(format!("docs/src/reference/schemas/{name}.schema.json"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn validator(name: &str) -> Validator {
    jsonschema::draft202012::new(&schema(name)).unwrap()
}

fn document(toml: &str) -> Value {
    serde_json::to_value(toml.parse::<toml::Table>().unwrap()).unwrap()
}

fn assert_valid(schema: &Validator, what: &str, toml: &str) {
    let document = document(toml);
    let errors = schema.iter_errors(&document);
    let errors: Vec<String> = errors
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{what}: {}", errors.join("\n"));
}

#[test]
fn every_experiment_fits_its_schema_as_written_and_as_run() {
    let (schema, recipes) = (validator("experiment"), recipes());
    for name in catalogue::names() {
        assert_valid(&schema, name, catalogue::text(name).unwrap());
        for quick in [false, true] {
            let one = catalogue::open_experiment(name, &[], quick, recipes).unwrap();
            assert_valid(&schema, name, &one.to_toml());
        }
    }
}

#[test]
fn every_recipe_and_driver_fits_its_schema() {
    for (kind, folder) in [("recipe", "servers"), ("driver", "drivers")] {
        let schema = validator(kind);
        let mut count = 0;
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path().join(format!("{kind}.toml"));
            let Ok(text) = std::fs::read_to_string(&path) else {
                continue;
            };
            assert_valid(&schema, &path.display().to_string(), &text);
            count += 1;
        }
        assert!(count >= 6, "{count} {kind}s");
    }
}

#[test]
fn what_the_program_refuses_for_its_form_the_schemas_refuse() {
    let schema = validator("experiment");
    let wrong = [
        "question = \"no title\"\n[subjects]\na = \"http://127.0.0.1:1/\"\n",
        "title = \"no subjects\"\n",
        "title = \"x\"\nsubject = 1\n[subjects]\na = \"http://127.0.0.1:1/\"\n",
        "title = \"x\"\n[subjects]\na = 1\n",
        "title = \"x\"\n[subjects]\na = \"http://127.0.0.1:1/\"\n[load]\nconnections = 0\n",
        "title = \"x\"\n[subjects]\na = \"http://127.0.0.1:1/\"\n[load]\nconnection = 1\n",
        "title = \"x\"\n[subjects]\na = \"http://127.0.0.1:1/\"\n[load]\ntimeout = \"5 miles\"\n",
        "title = \"x\"\n[subjects]\na = \"http://127.0.0.1:1/\"\n[design]\nblocks = \"3\"\n",
        "title = \"x\"\n[subjects]\na = \"http://127.0.0.1:1/\"\n[expect]\nbody = \"equal\"\n",
        "title = \"x\"\n[subjects]\na = \"http://127.0.0.1:1/\"\n[factors]\nconnections = 4\n",
        "title = \"x\"\n[subjects]\na = \"http://127.0.0.1:1/\"\n[servers.a]\nhost = \"b\"\n",
    ];
    for text in wrong {
        assert!(parse(text).is_err(), "the program accepts {text}");
        assert!(
            !schema.is_valid(&document(text)),
            "the schema accepts {text}"
        );
    }
    let recipe = validator("recipe");
    let good = json!({"summary": "x", "start": {"command": ["x"]}});
    assert!(recipe.is_valid(&good));
    for (key, value) in [
        ("upstreams", json!("two")),
        ("start", json!({})),
        ("parameters", json!({})),
        ("params", json!({"x": {"type": "number"}})),
    ] {
        let mut wrong = good.clone();
        wrong[key] = value;
        assert!(!recipe.is_valid(&wrong), "the schema accepts {wrong}");
    }
}

/// The names in the program's list of known keys, for a table with a key that cannot be meant.
fn keys_of_the_program(table: &str) -> Vec<String> {
    let text = match table {
        "" => "no-such-key-at-all = 1\n".to_owned(),
        _ => format!("title = \"x\"\n[{table}]\nno-such-key-at-all = 1\n"),
    };
    let shown = rendered(&parse(&text).unwrap_err());
    let help = shown
        .split("known keys")
        .nth(1)
        .unwrap_or_else(|| panic!("{shown}"));
    let help = help.split("Error:").next().unwrap();
    let names = help.split('`').skip(1).step_by(2);
    names.map(str::to_owned).collect()
}

#[test]
fn the_schema_of_experiments_has_the_keys_of_the_program_and_no_others() {
    let schema = schema("experiment");
    for table in ["", "load", "loads.one", "design", "expect", "quick"] {
        let properties = match table {
            "" => &schema["properties"],
            "loads.one" => &schema["properties"]["loads"]["additionalProperties"]["properties"],
            _ => &schema["properties"][table]["properties"],
        };
        let properties = properties.as_object().unwrap();
        let known = keys_of_the_program(table);
        for key in &known {
            assert!(properties.contains_key(key), "[{table}] {key} is missing");
        }
        for key in properties.keys() {
            let line = match table {
                "" => format!("{key} = 0\n"),
                _ => format!("title = \"x\"\n[{table}]\n{key} = 0\n"),
            };
            // Whatever is wrong with the value, the key is known.
            let shown = parse(&line).map_or_else(|error| rendered(&error), |_| String::new());
            assert!(!shown.contains("unknown key"), "[{table}] {key}: {shown}");
        }
    }
}
