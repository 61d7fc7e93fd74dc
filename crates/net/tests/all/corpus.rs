//! The corpora of the fuzz targets hold without a fuzzer too, cut at every place.

use std::fs;
use std::path::PathBuf;

#[path = "../../../../fuzz/checks.rs"]
mod checks;
use checks::{CHECKS, Cuts};

/// Files up to this long are cut at every place; their cost grows with the square of the length.
const SMALL_BYTES: usize = 4096;

#[test]
fn every_file_of_the_corpora_reads_the_same_in_any_pieces() {
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, check) in CHECKS {
        let folder = corpus.join(name);
        let mut files = 0;
        for entry in fs::read_dir(&folder).expect("the folder of a corpus") {
            let path = entry.expect("an entry of a corpus").path();
            let data = fs::read(&path).expect("a file of a corpus");
            let cuts = if data.len() <= SMALL_BYTES {
                Cuts::All
            } else {
                Cuts::Some
            };
            // Shown only when the check fails.
            println!("{}", path.display());
            check(&data, cuts);
            files += 1;
        }
        assert!(files >= 10, "{files} files in {}", folder.display());
    }
}
