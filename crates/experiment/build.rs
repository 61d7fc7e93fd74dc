//! Builds again when an experiment, a recipe or a driver is added: all are embedded. Their folders are
//! linked into this one, so that a package has them.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=experiments");
    println!("cargo::rerun-if-changed=servers");
    println!("cargo::rerun-if-changed=drivers");
}
