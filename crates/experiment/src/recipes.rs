//! Everything that an experiment can name: recipes and drivers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::driver::{Driver, DriverError, Drivers};
use crate::recipe::{self, Recipe, RecipeError};
use crate::spec::Experiment;

/// Recipes of servers, and drivers.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipes {
    by_name: BTreeMap<String, Recipe>,
    drivers: Drivers,
}

/// A recipe or driver that cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    #[error(transparent)]
    Driver(#[from] DriverError),
}

config::shown_as!(LoadError: Recipe, Driver);

impl Recipes {
    /// The built-in recipes and drivers, and those in the user's folders.
    ///
    /// Each of `recipe_dirs` holds one folder per recipe, each of `driver_dirs` one per driver.
    /// Where names are equal the later wins, and the built-in ones come first. A folder without a
    /// `recipe.toml` or `driver.toml` is ignored.
    ///
    /// # Errors
    /// When a folder cannot be read, or one of the files has mistakes.
    pub fn load(recipe_dirs: &[PathBuf], driver_dirs: &[PathBuf]) -> Result<Self, LoadError> {
        Ok(Self {
            by_name: recipe::recipes(recipe_dirs)?,
            drivers: Drivers::load(driver_dirs)?,
        })
    }

    /// The built-in recipes and drivers.
    ///
    /// # Errors
    /// None in a program that passed its tests.
    pub fn embedded() -> Result<Self, LoadError> {
        Self::load(&[], &[])
    }

    pub fn drivers(&self) -> &Drivers {
        &self.drivers
    }

    /// The driver of that name; `None` also for the built-in engine.
    pub fn driver(&self, name: &str) -> Option<&Driver> {
        self.drivers.get(name)
    }

    /// The outside drivers that an experiment runs under any of its conditions, each once.
    pub fn drivers_of(&self, experiment: &Experiment) -> Vec<&Driver> {
        let mut found: Vec<&Driver> = Vec::new();
        for choice in experiment.drivers() {
            let driver = self.driver(&choice.name);
            found.extend(driver.filter(|one| !found.iter().any(|known| known.name == one.name)));
        }
        found
    }

    pub fn get(&self, name: &str) -> Option<&Recipe> {
        self.by_name.get(name)
    }

    /// The names, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// The recipes, in alphabetical order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Recipe> {
        self.by_name.values()
    }
}
