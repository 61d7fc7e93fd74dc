//! `weigh schema`: the JSON schemas of files, the same as in the documentation.

use crate::cli::SchemaKind;
use crate::failure::Failure;
use crate::terminal::output::print_text;

/// Prints a schema.
pub fn schema(of: SchemaKind) -> Result<u8, Failure> {
    print_text(match of {
        SchemaKind::Experiment => {
            include_str!("../../schemas/experiment.schema.json")
        }
        SchemaKind::Recipe => {
            include_str!("../../schemas/recipe.schema.json")
        }
        SchemaKind::Driver => {
            include_str!("../../schemas/driver.schema.json")
        }
        SchemaKind::Result => {
            include_str!("../../schemas/result.schema.json")
        }
        SchemaKind::Journal => {
            include_str!("../../schemas/journal.schema.json")
        }
        SchemaKind::Board => {
            include_str!("../../schemas/board.schema.json")
        }
    });
    Ok(0)
}
