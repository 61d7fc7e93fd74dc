//! Builds again when an experiment, a recipe or a driver is added: all are embedded.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../experiments");
    println!("cargo::rerun-if-changed=../../servers");
    println!("cargo::rerun-if-changed=../../drivers");
}
