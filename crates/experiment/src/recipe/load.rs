//! The built-in recipes, and those in the user's folders.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};

use super::{Recipe, RecipeError, read};
use crate::manifest::{entries, folders_with};
use config::open::open;

static EMBEDDED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/servers");

/// A folder beside those of recipes. Its files are in each of them, below this name.
const SHARED: &str = "shared";
/// A folder of build results, which is none of a recipe's.
const BUILT: &str = "target";
const LARGEST_FOLDER_BYTES: u64 = 16 * 1024 * 1024;
const MOST_FILES: usize = 500;

/// The recipes by name: the program's, and those in each of `dirs`, which has one folder per recipe.
/// Where names are equal the later recipe wins.
pub(crate) fn recipes(dirs: &[PathBuf]) -> Result<BTreeMap<String, Recipe>, RecipeError> {
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
        let source_name = format!("servers/{name}/recipe.toml");
        let recipe = read::recipe(name, &source_name, &text, files)?;
        by_name.insert(name.to_owned(), recipe);
    }
    for dir in dirs {
        let mut shared = BTreeMap::new();
        if dir.join(SHARED).is_dir() {
            folder_files(&dir.join(SHARED), dir, &mut shared, &mut 0)?;
        }
        let folders = folders_with(dir, "recipe.toml").map_err(|why| unreadable(dir, why))?;
        for (name, folder) in folders {
            by_name.insert(name.clone(), from_folder(&name, &folder, shared.clone())?);
        }
    }
    Ok(by_name)
}

fn unreadable(path: &Path, why: std::io::Error) -> RecipeError {
    let path = path.to_owned();
    RecipeError::Unreadable { path, why }
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
    for inner in dir.dirs().filter(|inner| !inner.path().ends_with(BUILT)) {
        embedded_files(inner, root, files);
    }
}

fn from_folder(
    name: &str,
    folder: &Path,
    mut files: BTreeMap<String, Vec<u8>>,
) -> Result<Recipe, RecipeError> {
    let file = folder.join("recipe.toml");
    let text = open(&file)?;
    folder_files(folder, folder, &mut files, &mut 0)?;
    let recipe = read::recipe(name, &file.display().to_string(), &text, files)?;
    Ok(Recipe {
        folder: Some(folder.to_owned()),
        ..recipe
    })
}

/// Adds the files below `dir` by their paths relative to `root`, and counts their bytes.
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
    for path in entries(dir).map_err(|why| unreadable(dir, why))? {
        // Links are not followed, so no folder is its own descendant.
        let about = std::fs::symlink_metadata(&path).map_err(|why| unreadable(&path, why))?;
        if about.is_dir() && path.ends_with(BUILT) {
            continue;
        }
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
        let content = std::fs::read(&path).map_err(|why| unreadable(&path, why))?;
        files.insert(name.to_owned(), content);
    }
    Ok(())
}
