//! An experiment from a command's options instead of a file.

use crate::file::error::ExperimentError;
use crate::file::parse;
use crate::recipes::Recipes;
use crate::spec::Experiment;
use config::reader::{Problem, Reader};
use config::tree::{Entry, Node, Place, Table, Tree};
use config::units::shown;

/// Builds an [`Experiment`] from values, with the checks that a file goes through.
///
/// Values have the keys and types of an experiment file. A mistake is shown in the option that
/// caused it.
#[derive(Debug)]
pub struct ExperimentBuilder {
    name: String,
    reader: Reader,
    top: Table,
}

impl ExperimentBuilder {
    /// Begins an experiment of that name. `command` is shown in messages.
    pub fn new(name: &str, command: &str) -> Self {
        Self {
            name: name.to_owned(),
            reader: Reader::new(command, ""),
            top: Table::default(),
        }
    }

    /// Sets a key, such as `["design", "warmup"]`, to a value that no option gave.
    pub fn set(&mut self, path: &[&str], value: impl Into<Tree>) {
        self.put(path, value.into(), Place::default());
    }

    /// Sets a key to the value of an option; `written` is the option as the user wrote it.
    pub fn option(&mut self, written: &str, path: &[&str], value: impl Into<Tree>) {
        let command = self
            .reader
            .source(0)
            .map_or("", |(name, _)| name)
            .to_owned();
        let source = self.reader.add_source(&command, written.to_owned());
        let place = Place {
            source,
            start: 0,
            end: written.len(),
        };
        self.put(path, value.into(), place);
    }

    fn put(&mut self, path: &[&str], value: Tree, place: Place) {
        let Some((last, tables)) = path.split_last() else {
            return;
        };
        let mut table = &mut self.top;
        for name in tables {
            match table.table_mut(name, place) {
                Some(inner) => table = inner,
                None => return,
            }
        }
        if let Some(first) = table.get(last) {
            let message = format!("`{}` is given twice", shown(last));
            let problem = Problem::at(place, message, "the second");
            self.reader.report(problem.and(first.place, "the first"));
            return;
        }
        table.put(Entry {
            name: (*last).to_owned(),
            place,
            node: Node { place, tree: value },
        });
    }

    /// The experiment.
    ///
    /// # Errors
    /// [`ExperimentError::Mistakes`] with every mistake that was found.
    pub fn build(self, recipes: &Recipes) -> Result<Experiment, ExperimentError> {
        self.build_with(&[], recipes)
    }

    /// The experiment, with overrides as in [`Experiment::parse`].
    ///
    /// # Errors
    /// As of [`Self::build`].
    pub fn build_with(
        self,
        sets: &[(String, String)],
        recipes: &Recipes,
    ) -> Result<Experiment, ExperimentError> {
        let Self {
            name,
            mut reader,
            top,
        } = self;
        let experiment = parse::whole(&mut reader, &name, top, sets, false, recipes);
        match reader.finish() {
            None => Ok(experiment),
            Some(mistakes) => Err(mistakes.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_shown_in_the_option_that_caused_it() {
        let recipes = Recipes::embedded().unwrap();
        let mut builder = ExperimentBuilder::new("compare", "weigh compare");
        builder.set(&["title"], "a against b");
        builder.option("a=http://h:1/", &["subjects", "a"], "http://h:1/");
        builder.option("a=http://h:2/", &["subjects", "a"], "http://h:2/");
        builder.option("--blocks 5000", &["design", "blocks"], 5000);
        builder.option("--matters 3", &["design", "matters"], "3");
        let ExperimentError::Mistakes(mistakes) = builder.build(&recipes).unwrap_err() else {
            panic!("expected mistakes");
        };
        let told: Vec<String> = mistakes.all().iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "`a` is given twice (the first: line 1 of weigh compare)",
                "`design.blocks` is out of range: 5000",
                "`design.matters` is not a valid share: `3`",
            ]
        );
    }

    #[test]
    fn values_become_an_experiment() {
        let recipes = Recipes::embedded().unwrap();
        let mut builder = ExperimentBuilder::new("compare", "weigh compare");
        builder.set(&["title"], "t");
        builder.option("a=http://h:1/x", &["subjects", "a"], "http://h:1/x");
        builder.option("--rate 5.5", &["load", "rate"], 5.5);
        builder.option("--bottleneck=false", &["design", "bottleneck"], false);
        let built = builder.build(&recipes).unwrap();
        let text = "title = \"t\"\nname = \"compare\"\n[subjects]\na = \"http://h:1/x\"\n\
                    [load]\nrate = 5.5\n[design]\nbottleneck = false\n";
        let parsed = Experiment::parse("x.toml", text, &[], false, &recipes).unwrap();
        assert_eq!(built, parsed);
    }
}
