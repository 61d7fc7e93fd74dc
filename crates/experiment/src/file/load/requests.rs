//! `requests`: a file of requests, in the place of one with the subject's path.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::spec::{LoadSpec, RequestFile, ResolvedCondition, SubjectSpec};
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::Place;
use config::units::shown;
use requests::RequestsError;

/// Reads the file that the key names.
pub(super) fn requests(reader: &mut Reader, section: &Section<'_>) -> Option<RequestFile> {
    let (entry, path) = section.entry("requests")?;
    let text = reader.text(&entry.node, &path)?;
    let place = entry.node.place;
    let file = whole_path(reader, place, &text);
    match requests::file::open(&file, Vec::new()) {
        Ok(set) => Some(RequestFile {
            path: file.display().to_string(),
            set: Arc::new(set),
        }),
        Err(error) => {
            report(reader, place, &error);
            None
        }
    }
}

/// The path of a file that stands in an experiment file: relative to this, or, in an option, to where
/// the program is started.
fn whole_path(reader: &Reader, place: Place, text: &str) -> PathBuf {
    let folder = match place.source {
        0 => reader
            .source(0)
            .and_then(|(name, _)| Path::new(name).parent()),
        _ => None,
    };
    let path = folder.unwrap_or(Path::new("")).join(text);
    std::path::absolute(&path).unwrap_or(path)
}

/// Reports each mistake of the file where the experiment names it.
fn report(reader: &mut Reader, place: Place, error: &RequestsError) {
    let RequestsError::Mistakes(mistakes) = error else {
        return reader.report(Problem::at(place, error.to_string(), "this file"));
    };
    for mistake in mistakes.all() {
        let message = match mistake.line() {
            Some((name, line)) => format!("{name}, line {line}: {mistake}"),
            None => format!("{mistakes}"),
        };
        let problem = Problem::at(place, message, "in this file");
        reader.report(match mistake.help_text() {
            Some(help) => problem.help(help),
            None => problem,
        });
    }
}

/// Checks that nothing else says what is sent.
pub(in crate::file) fn check(reader: &mut Reader, top: &Section<'_>, resolved: &ResolvedCondition) {
    let name = resolved.load_name.as_deref();
    check_load(reader, top, name, &resolved.load, &resolved.subjects);
    for one in &resolved.beside {
        check_load(reader, top, Some(&one.name), &one.load, &one.subjects);
    }
}

fn check_load(
    reader: &mut Reader,
    top: &Section<'_>,
    name: Option<&str>,
    load: &LoadSpec,
    subjects: &[SubjectSpec],
) {
    if load.requests.is_none() {
        return;
    }
    let others = [
        ("method", load.method != "GET", "the file says the methods"),
        ("body", load.body.is_some(), "the file says the bodies"),
        (
            "events",
            load.traffic.events.is_some(),
            "streams have no requests of their own",
        ),
        (
            "websocket",
            load.traffic.websocket,
            "messages are no requests",
        ),
        (
            "grpc",
            load.traffic.grpc.is_some(),
            "calls have one message",
        ),
    ];
    let place = match name {
        Some(name) => top.place_of(&["loads", name, "requests"]),
        None => top.place_of(&["load", "requests"]),
    };
    let place = place.unwrap_or_default();
    if let Some((key, _, why)) = others.iter().find(|(_, is_given, _)| *is_given) {
        let message = format!("`requests` and `{key}` exclude each other");
        reader.report(Problem::at(place, message, *why).help("keep one of the two"));
    }
    if let Some(other) = subjects.iter().find(|one| !one.driver.is_engine()) {
        let message = format!(
            "`requests` needs the built-in engine, but the subject `{}` has the driver `{}`",
            shown(&other.name),
            other.driver.name
        );
        let problem = Problem::at(place, message, "outside drivers send one request");
        reader.report(problem.help("remove the driver"));
    }
}
