//! `weigh`: what a web server, a proxy or a load balancer costs, and how far the answer can be
//! trusted.
#![cfg_attr(test, allow(clippy::unwrap_used))]

// First: all others use its macros.
#[macro_use]
mod output;

mod agent;
mod balance;
mod capacity;
mod cli;
mod compare;
mod doctor;
mod examine;
mod failure;
mod list;
mod load;
mod origin;
mod progress;
mod read;
mod report;
mod run;
mod signals;
mod units;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Verb};
use failure::Failure;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => {
            // Help and version are no mistakes; everything else is the caller's, status 2.
            let _ = e.print();
            return ExitCode::from(if e.use_stderr() { 2 } else { 0 });
        }
    };
    match carry_out(cli) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            failure.print();
            ExitCode::from(failure.status())
        }
    }
}

fn carry_out(cli: Cli) -> Result<u8, Failure> {
    match cli.verb {
        Verb::Run(args) => run::run(&args),
        Verb::Compare(args) => compare::compare(&args),
        Verb::Load(args) => load::load(&args),
        Verb::Capacity(args) => capacity::capacity(&args),
        Verb::Read(args) => read::read(&args),
        Verb::Report(args) => report::report(&args),
        Verb::Doctor(args) => examine::doctor(&args),
        Verb::List(args) => examine::list(&args),
        Verb::Origin(args) => origin::origin(&args),
        Verb::Balance(args) => balance::balance(&args),
        Verb::Agent => agent::agent(),
        Verb::Wiring => agent::wiring(),
    }
}
