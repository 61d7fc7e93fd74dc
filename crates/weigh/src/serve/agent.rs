//! `weigh agent` and `weigh netns-holder`: what a run starts for its hosts.

use std::io::{BufReader, stdin, stdout};
use std::os::unix::net::UnixStream;

use signal_hook::consts::SIGTERM;
use signal_hook::low_level;

use crate::failure::Failure;

/// Carries out orders from standard input until it ends, or SIGTERM comes.
pub fn agent() -> Result<u8, Failure> {
    // A thread waits for it without taking CPU time while something is measured.
    let (termination, signalled) = UnixStream::pair().map_err(Failure::failed)?;
    low_level::pipe::register(SIGTERM, signalled).map_err(Failure::failed)?;
    agent::serve(BufReader::new(stdin()), stdout(), termination).map_err(Failure::failed)?;
    Ok(0)
}

/// Creates hosts as ordered on standard input, and holds them until it ends.
pub fn netns_holder() -> Result<u8, Failure> {
    hosts::serve(BufReader::new(stdin()), stdout()).map_err(Failure::failed)?;
    Ok(0)
}
