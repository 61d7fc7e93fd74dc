//! The corpora of the fuzz targets hold without a fuzzer too, and so do mutated copies of them.

use crate::balance_checks::CHECKS;
use crate::replay;

#[test]
fn every_file_of_the_corpora_holds() {
    for (name, check) in CHECKS {
        replay::files_hold(&[&format!("fuzz/corpus/{name}")], check);
    }
}

#[test]
fn mutated_copies_hold() {
    for (name, check) in CHECKS {
        replay::mutated_copies_hold(&[&format!("fuzz/corpus/{name}")], check, 60);
    }
}

#[test]
fn large_noise_ends() {
    for unit in "{~}~;~a ~\"~#~\n~/*~//\n~backend b {~service s {~port 1;~port {~port } ~\
        #define A A\n~x\n~\\\"~[a]\n~a=[~'''~\u{1b}[2J~\
        service s { port 1; backend b { server x:1; } }\n~allowfrom 1 ~%~0"
        .split('~')
    {
        // Enough to overflow the stack of a parser that recurses.
        let text = unit.repeat(30_000 / unit.len());
        println!("{unit:?}");
        for (_, check) in CHECKS {
            check(text.as_bytes());
            check(format!("service s {{ {text}").as_bytes());
            check(format!("service s {{ port 1; allowfrom {text}").as_bytes());
        }
    }
}
