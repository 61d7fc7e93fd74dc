//! Packages of registries, sources that come with a recipe, and the parameter `version`.

use std::fs;
use testing::Text as _;

use super::rules::{load, own, text};
use crate::support::{good, recipes, rendered, scratch};
use experiment::driver::Drivers;
use experiment::manifest::Value;
use experiment::{Experiment, Recipes};

/// A recipe with these packages. Its program is a shell, which says that it is version 1.22.1.
fn recipe(packages: &str) -> String {
    format!(
        "summary = \"s\"\n[programs]\ntool = [\"sh\"]\n[packages]\n{packages}\n\
         [start]\ncommand = [\"{{{{ programs.tool }}}}\"]\n\
         [version]\ncommand = [\"{{{{ programs.tool }}}}\", \"-c\", \"echo tool/1.22.1\"]\nafter = \"tool/\"\n"
    )
}

fn version_of(recipes: &Recipes) -> Option<Value> {
    let param = recipes.get("mine").unwrap().param("version")?;
    param.default.clone()
}

#[test]
fn a_recipe_with_packages_of_registries_has_a_version_to_choose() {
    for (packages, default) in [
        ("debian = [\"a\"]", None),
        ("debian = [\"a\"]\npip = \"a-bin==2.0\"", Some("debian")),
        ("pip = [\"a-bin==2.0\", \"a-bin==1.9\"]", Some("2.0")),
        ("go = \"example.test/cmd/a==v3.1.0\"", Some("v3.1.0")),
        ("npm = \"@scope/a==4.0.0-rc.1\"", Some("4.0.0-rc.1")),
        ("cargo = [\"a==5.0.0\"]", Some("5.0.0")),
    ] {
        let dir = own("versions", "mine", &recipe(packages), &[]);
        let found = version_of(&load(&dir).unwrap());
        assert_eq!(found, default.map(text), "{packages}");
    }
    let both = recipe("pip = \"a==1\"\n[params.version]\ntype = \"string\"\ndefault = \"x\"");
    let error = load(&own("version-twice", "mine", &both, &[])).unwrap_err();
    assert!(rendered(&error).contains("`params.version` is made from `packages`"));
}

#[test]
fn each_version_names_the_command_that_installs_it() {
    let missing = recipe("debian = [\"a\"]\npip = [\"a-bin==2.0\", \"a-bin==1.9\"]")
        .replace("[\"sh\"]", "[\"no-such-program\"]");
    let recipes = load(&own("install", "mine", &missing, &[])).unwrap();
    let mine = recipes.get("mine").unwrap();
    let command = |version| mine.available_in(version).install_command.unwrap();
    for (version, expected) in [
        (None, "apt-get install --no-install-recommends a"),
        (Some("debian"), "apt-get install --no-install-recommends a"),
        (Some("2.0"), "weigh install mine --version 2.0"),
        (Some("1.9"), "weigh install mine --version 1.9"),
    ] {
        assert_eq!(command(version), expected, "{version:?}");
    }
    let only = missing.replace("debian = [\"a\"]\n", "");
    let recipes = load(&own("install-only", "mine", &only, &[])).unwrap();
    let mine = recipes.get("mine").unwrap();
    let command = |version| mine.available_in(version).install_command.unwrap();
    assert_eq!(command(None), "weigh install mine");
    assert_eq!(command(Some("2.0")), "weigh install mine");
    assert_eq!(command(Some("1.9")), "weigh install mine --version 1.9");
}

#[test]
fn another_version_has_to_be_the_one_that_is_installed() {
    let toml = recipe("debian = [\"a\"]\npip = \"a-bin==2.0\"");
    let recipes = load(&own("installed", "mine", &toml, &[])).unwrap();
    let mine = recipes.get("mine").unwrap();
    let sentence = |version| mine.available_in(version).sentence();
    for right in [None, Some("debian"), Some("1.22"), Some("1.22.1")] {
        assert_eq!(sentence(right), None, "{right:?}");
    }
    assert_eq!(
        sentence(Some("1.2")).unwrap(),
        "tool 1.22.1 is installed, not 1.2: `weigh list mine`"
    );
    assert_eq!(
        sentence(Some("2.0")).unwrap(),
        "tool 1.22.1 is installed, not 2.0: `weigh install mine --version 2.0`"
    );
}

