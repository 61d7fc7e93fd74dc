//! Fuzzing without a fuzzer: changes the files of the corpora at random and runs the same checks
//! as the fuzz targets, for a time. It does not see which code a change reaches, and so finds less
//! than they do in the same time; it needs no more than a stable compiler.
//!
//! ```sh
//! cargo run --release -p net --example mutate -- 180       # seconds
//! cargo run --release -p net --example mutate -- 180 7     # and a seed
//! ```
//!
//! The first input that fails is written to a file, whose name is printed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use std::{env, fs, io};

use fastrand::Rng;

#[path = "../../../fuzz/checks.rs"]
#[allow(dead_code)]
mod checks;
use checks::{CHECKS, Check, Cuts};

/// Longest input that changes lead to, in bytes.
const INPUT_MAX: usize = 4096;
/// Inputs that were made from others and are changed further, per check.
const KEPT_MAX: usize = 2000;

/// Bytes that mean something to the codec.
const WORDS: [&[u8]; 32] = [
    b"\r\n",
    b"\n",
    b"\r",
    b"\r\n\r\n",
    b"\0",
    b" ",
    b"\t",
    b":",
    b";",
    b",",
    b"0\r\n\r\n",
    b"1\r\n",
    b"ffffffffffffffff",
    b"10000000000000000",
    b"9223372036854775807",
    b"9223372036854775808",
    b"-1",
    b"+",
    b"0x",
    b"HTTP/1.1 ",
    b"HTTP/1.0 ",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n",
    b"204",
    b"304",
    b"101",
    b"GET / HTTP/1.1\r\n",
    b"Content-Length: ",
    b"Transfer-Encoding: chunked\r\n",
    b"Connection: close\r\n",
    b"Connection: keep-alive\r\n",
    b"X: y\r\n z\r\n",
];

struct Target {
    name: &'static str,
    check: Check,
    seeds: Vec<Vec<u8>>,
    kept: Vec<Vec<u8>>,
    runs: u64,
}

fn main() -> ExitCode {
    let mut numbers = env::args().skip(1).map(|text| text.parse::<u64>());
    let (Ok(seconds), Ok(seed)) = (
        numbers.next().unwrap_or(Ok(10)),
        numbers.next().unwrap_or(Ok(1)),
    ) else {
        eprintln!("expected: mutate [SECONDS [SEED]]");
        return ExitCode::from(2);
    };
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut targets = Vec::new();
    for (name, check) in CHECKS {
        match seeds(&corpus.join(name)) {
            Ok(seeds) => targets.push(Target {
                name,
                check,
                seeds,
                kept: Vec::new(),
                runs: 0,
            }),
            Err(e) => {
                eprintln!("cannot read {}: {e}", corpus.join(name).display());
                return ExitCode::from(2);
            }
        }
    }
    let mut random = Rng::with_seed(seed);
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end {
        for target in &mut targets {
            for _ in 0..100 {
                let input = target.next(&mut random);
                let result = catch_unwind(AssertUnwindSafe(|| (target.check)(&input, Cuts::Some)));
                if result.is_err() {
                    return report(target.name, &input);
                }
                target.runs += 1;
                if random.u8(..) == 0 {
                    target.keep(input, &mut random);
                }
            }
        }
    }
    for target in &targets {
        println!("{:10} {:>10} inputs, none failed", target.name, target.runs);
    }
    ExitCode::SUCCESS
}

fn seeds(folder: &Path) -> io::Result<Vec<Vec<u8>>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<io::Result<_>>()?;
    // The order of a folder is not the same everywhere; the seed's run is to be.
    paths.sort();
    paths.iter().map(fs::read).collect()
}

fn report(name: &str, input: &[u8]) -> ExitCode {
    let path = env::temp_dir().join(format!("mutate-{name}"));
    match fs::write(&path, input) {
        Ok(()) => eprintln!("{name}: failed; the input is in {}", path.display()),
        Err(e) => eprintln!("{name}: failed with {:?} ({e})", input.escape_ascii()),
    }
    ExitCode::FAILURE
}

impl Target {
    fn pick(&self, random: &mut Rng) -> &[u8] {
        let from = if self.kept.is_empty() || random.bool() {
            &self.seeds
        } else {
            &self.kept
        };
        from.get(random.usize(..from.len().max(1)))
            .map_or(b"", Vec::as_slice)
    }

    fn next(&self, random: &mut Rng) -> Vec<u8> {
        let mut input = self.pick(random).to_vec();
        for _ in 0..random.usize(1..=6) {
            let other = self.pick(random);
            change(&mut input, other, random);
        }
        input.truncate(INPUT_MAX);
        input
    }

    fn keep(&mut self, input: Vec<u8>, random: &mut Rng) {
        if self.kept.len() < KEPT_MAX {
            self.kept.push(input);
        } else {
            let at = random.usize(..KEPT_MAX);
            self.kept[at] = input;
        }
    }
}

fn change(input: &mut Vec<u8>, other: &[u8], random: &mut Rng) {
    let at = random.usize(..=input.len());
    let to = (at + random.usize(..=16)).min(input.len());
    match random.u8(..8) {
        0 => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << random.u8(..8);
            }
        }
        1 => {
            if let Some(byte) = input.get_mut(at) {
                *byte = random.u8(..);
            }
        }
        2 => drop(input.drain(at..to)),
        3 => {
            let copy = input[at..to].to_vec();
            let times = random.usize(1..=8);
            drop(input.splice(at..at, copy.repeat(times)));
        }
        4 => {
            let from = random.usize(..=other.len());
            drop(input.splice(at.., other[from..].iter().copied()));
        }
        5 => {
            let from = random.usize(..=other.len());
            let end = (from + random.usize(..=64)).min(other.len());
            drop(input.splice(at..at, other[from..end].iter().copied()));
        }
        _ => {
            let word = WORDS[random.usize(..WORDS.len())];
            let to = if random.bool() { at } else { to };
            drop(input.splice(at..to, word.iter().copied()));
        }
    }
}
