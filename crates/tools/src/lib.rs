//! What other load generators print, and the shell's `time`, read.
//!
//! A [`ToolReading`] holds what one run of a tool said of itself, in our units. A tool that does
//! not say something leaves it `None`: nothing is guessed here. What the words of a tool mean, and
//! how its figures become ours, stands at the head of its file.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod cause;
mod command;
mod error;
mod mark;
mod process;
mod read;
mod readers;
mod reading;
mod scan;
mod text;
mod tls;
mod whole;

pub use error::ReadError;
pub use read::{ReadText, looked_for, read_all, read_output, read_text};

pub use readings::{FigureTable, ProcessLine, Tool, ToolLatency, ToolReading, ToolTls};
