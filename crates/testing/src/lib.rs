//! What tests of several crates share. Only tests depend on it: whatever fails here panics.
#![allow(clippy::unwrap_used)]

pub mod http2;
pub mod journals;
pub mod made_up;
pub mod odd;
pub mod printed;
mod tcp;
mod text;
pub mod tls;

pub use tcp::{serve, serve_on};
pub use text::Text;

/// Says that a test cannot run here, as `CONTRIBUTING.md` describes it.
pub fn skip(reason: &str) {
    use std::io::Write as _;
    let Some(path) = std::env::var_os("WEIGH_SKIPPED") else {
        println!("SKIPPED: {reason}");
        return;
    };
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .unwrap();
    writeln!(file, "{reason}").unwrap();
}
