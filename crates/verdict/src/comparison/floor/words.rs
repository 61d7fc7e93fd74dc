//! What a run will not be able to tell.

use crate::Outlook;
use readings::text::{fraction, percent};

use crate::comparison::words::noise_floor;

/// The sentence for the progress output of a run.
pub fn outlook(outlook: &Outlook) -> String {
    let wide = (outlook.half_width.exp() - 1.0) * 100.0;
    format!(
        "{}; after all {} blocks its interval will still be about ±{}, so differences near the margin \
         ({}) will stay inconclusive: a quieter machine, longer windows or more blocks would help, \
         and `weigh plan` says how many",
        noise_floor(&outlook.floor).trim_end_matches('.'),
        outlook.blocks_planned,
        percent(wide, 1, false),
        fraction(outlook.matters)
    )
}
