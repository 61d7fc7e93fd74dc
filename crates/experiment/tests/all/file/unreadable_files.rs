//! Experiment files that cannot be read.

use crate::support::{assert_shown, recipes, scratch};
use experiment::{Experiment, ExperimentError};

fn read(path: &std::path::Path) -> ExperimentError {
    Experiment::read(path, &[], false, recipes()).unwrap_err()
}

/// The message with the test's own folder left out.
fn read_shown(name: &str, dir: &std::path::Path, error: &ExperimentError) {
    let full = error.to_string();
    let help = miette::Diagnostic::help(error).map(|help| format!("help: {help}\n"));
    let text = format!(
        "{}\n{}",
        full.replace(&dir.display().to_string(), "DIR"),
        help.unwrap_or_default()
    );
    assert_shown(name, &text);
}

#[test]
fn files_that_cannot_be_read() {
    let dir = scratch("files-that-cannot-be-read");
    let file = |name: &str, bytes: &[u8]| {
        let path = dir.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let latin = file("latin.toml", b"title = \"a\"\nquestion = \"caf\xe9\"\n");
    read_shown("read-not-utf8", &dir, &read(&latin));
    let sixteen = file("sixteen.toml", b"\xff\xfet\0i\0");
    read_shown("read-utf16", &dir, &read(&sixteen));
    read_shown("read-missing", &dir, &read(&dir.join("nowhere.toml")));
    read_shown("read-folder", &dir, &read(&dir));
}

#[test]
fn a_hundred_megabytes_are_refused_by_their_size_alone() {
    let dir = scratch("a-hundred-megabytes");
    let path = dir.join("noise.toml");
    let file = std::fs::File::create(&path).unwrap();
    // A hole: if it were read, it would be 100 MB of zeros and another message.
    file.set_len(100_000_000).unwrap();
    let started = std::time::Instant::now();
    read_shown("read-too-large", &dir, &read(&path));
    assert!(started.elapsed().as_millis() < 1000);
}

#[test]
fn what_has_no_size_is_read_to_the_limit_only() {
    let error = read(std::path::Path::new("/dev/zero"));
    assert!(matches!(
        error,
        ExperimentError::Open(experiment::OpenError::TooLarge { .. })
    ));
}
