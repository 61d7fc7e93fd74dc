//! The arguments of `weigh plan`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::OwnFolders;
use crate::units;

/// Blocks of a pilot, where the caller does not say.
pub const PILOT_BLOCKS: u32 = 4;

/// `weigh plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// An experiment of the catalogue, the path of a file, or the folder of a run that was made:
    /// then nothing is measured.
    pub experiment: String,
    /// Blocks of the pilot [default: 4].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..=100))]
    pub pilot: Option<u32>,
    /// The shorter form that the experiment describes.
    #[arg(long)]
    pub quick: bool,
    /// Folder of the pilot [default: weigh-runs/NAME-pilot-TIME].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Seed of every random choice.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Change a value of the experiment, such as design.window=2s.
    #[arg(long, value_name = "KEY=VALUE", value_parser = units::key_value)]
    pub set: Vec<(String, String)>,
    /// Recipes and drivers of the user's own.
    #[command(flatten)]
    pub own: OwnFolders,
    /// How the advice is printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: PlanFormat,
}

/// The forms of a plan's advice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PlanFormat {
    /// For the terminal.
    #[default]
    Text,
    /// Markdown.
    Md,
    /// One JSON document.
    Json,
}

impl PlanArgs {
    /// The options that were given and say how a pilot is made.
    pub fn pilot_options(&self) -> Vec<&'static str> {
        let given = [
            ("--pilot", self.pilot.is_some()),
            ("--quick", self.quick),
            ("--out", self.out.is_some()),
            ("--seed", self.seed.is_some()),
            ("--set", !self.set.is_empty()),
        ];
        let given = given.into_iter().filter(|(_, is_given)| *is_given);
        given.map(|(option, _)| option).collect()
    }
}
