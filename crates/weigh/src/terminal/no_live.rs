//! The live view in a build without it.

use std::convert::Infallible;
use std::io::{IsTerminal, stderr};

use load::{Job, Progress};

use crate::signals::Signals;

/// A live view that cannot be opened.
pub struct Live(Infallible);

impl Live {
    /// Says on a terminal why nothing is drawn.
    pub fn open(_: &Job, _: bool, _: &str, _: &Signals) -> Option<Self> {
        if stderr().is_terminal() {
            eprintln!("weigh: this build has no live view: build it with --features full");
        }
        None
    }

    pub fn take(&mut self, _: &Progress) -> bool {
        match self.0 {}
    }

    pub fn is_stopped(&self) -> bool {
        match self.0 {}
    }
}
