//! The built-in drivers, and those in the user's folders.

use std::collections::BTreeMap;
use std::path::PathBuf;

use include_dir::{Dir, include_dir};

use super::{Driver, DriverError, read};
use crate::manifest::folders_with;
use config::open::open;

static EMBEDDED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/drivers");

/// All drivers that can be named in an experiment, the built-in engine aside.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drivers {
    by_name: BTreeMap<String, Driver>,
}

impl Drivers {
    /// The drivers of the program, and those in `dirs`, each of which has one folder per driver.
    /// Where names are equal the later driver wins. A folder without a `driver.toml` is ignored.
    ///
    /// # Errors
    /// When a folder cannot be read or a `driver.toml` has mistakes.
    pub fn load(dirs: &[PathBuf]) -> Result<Self, DriverError> {
        let mut by_name = BTreeMap::new();
        for dir in EMBEDDED.dirs() {
            let file = dir.get_file(dir.path().join("driver.toml"));
            let name = dir.path().file_name().and_then(|name| name.to_str());
            if let Some((name, text)) = name.zip(file.and_then(|file| file.contents_utf8())) {
                let shown = format!("drivers/{name}/driver.toml");
                by_name.insert(name.to_owned(), read::driver(name, &shown, text)?);
            }
        }
        for dir in dirs {
            let folders = folders_with(dir, "driver.toml").map_err(|why| {
                let path = dir.clone();
                DriverError::Unreadable { path, why }
            })?;
            for (name, folder) in folders {
                let file = folder.join("driver.toml");
                let text = open(&file)?;
                let driver = read::driver(&name, &file.display().to_string(), &text)?;
                by_name.insert(name, driver);
            }
        }
        Ok(Self { by_name })
    }

    pub fn get(&self, name: &str) -> Option<&Driver> {
        self.by_name.get(name)
    }

    /// The names, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// The drivers, in alphabetical order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Driver> {
        self.by_name.values()
    }
}
