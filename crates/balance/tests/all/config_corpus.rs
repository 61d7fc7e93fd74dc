//! The corpora of the fuzz targets hold without a fuzzer too, and so do spoilt copies of them.

use std::fs;
use std::path::PathBuf;

/// The files of a corpus, in the order of their names.
fn files(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(name);
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let data = fs::read(&path).unwrap();
            (path, data)
        })
        .collect();
    files.sort();
    assert!(
        files.len() >= 10,
        "{} files in {}",
        files.len(),
        folder.display()
    );
    files
}

#[test]
fn every_file_of_the_corpora_holds() {
    for (name, check) in crate::balance_checks::CHECKS {
        for (path, data) in files(name) {
            // Shown only when the check fails.
            println!("{}", path.display());
            check(&data);
        }
    }
}

#[test]
fn spoilt_copies_hold() {
    let mut rng = fastrand::Rng::with_seed(4);
    for (name, check) in crate::balance_checks::CHECKS {
        let files = files(name);
        for (path, data) in &files {
            for _ in 0..60 {
                let mut copy = data.clone();
                for _ in 0..rng.usize(1..4) {
                    spoil(&mut copy, &files[rng.usize(..files.len())].1, &mut rng);
                }
                println!("{}: {:?}", path.display(), String::from_utf8_lossy(&copy));
                check(&copy);
            }
        }
    }
}

/// Changes, removes, doubles or takes over a stretch.
fn spoil(copy: &mut Vec<u8>, other: &[u8], rng: &mut fastrand::Rng) {
    let at = rng.usize(..=copy.len());
    let end = (at + rng.usize(..12)).min(copy.len());
    match rng.u8(..4) {
        0 => {
            if let Some(byte) = copy.get_mut(at) {
                *byte ^= 1 << rng.u8(..8);
            }
        }
        1 => drop(copy.drain(at..end)),
        2 => {
            let twice = copy[at..end].to_vec();
            copy.splice(at..at, twice);
        }
        _ => {
            let from = rng.usize(..=other.len());
            let to = (from + rng.usize(..40)).min(other.len());
            copy.splice(at..end, other[from..to].iter().copied());
        }
    }
}

#[test]
fn large_noise_ends() {
    for unit in [
        "{",
        "}",
        ";",
        "a ",
        "\"",
        "#",
        "\n",
        "/*",
        "//\n",
        "backend b {",
        "service s {",
        "port 1;",
        "port {",
        "port } ",
        "#define A A\n",
        "x\n",
        "\\\"",
        "[a]\n",
        "a=[",
        "'''",
        "\u{1b}[2J",
        "service s { port 1; backend b { server x:1; } }\n",
        "allowfrom 1 ",
        "%",
        "0",
    ] {
        // Enough to overflow the stack of a parser that recurses.
        let text = unit.repeat(30_000 / unit.len());
        println!("{unit:?}");
        for (_, check) in crate::balance_checks::CHECKS {
            check(text.as_bytes());
            check(format!("service s {{ {text}").as_bytes());
            check(format!("service s {{ port 1; allowfrom {text}").as_bytes());
        }
    }
}
