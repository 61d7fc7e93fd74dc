//! Which version of a recipe's programs a server runs, and whether this machine has it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use installed::{Availability, DEBIAN, PinnedPackage, is_version_of};
use minijinja::context;

use super::Recipe;
use crate::manifest::{VERSION, Value, environment, printed, programs_seen, sources};

impl Recipe {
    /// Looks for the recipe's programs in the usual version, and for the files it needs.
    pub fn available(&self) -> Availability {
        self.available_in(None)
    }

    /// The same for a version. A program outside the cache of `weigh install` is asked for its version
    /// where that matters.
    pub fn available_in(&self, version: Option<&str>) -> Availability {
        let mut found = self.look(version);
        if let Some(wanted) = self.version_to_check(version, &found) {
            let words = self.version_words(&found.programs);
            let told = words.and_then(|words| self.version_in(&printed(&words)?));
            self.check_version(&mut found, wanted, told.as_deref());
        }
        found
    }

    /// Looks for programs in the cache of `weigh install` and in PATH (and where Debian keeps
    /// servers), and for files. Nothing is run, so what is in PATH may have another version.
    pub fn look(&self, version: Option<&str>) -> Availability {
        installed::look(
            &self.programs,
            &self.needs,
            &self.packages,
            version,
            self.homepage.as_deref(),
        )
    }

    /// The version that a server with these parameters runs; `None` for a recipe without a choice.
    pub fn wanted_version<'p>(&self, params: &'p BTreeMap<String, Value>) -> Option<&'p str> {
        match params.get(VERSION) {
            Some(Value::Text(version)) if self.packages.has_versions() => Some(version),
            _ => None,
        }
    }

    /// The version that the programs that were found should have, where that has to be checked: not
    /// if they are pinned, or any version will do.
    pub fn version_to_check<'v>(
        &'v self,
        version: Option<&'v str>,
        found: &Availability,
    ) -> Option<&'v str> {
        let usual = self
            .packages
            .has_versions()
            .then(|| self.packages.usual_version());
        let wanted = version.or(usual.flatten())?;
        (!found.is_pinned && found.is_complete() && wanted != DEBIAN).then_some(wanted)
    }

    /// The command by which these programs tell their version.
    pub fn version_words(&self, programs: &BTreeMap<String, PathBuf>) -> Option<Vec<String>> {
        let command = &self.version.as_ref()?.command;
        let names = context! { programs => programs_seen(&self.programs, programs) };
        let filled = command
            .iter()
            .map(|word| environment().render_str(word, &names).ok());
        filled.collect()
    }

    /// Refuses programs of another version than the wanted one. `told` is what they say; one that says
    /// nothing passes for the usual version only.
    pub fn check_version(&self, found: &mut Availability, wanted: &str, told: Option<&str>) {
        let is_it = match told {
            Some(told) => is_version_of(told, wanted),
            None => self.packages.usual_version() == Some(wanted),
        };
        if is_it {
            return;
        }
        found.refuse_version(wanted, told);
        let pinned = self.packages.pinned(Some(wanted));
        let lists = format!("weigh list {}", self.name);
        found.install_command = Some(pinned.map_or(lists, |package| package.install.clone()));
    }

    /// The files of a package that is a folder of sources, by their paths inside it.
    pub fn sources(&self, package: &PinnedPackage) -> BTreeMap<String, Vec<u8>> {
        let folder = package
            .name
            .split_once('/')
            .map_or("", |(_, folder)| folder);
        match package.kind.is_source {
            true => sources(&self.files, folder)
                .map(|(path, bytes)| (path.to_owned(), bytes.to_vec()))
                .collect(),
            false => BTreeMap::new(),
        }
    }
}
