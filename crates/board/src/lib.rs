//! A site of static pages from any number of runs: a page for each experiment, a page for each server
//! across the experiments, and an index of both, each with its data as JSON.
//!
//! Everything here is a pure function of the runs: the same journals give the same bytes. Nothing is
//! judged here: figures, intervals, places and sentences are those of [`verdict`].

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod evidence;
mod experiment;
mod group;
mod html;
mod index;
mod server;
mod table;

use readings::Journal;
use report::RunFacts;
use serde_json::Value;

use crate::experiment::ExperimentPage;
use crate::group::Group;

/// The files of a run.
pub struct Run {
    pub journal: Journal,
    pub facts: RunFacts,
    /// `experiment.toml`, if it exists.
    pub experiment: Option<String>,
    /// `hosts.json`, if it exists.
    pub hosts: Option<Value>,
}

/// What is known of recipes.
pub trait Recipes {
    /// The description of a recipe, for a person to read; `None` where there is none of that name.
    fn text(&self, name: &str) -> Option<String>;

    /// Whether a recipe runs whatever it is told, so that its servers have nothing in common.
    fn is_generic(&self, name: &str) -> bool;
}

/// A file of the site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name in the site's folder: letters, digits, `-`, `_` and `.` only.
    pub name: String,
    pub text: String,
}

/// The files of the site, by name.
///
/// Runs with the same name and title of the experiment are runs of one experiment. The newest that
/// compares anything is shown, all are its history. A run that is given twice counts once.
pub fn board(runs: Vec<Run>, recipes: &dyn Recipes) -> Vec<File> {
    let groups = group::groups(runs);
    let names = server::Names::of(&groups, recipes);
    let pages: Vec<ExperimentPage<'_>> = groups
        .iter()
        .map(|group| ExperimentPage::of(group, &names))
        .collect();
    let mut files = vec![html::document("index", &index::json(&pages, &names))];
    files.push(html::page("index", &index::html(&pages, &names)));
    for page in &pages {
        files.extend(page.files());
    }
    for name in names.all() {
        files.extend(server::files(name, &pages, recipes));
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    files
}

/// The runs of one experiment that a page is about.
fn title(group: &Group) -> &str {
    &group.shown().run.journal.header.title
}
