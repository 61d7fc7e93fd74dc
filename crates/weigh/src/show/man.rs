//! `weigh man`: the manual pages, one per command, from the definition of the command line.

use std::path::Path;

use clap::CommandFactory as _;

use crate::cli::Cli;
use crate::failure::Failure;

/// Writes `weigh.1`, `weigh-run.1` and so on into a folder.
///
/// # Errors
/// When a page cannot be written.
pub fn man(folder: &Path) -> Result<u8, Failure> {
    let written = clap_mangen::generate_to(Cli::command(), folder);
    written.map_err(|e| {
        Failure::failed(format!(
            "cannot write manual pages into {}: {e}",
            folder.display()
        ))
    })?;
    Ok(0)
}
