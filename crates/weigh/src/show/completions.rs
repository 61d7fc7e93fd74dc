//! `weigh completions`: the completions of commands and options for a shell.

use clap::CommandFactory as _;
use clap_complete::{Shell as Generator, generate};

use crate::cli::{Cli, Shell};
use crate::failure::Failure;
use crate::terminal::output::print_text;

/// Prints a shell's completions.
pub fn completions(shell: Shell) -> Result<u8, Failure> {
    let generator = match shell {
        Shell::Bash => Generator::Bash,
        Shell::Zsh => Generator::Zsh,
        Shell::Fish => Generator::Fish,
    };
    let mut script = Vec::new();
    generate(generator, &mut Cli::command(), "weigh", &mut script);
    print_text(&String::from_utf8_lossy(&script));
    Ok(0)
}
