//! Builds again when an experiment, a recipe or a driver is added: all are embedded. Their folders are
//! linked into this one, so that a package has them.

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=experiments");
    println!("cargo::rerun-if-changed=servers");
    println!("cargo::rerun-if-changed=drivers");
    let inside = folders("servers").into_iter().flat_map(folders);
    for built in inside.flat_map(folders) {
        if built.ends_with("target") {
            println!(
                "cargo::error={} would be embedded: expected no build results there, remove them",
                built.display()
            );
        }
    }
}

fn folders(of: impl AsRef<Path>) -> Vec<PathBuf> {
    let entries = fs::read_dir(of).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.is_dir()).collect()
}
