//! Asking a driver for its version.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Driver;
use super::render::Filler;
use crate::manifest::printed;

impl Driver {
    /// The version of the installed program; `None` where it does not report one within 3 s.
    /// `weigh` is the running program.
    pub fn version(&self, weigh: &Path) -> Option<String> {
        let programs = self.available().programs;
        self.version_in(&printed(&self.version_words(&programs, weigh)?)?)
    }

    /// The command that prints its version.
    pub fn version_words(
        &self,
        programs: &BTreeMap<String, PathBuf>,
        weigh: &Path,
    ) -> Option<Vec<String>> {
        let version = self.version.as_ref()?;
        let filler = Filler::new(self, programs, weigh);
        filler.words("version.command", &version.command).ok()
    }

    /// The version in the output of that command.
    pub fn version_in(&self, text: &str) -> Option<String> {
        self.version.as_ref()?.find_in(text)
    }
}
