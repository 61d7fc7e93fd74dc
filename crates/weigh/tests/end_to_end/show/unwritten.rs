//! Standard error and standard output that cannot be written: notes are dropped, results are not
//! dropped without a word.

use std::fs::File;
use std::process::{Command, Output};

use crate::common::{Origin, Place, serve_tcp};

/// A device on which there is no space.
fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

#[track_caller]
fn ended(mut command: Command, status: i32) -> Output {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(status), "{output:?}");
    output
}

#[test]
fn notes_that_cannot_be_written_cost_no_result() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let words = format!("load {} -d 200ms --interval 50ms --format json", origin.url);
    let mut command = place.weigh(&words);
    command.stderr(full());
    let output = ended(command, 0);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(document["requests"].as_u64().unwrap() > 0);
    // A mistake keeps its status, and so does a server its work.
    let mut command = place.weigh("load nonsense");
    command.stderr(full());
    ended(command, 2);
    let mut command = place.weigh("origin --listen nonsense");
    command.stderr(full());
    ended(command, 2);
}

#[test]
fn notes_before_a_load_are_dropped_as_well() {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let place = Place::new();
    // Answers that differ each time, which is said.
    let (address, _talk) = serve_tcp(|_| {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        (200, number.to_string())
    });
    let mut command = place.weigh(&["load", &format!("http://{address}/"), "-n", "20", "-q"]);
    command.stderr(full());
    let output = ended(command, 0);
    assert!(String::from_utf8_lossy(&output.stdout).contains("20 requests in"));
}

#[test]
fn a_result_that_could_not_be_written_is_a_failure() {
    let place = Place::new();
    let origin = Origin::start(&place);
    for words in [
        vec!["load", &origin.url, "-n", "20", "-q"],
        vec!["load", &origin.url, "-n", "20", "-q", "--format", "json"],
        vec!["doctor"],
        vec!["list", "--format", "json"],
        vec!["--version"],
        vec!["load", "--help"],
    ] {
        let mut command = place.weigh(&words);
        command.stdout(full());
        let output = ended(command, 1);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            said.contains("the result could not be written on standard output: No space left"),
            "{words:?}: {said}"
        );
    }
}

#[test]
fn a_reader_that_has_gone_is_no_failure() {
    let place = Place::new();
    let origin = Origin::start(&place);
    for words in [
        vec!["load", &origin.url, "-n", "20", "-q"],
        vec!["list"],
        vec!["--version"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = place.weigh(&words);
        command.stdout(writer);
        let output = ended(command, 0);
        assert!(output.stderr.is_empty(), "{words:?}: {output:?}");
    }
}
