//! Where recipes come from: the program itself, and folders of the user's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};

use crate::driver::{Driver, DriverError, Drivers};
use crate::file::Experiment;
use crate::recipe::{Recipe, RecipeError, read};
use config::open::open;

static EMBEDDED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../servers");

/// A folder beside those of recipes. Its files are in each of them, below this name.
const SHARED: &str = "shared";
/// A recipe's folder holds configuration and small programs.
const LARGEST_FOLDER_BYTES: u64 = 16 * 1024 * 1024;
const MOST_FILES: usize = 500;

/// All that can be named in an experiment: recipes of servers, and drivers.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipes {
    by_name: BTreeMap<String, Recipe>,
    drivers: Drivers,
}

impl Recipes {
    /// The recipes and drivers of the program, and recipes in folders of the user's.
    ///
    /// Each of `dirs` holds one folder per recipe; where two have the same name the later wins,
    /// and the program's own come first. A folder without a `recipe.toml` is passed over.
    ///
    /// # Errors
    /// When a folder cannot be read or a `recipe.toml` has mistakes.
    pub fn load(dirs: &[PathBuf]) -> Result<Self, RecipeError> {
        let mut by_name = BTreeMap::new();
        let mut shared = BTreeMap::new();
        if let Some(dir) = EMBEDDED.get_dir(SHARED) {
            embedded_files(dir, Path::new(""), &mut shared);
        }
        for dir in EMBEDDED.dirs() {
            let Some(name) = dir.path().file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            let mut files = shared.clone();
            embedded_files(dir, dir.path(), &mut files);
            let Some(text) = files.get("recipe.toml") else {
                continue;
            };
            let text = String::from_utf8_lossy(text).into_owned();
            let shown = format!("servers/{name}/recipe.toml");
            by_name.insert(name.to_owned(), read::recipe(name, &shown, &text, files)?);
        }
        for dir in dirs {
            let mut shared = BTreeMap::new();
            if dir.join(SHARED).is_dir() {
                folder_files(&dir.join(SHARED), dir, &mut shared, &mut 0)?;
            }
            for folder in folders(dir)? {
                let (name, recipe) = from_folder(&folder, shared.clone())?;
                by_name.insert(name, recipe);
            }
        }
        let drivers = Drivers::load(&[])?;
        Ok(Self { by_name, drivers })
    }

    /// Adds the drivers in folders of the user's, as [`Drivers::load`] finds them.
    ///
    /// # Errors
    /// When a folder cannot be read or a `driver.toml` has mistakes.
    pub fn with_drivers(mut self, dirs: &[PathBuf]) -> Result<Self, DriverError> {
        self.drivers = Drivers::load(dirs)?;
        Ok(self)
    }

    /// The drivers.
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

    /// The recipes that are in the program.
    ///
    /// # Errors
    /// None in a program that passed its tests.
    pub fn embedded() -> Result<Self, RecipeError> {
        Self::load(&[])
    }

    /// The recipe of that name.
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

fn embedded_files(dir: &Dir<'_>, root: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
    for file in dir.files() {
        if let Some(path) = file
            .path()
            .strip_prefix(root)
            .ok()
            .and_then(|path| path.to_str())
        {
            files.insert(path.to_owned(), file.contents().to_vec());
        }
    }
    for inner in dir.dirs() {
        embedded_files(inner, root, files);
    }
}

/// The folders in `dir` that hold a recipe, in alphabetical order.
fn folders(dir: &Path) -> Result<Vec<PathBuf>, RecipeError> {
    let mut found: Vec<PathBuf> = entries(dir)?
        .into_iter()
        .filter(|path| path.join("recipe.toml").is_file())
        .collect();
    found.sort();
    Ok(found)
}

fn from_folder(
    folder: &Path,
    mut files: BTreeMap<String, Vec<u8>>,
) -> Result<(String, Recipe), RecipeError> {
    let name = folder
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let file = folder.join("recipe.toml");
    let text = open(&file)?;
    let mut bytes = 0;
    folder_files(folder, folder, &mut files, &mut bytes)?;
    let recipe = read::recipe(&name, &file.display().to_string(), &text, files)?;
    Ok((name, recipe))
}

fn folder_files(
    dir: &Path,
    root: &Path,
    files: &mut BTreeMap<String, Vec<u8>>,
    bytes: &mut u64,
) -> Result<(), RecipeError> {
    let too_large = |what: String| RecipeError::TooLarge {
        path: root.to_owned(),
        what,
    };
    for path in entries(dir)? {
        let unreadable = |why| RecipeError::Unreadable {
            path: path.clone(),
            why,
        };
        // Links are not followed, so no folder is its own descendant.
        let about = std::fs::symlink_metadata(&path).map_err(unreadable)?;
        if about.is_dir() {
            folder_files(&path, root, files, bytes)?;
            continue;
        }
        let Some(name) = path.strip_prefix(root).ok().and_then(|path| path.to_str()) else {
            continue;
        };
        if !about.is_file() {
            continue;
        }
        *bytes += about.len();
        if *bytes > LARGEST_FOLDER_BYTES {
            return Err(too_large(format!(
                "more than {LARGEST_FOLDER_BYTES} bytes of files"
            )));
        }
        if files.len() == MOST_FILES {
            return Err(too_large(format!("more than {MOST_FILES} files")));
        }
        files.insert(name.to_owned(), std::fs::read(&path).map_err(unreadable)?);
    }
    Ok(())
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>, RecipeError> {
    let unreadable = |why| RecipeError::Unreadable {
        path: dir.to_owned(),
        why,
    };
    std::fs::read_dir(dir)
        .map_err(unreadable)?
        .map(|entry| entry.map(|entry| entry.path()).map_err(unreadable))
        .collect()
}
