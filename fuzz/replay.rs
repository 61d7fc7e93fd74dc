//! Replays the corpora of fuzz targets without a fuzzer, and randomly mutated copies of their
//! files. Tests of the crates share it.
//!
//! `WEIGH_FUZZ_S` is for how many seconds each check gets mutated copies; without it, each file is
//! copied a few times.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Takes any bytes, and panics if they break a rule.
pub type Check = fn(&[u8]);

/// Longest mutated copy, bytes.
const COPY_MAX: usize = 200_000;

/// The files of folders, sorted by name. The folders are relative to the repository.
pub fn files(folders: &[&str]) -> Vec<(PathBuf, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in folders {
        let folder = root.join(folder);
        let before = files.len();
        for entry in fs::read_dir(&folder).expect("the folder of a corpus") {
            let path = entry.expect("an entry of a corpus").path();
            let data = fs::read(&path).expect("a file of a corpus");
            files.push((path, data));
        }
        assert!(files.len() > before, "nothing in {}", folder.display());
    }
    // Directories list their entries in no defined order.
    files.sort();
    assert!(files.len() >= 10, "{} files in {folders:?}", files.len());
    files
}

/// Runs the check on every file.
pub fn files_hold(folders: &[&str], check: Check) {
    for (path, data) in files(folders) {
        // Shown only when the check fails.
        println!("{}", path.display());
        check(&data);
    }
}

/// Runs the check on so many mutated copies of every file, or on as many as fit into the time that
/// was asked for. The first copy that fails is written to a file.
pub fn mutated_copies_hold(folders: &[&str], check: Check, copies: usize) {
    let seconds = std::env::var("WEIGH_FUZZ_S").ok();
    let seconds = seconds.map(|text| text.parse().expect("WEIGH_FUZZ_S is a number of seconds"));
    let files = files(folders);
    let start = Instant::now();
    let mut random = Random(match seconds {
        None => 4,
        Some(_) => std::time::UNIX_EPOCH
            .elapsed()
            .map_or(4, |since| since.as_nanos() as u64),
    });
    loop {
        for (path, data) in &files {
            for _ in 0..copies {
                let mut copy = data.clone();
                for _ in 0..1 + random.below(4) {
                    let other = &files[random.below(files.len())].1;
                    mutate(&mut copy, other, &mut random);
                }
                copy.truncate(COPY_MAX);
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(&copy))) {
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    let found = std::env::temp_dir().join(format!("mutated-{name}"));
                    println!("{} of {}", found.display(), path.display());
                    let _ = fs::write(found, &copy);
                    resume_unwind(panic);
                }
            }
        }
        if seconds.is_none_or(|seconds| start.elapsed() >= Duration::from_secs(seconds)) {
            return;
        }
    }
}

/// Random numbers whose quality does not matter.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }
}

/// Numbers that often cause failures.
const NUMBERS: &str = "0 -1 1 1e308 -1e308 1e-308 18446744073709551615 9223372036854775808 \
    4294967296 null true \"\"";

/// Mutates a stretch: changes, removes or doubles it, or replaces it with a stretch of another
/// file.
fn mutate(copy: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = random.below(copy.len() + 1);
    let end = (at + random.below(12)).min(copy.len());
    match random.below(6) {
        0 => {
            if let Some(byte) = copy.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        1 => drop(copy.drain(at..end)),
        2 => {
            let twice = copy[at..end].to_vec();
            drop(copy.splice(at..at, twice));
        }
        3 => {
            let from = random.below(other.len() + 1);
            let to = (from + random.below(40)).min(other.len());
            drop(copy.splice(at..end, other[from..to].iter().copied()));
        }
        4 => {
            // Replaces the next number with another.
            let is_digit = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
            let Some(from) = copy[at..].iter().position(is_digit).map(|far| at + far) else {
                return;
            };
            let len = copy[from..]
                .iter()
                .take_while(|byte| is_digit(byte))
                .count();
            let numbers: Vec<&str> = NUMBERS.split(' ').collect();
            let number = numbers[random.below(numbers.len())];
            drop(copy.splice(from..from + len, number.bytes()));
        }
        _ => copy.truncate(at),
    }
}
