//! `weigh agent` and `weigh netns-holder`: what a run starts for its hosts.

use std::io::{BufReader, stdin, stdout};

use crate::failure::Failure;

/// Carries out orders from standard input until it ends.
pub fn agent() -> Result<u8, Failure> {
    agent::serve(BufReader::new(stdin()), stdout()).map_err(Failure::failed)?;
    Ok(0)
}

/// Creates hosts as ordered on standard input, and holds them until it ends.
pub fn netns_holder() -> Result<u8, Failure> {
    hosts::serve(BufReader::new(stdin()), stdout()).map_err(Failure::failed)?;
    Ok(0)
}
