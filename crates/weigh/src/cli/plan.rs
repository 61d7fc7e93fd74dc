//! The arguments of `weigh plan`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::OwnFolders;
use crate::units;

/// Blocks of a pilot.
const PILOT_BLOCKS: u32 = 4;

/// `weigh plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// An experiment of the catalogue, the path of a file, or the folder of a run that was made:
    /// then nothing is measured.
    pub experiment: String,
    /// Blocks of the pilot.
    #[arg(long, value_name = "N", default_value_t = PILOT_BLOCKS, value_parser = clap::value_parser!(u32).range(3..=100))]
    pub pilot: u32,
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
    /// For `weigh run --plan`.
    pub fn of(args: &super::RunArgs) -> Self {
        Self {
            experiment: args.experiment.clone().unwrap_or_default(),
            pilot: PILOT_BLOCKS,
            quick: args.quick,
            out: args.out.clone(),
            seed: args.seed,
            set: args.set.clone(),
            own: args.own.clone(),
            format: match args.format {
                super::Format::Text => PlanFormat::Text,
                super::Format::Json => PlanFormat::Json,
            },
        }
    }
}
