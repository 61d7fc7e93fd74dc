//! The arguments of `weigh history` and `weigh board`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};

/// `weigh history`.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// The folder of runs.
    #[arg(value_name = "DIR", default_value = "weigh-runs")]
    pub folder: PathBuf,
    /// Rebuild the index from the journals. Runs whose folders are gone are forgotten.
    #[arg(long)]
    pub rebuild: bool,
    /// Show the runs of this experiment only.
    #[arg(long, value_name = "NAME")]
    pub experiment: Option<String>,
    /// Show this metric only.
    #[arg(long, value_name = "METRIC", value_parser = PossibleValuesParser::new(history::metric_names()))]
    pub metric: Option<String>,
    /// Show this subject only.
    #[arg(long, value_name = "NAME")]
    pub subject: Option<String>,
    /// Show only the newest N runs, and the changes among them; the search for changes still uses
    /// all runs.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub last: Option<u32>,
    /// The form of the history.
    #[arg(long, value_enum, default_value_t)]
    pub format: HistoryFormat,
    /// Where to write it [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Exit with status 3 if a confirmed change for the worse is shown.
    #[arg(long)]
    pub fail_on_change: bool,
}

/// `weigh board`.
#[derive(Debug, Args)]
pub struct BoardArgs {
    /// Folders of runs, or folders with runs below them.
    #[arg(value_name = "FOLDER", required = true)]
    pub folders: Vec<PathBuf>,
    /// The site's folder: new, empty, or one that `weigh board` wrote.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

/// The forms of a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum HistoryFormat {
    /// For the terminal.
    #[default]
    Text,
    /// One page: the runs with links to their reports, and each series as a picture.
    Html,
    /// A row for each run of each series.
    Csv,
    /// One JSON document.
    Json,
    /// The text format of OpenMetrics, with the time of each run.
    Openmetrics,
}
