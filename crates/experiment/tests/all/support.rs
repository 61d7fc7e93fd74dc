//! What the tests share.

use std::path::PathBuf;
use std::sync::LazyLock;

use experiment::{Experiment, ExperimentError, Recipes};
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};

/// An experiment without a mistake, small enough to be changed by a test.
pub const GOOD: &str = include_str!("../good/good.toml");

pub fn recipes() -> &'static Recipes {
    static RECIPES: LazyLock<Recipes> = LazyLock::new(|| match Recipes::embedded() {
        Ok(recipes) => recipes,
        Err(error) => panic!("{}", rendered(&error)),
    });
    &RECIPES
}

pub fn parse(text: &str) -> Result<Experiment, ExperimentError> {
    Experiment::parse("x.toml", text, &[], false, recipes())
}

pub fn parse_set(text: &str, sets: &[(&str, &str)]) -> Result<Experiment, ExperimentError> {
    let sets: Vec<(String, String)> = sets
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    Experiment::parse("x.toml", text, &sets, false, recipes())
}

/// The experiment, or a failed test that shows the mistakes.
pub fn good(result: Result<Experiment, ExperimentError>) -> Experiment {
    match result {
        Ok(experiment) => experiment,
        Err(error) => panic!("{}", rendered(&error)),
    }
}

/// A diagnostic as a terminal shows it, without colours.
pub fn rendered(diagnostic: &dyn Diagnostic) -> String {
    let mut out = String::new();
    GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor())
        .with_width(100)
        .render_report(&mut out, diagnostic)
        .unwrap();
    let lines: Vec<&str> = out.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned() + "\n"
}

/// Compares a text with the file of that name in `tests/shown`.
///
/// With `WEIGH_WRITE_SHOWN=1` in the environment the file is written instead: read what changed
/// before you commit it.
pub fn assert_shown(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/shown")
        .join(format!("{name}.txt"));
    if std::env::var_os("WEIGH_WRITE_SHOWN").is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(
        text, expected,
        "\n{name} is shown differently:\n{text}\nexpected:\n{expected}"
    );
}

/// Fails unless a text is refused as the file of that name in `tests/shown` shows.
pub fn shown(name: &str, text: &str) {
    let error = parse(text).expect_err(name);
    assert_shown(name, &rendered(&error));
}

/// A text with one piece of it changed.
pub fn changed(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "there is no {from:?}");
    text.replacen(from, to, 1)
}

/// A folder of a test's own, gone when it is dropped.
pub struct Scratch(PathBuf);

impl std::ops::Deref for Scratch {
    type Target = PathBuf;

    fn deref(&self) -> &PathBuf {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A folder of the test's own with a short path: messages are wrapped around it.
pub fn scratch(name: &str) -> Scratch {
    let dir = std::env::temp_dir().join(format!("weigh-{}-{name}", std::process::id()));
    std::fs::create_dir(&dir).unwrap();
    Scratch(dir)
}

/// The pairs of a text and of words that are said of it, of a table of `tests/said.toml`.
pub fn said(table: &str) -> Vec<(String, String)> {
    let tables: toml::Table = include_str!("../said.toml").parse().unwrap();
    let text = |value: &toml::Value| value.as_str().unwrap().to_owned();
    let pairs = tables[table].as_array().unwrap().iter();
    pairs.map(|pair| (text(&pair[0]), text(&pair[1]))).collect()
}