#[test]
fn an_experiment_needs_each_version_that_a_factor_names() {
    let text = "title = \"t\"\n[servers.a]\nrecipe = \"nginx\"\n[servers.b]\nrecipe = \"nginx\"\n\
                with = { version = \"1.31.3\" }\n[servers.c]\nrecipe = \"origin\"\n[subjects]\n\
                a = \"http://a/\"\nb = \"http://b/\"\nc = \"http://c/\"\n\
                [factors]\n\"a.version\" = [\"1.22\", \"1.31.3\"]\n[design]\nbaseline = \"a\"\n";
    let recipes = recipes();
    let experiment = good(Experiment::parse("x.toml", text, &[], false, recipes));
    let needed = experiment.needed(recipes);
    let needed: Vec<_> = needed
        .iter()
        .map(|one| {
            (
                one.recipe.name.as_str(),
                one.version.as_deref(),
                one.servers.join(" "),
            )
        })
        .collect();
    assert_eq!(
        needed,
        [
            ("nginx", Some("1.22"), "a".to_owned()),
            ("nginx", Some("1.31.3"), "a b".to_owned()),
            ("origin", None, "c".to_owned()),
        ]
    );
}

#[test]
fn sources_in_a_recipe_are_known_by_their_content() {
    let toml = recipe("cargo = \"path:program\"");
    let manifest = "[package]\nname = \"tool\"\n";
    let files = |main: &'static str| {
        [
            ("program/Cargo.toml", manifest),
            ("program/Cargo.lock", "version = 4\n"),
            ("program/src/main.rs", main),
            ("programs.txt", "not a part of it"),
        ]
    };
    let package = |test: &str, main| {
        let dir = own(test, "mine", &toml, &files(main));
        let built = dir.join("mine/program/target/debug");
        fs::create_dir_all(&built).unwrap();
        fs::write(built.join(test), "built").unwrap();
        let recipes = load(&dir).unwrap();
        let mine = recipes.get("mine").unwrap();
        assert!(mine.param("version").is_none());
        let package = mine.packages.pinned(None).unwrap().clone();
        let sources: Vec<String> = mine.sources(&package).into_keys().collect();
        assert_eq!(sources, ["Cargo.lock", "Cargo.toml", "src/main.rs"]);
        package
    };
    let first = package("sources-1", "fn main() {}");
    assert_eq!(first, package("sources-2", "fn main() {}"));
    let other = package("sources-3", "fn main() { }");
    assert_ne!(first.version, other.version);
    assert_eq!(first.install, "weigh install mine");

    let mut brought = files("fn main() {}");
    brought[0].0 = "program/Cargo.toml.in";
    let recipes = load(&own("sources-6", "mine", &toml, &brought)).unwrap();
    let mine = recipes.get("mine").unwrap();
    let package = mine.packages.pinned(None).unwrap();
    assert_eq!(*package, first);
    assert!(mine.sources(package).contains_key("Cargo.toml"));

    let lacking = own("sources-4", "mine", &toml, &files("")[..1]);
    let said = rendered(&load(&lacking).unwrap_err());
    said.has("the recipe has no file `program/Cargo.lock`");
    let pip = recipe("pip = \"path:program\"");
    let said = rendered(&load(&own("sources-5", "mine", &pip, &files(""))).unwrap_err());
    said.has("`packages.pip` has no packages of a folder");
}

#[test]
fn a_driver_may_come_from_a_registry() {
    let dir = scratch("driver-package");
    fs::create_dir(dir.join("mine")).unwrap();
    let toml = "title = \"t\"\nreader = \"wrk\"\n[packages]\ncargo = \"no-such==1.2.3\"\n[programs]\n\
                x = [\"no-such-program\"]\n[run]\ncommand = [\"{{ programs.x }}\", \"{{ url }}\", \
                \"{{ connections }}\", \"{{ duration_s }}\"]\n";
    fs::write(dir.join("mine/driver.toml"), toml).unwrap();
    let drivers = match Drivers::load(std::slice::from_ref(&*dir)) {
        Ok(drivers) => drivers,
        Err(error) => panic!("{}", rendered(&error)),
    };
    assert_eq!(
        drivers.get("mine").unwrap().available().sentence().unwrap(),
        "no-such-program is not installed: `weigh install mine`"
    );
}
