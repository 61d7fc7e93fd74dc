//! `weigh`: what a web server, a proxy or a load balancer costs, and how far the answer can be
//! trusted.
#![cfg_attr(test, allow(clippy::unwrap_used))]

// First: all others use its macros.
#[macro_use]
mod terminal;

mod cli;
mod failure;
mod install;
mod measure;
mod recipes;
mod serve;
mod show;
mod signals;
mod tls;
mod units;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use cli::{Cli, Verb};
use failure::Failure;
use measure::{bisect, capacity, compare, load, plan, run};
use serve::{agent, balance, origin};
use show::{board, completions, doctor, history, list, man, read, report, schema};
use terminal::output;

/// musl's own allocator has one lock for all threads.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let words = cli::joined(std::env::args_os().collect(), &Cli::command());
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(e) => return not_parsed(&e),
    };
    ended(carry_out(cli).and_then(|status| output::all_written().map(|()| status)))
}

/// Help and version are no errors; everything else is a wrong argument, status 2.
fn not_parsed(e: &clap::Error) -> ExitCode {
    let plain = e.render().to_string();
    let printed = match readings::url::without_users(&plain) {
        // A word that is not expected is quoted, and may be a URL with a password.
        hidden if e.use_stderr() && hidden != plain => {
            eprint!("{hidden}");
            Ok(())
        }
        _ => e.print().and_then(|()| std::io::stdout().flush()),
    };
    if e.use_stderr() {
        // `git bisect run` would take 2 for a bad commit.
        let bisects = std::env::args_os()
            .nth(1)
            .is_some_and(|verb| verb == "bisect");
        return ExitCode::from(if bisects { bisect::ABORT } else { 2 });
    }
    output::keep(printed);
    ended(output::all_written().map(|()| 0))
}

fn ended(result: Result<u8, Failure>) -> ExitCode {
    match result {
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
        Verb::Plan(args) => plan::plan(&args),
        Verb::Compare(args) => compare::compare(&args),
        Verb::Bisect(args) => bisect::bisect(&args),
        Verb::Load(args) => load::load(&args),
        Verb::Capacity(args) => capacity::capacity(&args),
        Verb::Read(args) => read::read(&args),
        Verb::Report(args) => report::report(&args),
        Verb::History(args) => history::history(&args),
        Verb::Board(args) => board::board(&args),
        Verb::Doctor(args) => doctor::doctor(&args),
        Verb::List(args) => list::list(&args),
        Verb::Install(args) => install::install(&args),
        Verb::Origin(args) => origin::origin(&args),
        Verb::Balance(args) => balance::balance(&args),
        Verb::Schema { of } => schema::schema(of),
        Verb::Completions { shell } => completions::completions(shell),
        Verb::Man { folder } => man::man(&folder),
        Verb::Agent => agent::agent(),
        Verb::NetnsHolder => agent::netns_holder(),
    }
}
