//! `weigh compare`: an experiment over URLs that already run.

use std::fmt::Write as _;

use experiment::Experiment;
use run::default_folder;

use crate::cli::{CompareArgs, OwnFolders};
use crate::examine;
use crate::failure::Failure;
use crate::run::{Wanted, measure};

/// Compares URLs.
pub fn compare(args: &CompareArgs) -> Result<u8, Failure> {
    let recipes = examine::recipes(&OwnFolders::default())?;
    let text = experiment_text(args);
    let experiment =
        Experiment::parse("weigh compare", &text, &[], false, &recipes).map_err(Failure::file)?;
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    measure(&Wanted {
        experiment: &experiment,
        recipes: &recipes,
        seed,
        folder: args
            .out
            .clone()
            .unwrap_or_else(|| default_folder("compare")),
        resume: false,
        format: args.format,
    })
}

/// A TOML string.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

/// The experiment that the arguments stand for.
fn experiment_text(args: &CompareArgs) -> String {
    let names: Vec<&str> = args
        .subjects
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    let mut text = format!(
        "name = \"compare\"\ntitle = {}\n\n[subjects]\n",
        quoted(&names.join(" against "))
    );
    for (name, url) in &args.subjects {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{} = {}", quoted(name), quoted(url));
    }
    let _ = writeln!(text, "\n[load]\nconnections = {}", args.connections);
    if let Some(threads) = args.threads {
        let _ = writeln!(text, "threads = {threads}");
    }
    if let Some(rate) = args.rate {
        let _ = writeln!(text, "rate = \"{rate}/s\"");
    }
    let window_ms = args.window.as_millis();
    let _ = writeln!(
        text,
        "\n[design]\nbaseline = {}\nblocks = {}\nwarmup = \"500ms\"\nwindow = \"{window_ms}ms\"\n\
         latency_window = \"{window_ms}ms\"\nmatters = {}\nbottleneck = {}",
        quoted(names[0]),
        args.blocks,
        quoted(&args.matters),
        args.bottleneck,
    );
    text
}
