//! Builds again when an experiment or a recipe is added: both are embedded.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../experiments");
    println!("cargo::rerun-if-changed=../../servers");
}
