//! The options for gates, and for results in continuous integration.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

/// The options of `run`, `compare` and `report`.
#[derive(Clone, Debug, Default, Args)]
pub struct GateArgs {
    /// A bound that fails the run, such as 'throughput > -3%', 'p99 < +10%', 'head: p99 < 20ms' or
    /// 'failed < 0.1%'; may be repeated. If it is breached, the exit status is 3.
    #[arg(long = "gate", value_name = "GATE")]
    pub gates: Vec<String>,
    /// Whether unsettled gates pass or fail [default: pass].
    #[arg(long, value_enum)]
    pub unsettled: Option<Unsettled>,
    /// Write a comment for a pull request as Markdown; `-` is standard output, to which nothing
    /// else is then written.
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write the gates as JUnit XML, one test case each; `-` is standard output, to which nothing
    /// else is then written.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}

/// Whether unsettled gates pass or fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Unsettled {
    /// The run did not show that the gate is breached.
    Pass,
    /// The run did not show that the gate is met.
    Fail,
}

impl GateArgs {
    /// Whether unsettled gates fail the run.
    ///
    /// By default they do not. A run that is too short for a bound says nothing about the change,
    /// and people switch off a check that fails because of its own noise.
    pub fn unsettled_fails(&self) -> bool {
        self.unsettled == Some(Unsettled::Fail)
    }

    /// The options whose file is standard output.
    pub fn printed(&self) -> Vec<&'static str> {
        let files = [("--markdown", &self.markdown), ("--junit", &self.junit)];
        let is_output = |file: &Option<PathBuf>| file.as_deref().is_some_and(is_output);
        let printed = files.into_iter().filter(|(_, file)| is_output(file));
        printed.map(|(option, _)| option).collect()
    }
}

/// Whether a file's name stands for standard output.
pub fn is_output(file: &Path) -> bool {
    file.as_os_str() == "-"
}
