//! The command line of `weigh read`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `weigh read`.
#[derive(Debug, Args)]
pub struct ReadArgs {
    /// Texts that hold the outputs, with whatever else around them; `-` is standard input
    /// [default: standard input].
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: ReadFormat,
}

/// The forms of what was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ReadFormat {
    /// For the terminal.
    #[default]
    #[value(alias = "terminal")]
    Text,
    /// Markdown.
    #[value(alias = "markdown")]
    Md,
    /// One JSON document.
    Json,
}
