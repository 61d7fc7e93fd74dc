//! Files that say what a load sends.
//!
//! Each reader returns [`RequestSet`] or a part of it, or every mistake with its line and column.
//! Nothing here sends anything, and nothing is sent before all files are read.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod error;
mod fault;
pub mod feed;
pub mod file;
pub mod har;
pub mod log;
pub mod placeholder;

pub use error::RequestsError;
pub use fault::Fault;
pub use readings::requests::RequestSet;

use config::Mistakes;
use readings::requests::Template;

/// The template of a text that stands alone, such as an option's; `name` says which.
///
/// # Errors
/// Every wrong placeholder.
pub fn template(
    name: &str,
    text: &str,
    names: placeholder::Names<'_>,
    part: placeholder::Part,
) -> Result<Template, Mistakes> {
    placeholder::parse(text, names, part).map_err(|faults| feed::mistakes(name, text, faults))
}
