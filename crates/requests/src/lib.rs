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
use config::reader::Reader;
use config::tree::Place;
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

/// The template of a value that stands at `place` in a file. Every wrong placeholder is reported where
/// it is in the file; then there is none.
pub fn template_of_value(
    reader: &mut Reader,
    place: Place,
    text: &str,
    names: placeholder::Names<'_>,
    part: placeholder::Part,
) -> Option<Template> {
    match placeholder::parse(text, names, part) {
        Ok(template) => Some(template),
        Err(faults) => {
            let source = reader.source(place.source);
            let written = source.and_then(|(_, whole)| whole.get(place.start..place.end));
            let written = written.unwrap_or_default().to_owned();
            for fault in faults {
                reader.report(fault.in_value(place, &written, text));
            }
            None
        }
    }
}
