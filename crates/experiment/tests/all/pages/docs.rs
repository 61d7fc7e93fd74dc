//! The documents say what the program does: their examples are read, their names exist.

use std::path::{Path, PathBuf};

use crate::recipes::rules::context;
use crate::support::{good, parse, parse_set, recipes, rendered, scratch};
use experiment::driver::Drivers;
use experiment::{Experiment, Recipes, catalogue};

fn document(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/src")
        .join(name);
    std::fs::read_to_string(path).unwrap()
}

/// The blocks of code in a document that are marked as being in a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    text.split("```")
        .skip(1)
        .step_by(2)
        .filter_map(|block| block.strip_prefix(&format!("{language}\n")))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_example_of_an_experiment_can_be_run() {
    let text = &blocks(&document("reference/experiments.md"), "toml")[0];
    let experiment = good(parse(text));
    assert_eq!(experiment.conditions().len(), 2);
    let sets = [
        ("design.blocks", "20"),
        ("load.timeout", "10s"),
        ("factors.connections", "[8, 64]"),
        ("servers.proxy.with.workers", "2"),
    ];
    for (key, value) in sets {
        let shown = document("reference/experiments.md");
        assert!(
            shown.contains(&format!("{key}={value}")),
            "--set {key}={value}"
        );
    }
    good(parse_set(text, &sets));
}

#[test]
fn the_example_of_hosts_can_be_run() {
    let text = &blocks(&document("how-to/hosts.md"), "toml")[0];
    let experiment = good(parse(text));
    assert!(experiment.hosts_are_apart());
    assert_eq!(experiment.conditions().len(), 3);
    let machines = blocks(&document("how-to/machines.md"), "toml");
    assert!(machines.len() >= 2);
    for text in &machines {
        assert!(good(parse(text)).hosts_are_machines());
    }
}

#[test]
fn the_examples_of_tls_can_be_run() {
    let examples = blocks(&document("how-to/tls.md"), "toml");
    let conditions = examples
        .iter()
        .map(|text| good(parse(text)).conditions().len());
    assert_eq!(conditions.collect::<Vec<_>>(), [4, 2, 2]);
}

#[test]
fn the_example_of_a_recipe_can_be_loaded() {
    let text = document("reference/recipes.md");
    let dir = scratch("documented-recipe");
    let folder = dir.join("tiny");
    std::fs::create_dir_all(folder.join("htdocs")).unwrap();
    std::fs::write(folder.join("recipe.toml"), &blocks(&text, "toml")[0]).unwrap();
    let template = text.split("with `tiny.conf.j2`:\n\n```\n").nth(1).unwrap();
    let template = template.split("```").next().unwrap();
    std::fs::write(folder.join("tiny.conf.j2"), template).unwrap();
    std::fs::write(folder.join("htdocs/index.html"), "it works").unwrap();
    let recipes = Recipes::load(std::slice::from_ref(&*dir), &[])
        .unwrap_or_else(|error| panic!("{}", rendered(&error)));
    let tiny = recipes.get("tiny").unwrap();
    let out = tiny.render(&context(tiny, Path::new("/d"), &[])).unwrap();
    let config = String::from_utf8_lossy(&out.files[0].bytes).into_owned();
    assert!(config.contains("buffer 65536\n"), "{config}");
}

/// Every key that the program writes out, and every name it has, stands in the document.
#[test]
fn the_documents_name_everything() {
    let experiments = document("reference/experiments.md");
    let listed = document("reference/catalogue.md");
    for name in catalogue::names() {
        assert!(listed.contains(&format!("| `{name}` |")), "{name}");
        let experiment: Experiment = good(catalogue::open_experiment(name, &[], false, recipes()));
        let table: toml::Table = experiment.to_toml().parse().unwrap();
        for (key, value) in &table {
            assert!(experiments.contains(key.as_str()), "{key}");
            if let ("load" | "design" | "expect", Some(inner)) = (key.as_str(), value.as_table()) {
                for key in inner.keys() {
                    assert!(experiments.contains(&format!("| `{key}` |")), "{key}");
                }
            }
        }
    }
    let shown = document("reference/recipes.md");
    for name in recipes().names() {
        assert!(shown.contains(&format!("| `{name}` |")), "{name}");
    }
}

#[test]
fn the_example_of_a_driver_can_be_loaded() {
    let text = document("reference/drivers.md");
    let examples = blocks(&text, "toml");
    let dir = scratch("documented-driver");
    std::fs::create_dir_all(dir.join("tiny")).unwrap();
    std::fs::write(dir.join("tiny/driver.toml"), &examples[1]).unwrap();
    let drivers = Drivers::load(std::slice::from_ref(&*dir))
        .unwrap_or_else(|error| panic!("{}", rendered(&error)));
    let tiny = drivers.get("tiny").unwrap();
    assert!(tiny.uses("connections") && !tiny.has_open_loop());
    for driver in drivers.iter().filter(|driver| driver.name != "tiny") {
        assert!(text.contains(&format!("| `{}` |", driver.name)));
        for package in &driver.packages.debian {
            assert!(text.contains(&format!("`{package}`")), "{package}");
        }
    }
    // A mistake lists every key, and every name of the templates.
    let wrong = "[run]\ncommand = [\"{{ qqqq }}\"]\nzzzz = 1\n[cannot]\nyyyy = \"\"\n[xxxx]\n";
    let dir = scratch("wrong-driver");
    std::fs::create_dir_all(dir.join("wrong")).unwrap();
    std::fs::write(dir.join("wrong/driver.toml"), wrong).unwrap();
    let shown = rendered(&Drivers::load(std::slice::from_ref(&*dir)).unwrap_err());
    let helps = shown.split("help: ").skip(1);
    let mut names = 0;
    for help in
        helps.filter(|help| help.starts_with("known keys") || help.starts_with("known names"))
    {
        let list = help.split("Error:").next().unwrap();
        for name in list.split('`').skip(1).step_by(2) {
            let known = [
                format!("`{name}`"),
                format!("`[{name}]`"),
                format!("`{name}."),
            ];
            assert!(
                known.iter().any(|form| text.contains(form.as_str()))
                    || text.contains(&format!("`[{name}.NAME]`")),
                "{name}"
            );
            names += 1;
        }
    }
    assert!(names > 40, "{names} names in\n{shown}");
}

#[test]
fn the_experiments_with_a_crossroads_file_take_the_real_program() {
    let recipes = recipes();
    let shown = document("reference/catalogue.md");
    let servers = [
        ("crossroads-squid", "balancer"),
        ("crossroads-lvs", "balancer"),
        ("crossroads-failover", "crossroads"),
    ];
    for (name, server) in servers {
        let key = format!("servers.{server}.recipe");
        assert!(shown.contains(&format!("weigh run {name} --set {key}=crossroads")));
        let set = [(key, "crossroads".to_owned())];
        let experiment = catalogue::open_experiment(name, &set, false, recipes).unwrap();
        let order = experiment.start_order();
        let real: Vec<_> = order
            .iter()
            .filter(|one| one.recipe == "crossroads")
            .collect();
        assert_eq!(real.len(), 1, "{name}");
        assert_eq!(real[0].name, server);
    }
}
