//! Complete descriptions of recipes, drivers and experiments, for those who write experiments.
//!
//! [`RecipeDescription`], [`DriverDescription`] and [`ExperimentDescription`] are plain data, for
//! JSON documents. Each is also a [`Page`], which has a form for the terminal and one for the
//! book: `weigh list NAME` and the pages of the reference come from the same values.

mod driver;
mod experiment;
mod page;
mod recipe;

use installed::{Packages, PinnedPackage};
use serde::Serialize;

use crate::manifest::{Param, Value};

pub use driver::{DriverDescription, LoadSetting};
pub use experiment::{ExperimentDescription, FactorDescription, ServerDescription, Time};
pub use page::{Page, book};
pub use recipe::{RecipeDescription, RecipeFileDescription, RecipeReadiness};

/// A package that `weigh install` installs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PinnedDescription {
    /// Its kind: the key of `[packages]`.
    pub kind: &'static str,
    /// `NAME==VERSION`, or the folder of its sources.
    pub package: String,
    /// The version; for sources a checksum of them.
    pub version: String,
}

fn pinned(packages: &Packages) -> Vec<PinnedDescription> {
    let one = |package: &PinnedPackage| PinnedDescription {
        kind: package.kind.key,
        package: package.to_string(),
        version: package.version.clone(),
    };
    packages.pinned.iter().map(one).collect()
}

/// Packages for a person to read.
fn pinned_names(all: &[PinnedDescription]) -> String {
    let name = |one: &PinnedDescription| format!("{} ({})", one.package, one.kind);
    all.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// A parameter of a recipe or a driver.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ParamDescription {
    pub name: String,
    /// `integer`, `string`, `boolean`, `list` or `size`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// As it is written in an experiment file; absent if there is no default.
    pub default: Option<serde_json::Value>,
    /// Whether an experiment has to give it.
    pub required: bool,
    /// The least value: of an integer, or of a size in bytes.
    pub min: Option<i64>,
    /// The greatest value: of an integer, or of a size in bytes.
    pub max: Option<i64>,
    /// The only allowed values; empty if any may be given.
    pub one_of: Vec<String>,
    /// The values that it takes, in words.
    pub takes: String,
    /// What it does.
    pub doc: String,
}

impl ParamDescription {
    fn of(param: &Param) -> Self {
        Self {
            name: param.name.clone(),
            kind: param.kind.word(),
            default: param.default.as_ref().and_then(json),
            required: param.default.is_none() && !param.optional,
            min: param.min,
            max: param.max,
            one_of: param.one_of.clone(),
            takes: param.takes(),
            doc: param.doc.clone(),
        }
    }

    /// The default as a person reads it.
    fn default_text(&self) -> String {
        match &self.default {
            Some(value) => value.to_string(),
            None if self.required => "required".to_owned(),
            None => "none".to_owned(),
        }
    }
}

fn params(all: &[Param]) -> Vec<ParamDescription> {
    all.iter().map(ParamDescription::of).collect()
}

fn json(value: &Value) -> Option<serde_json::Value> {
    serde_json::to_value(value.to_toml()).ok()
}

/// Names in code quotes, separated by commas.
fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|one| format!("`{one}`")).collect();
    quoted.join(", ")
}
