//! `weigh agent`.

use std::io::{BufReader, stdin, stdout};

use crate::failure::Failure;

/// Carries out orders from standard input until it ends.
pub fn agent() -> Result<u8, Failure> {
    lab::agent::serve(BufReader::new(stdin()), stdout()).map_err(Failure::failed)?;
    Ok(0)
}
