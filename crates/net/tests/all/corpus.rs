//! The corpora of the fuzz targets hold without a fuzzer too, cut at every place.

#[path = "../../../../fuzz/checks.rs"]
mod checks;
// Of it only the files are needed here.
#[allow(dead_code)]
#[path = "../../../../fuzz/replay.rs"]
mod replay;

use checks::{CHECKS, Cuts};

/// Files up to this long are cut at every place; their cost grows with the square of the length.
const SMALL_BYTES: usize = 4096;

#[test]
fn every_file_of_the_corpora_reads_the_same_in_any_pieces() {
    for (name, check) in CHECKS {
        for (path, data) in replay::files(&[&format!("fuzz/corpus/{name}")]) {
            let cuts = if data.len() <= SMALL_BYTES {
                Cuts::All
            } else {
                Cuts::Some
            };
            // Shown only when the check fails.
            println!("{}", path.display());
            check(&data, cuts);
        }
    }
}
