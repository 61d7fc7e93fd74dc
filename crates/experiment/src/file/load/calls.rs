//! The files of gRPC calls: schemas and messages.

use std::path::PathBuf;
use std::sync::Arc;

use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::{Place, Tree};

use super::requests::whole_path;
use crate::spec::{LoadSpec, MessageFile, SchemaFiles};

/// The keys that are read here.
pub(super) const KEYS: [&str; 3] = ["proto", "proto_path", "body_file"];

/// Reads the files that the keys name.
pub(super) fn read(reader: &mut Reader, section: &Section<'_>, load: &mut LoadSpec) {
    let (files, folders) = (
        paths(reader, section, "proto"),
        paths(reader, section, "proto_path"),
    );
    let place = section.value_place("proto");
    if files.is_empty() && !folders.is_empty() {
        let key = section.name_of("proto_path");
        let place = section.value_place("proto_path");
        let problem = Problem::at(place, format!("`{key}` needs `proto`"), "nothing to import");
        reader.report(problem.help("add proto = \"FILE\", or remove `proto_path`"));
    } else if !files.is_empty() {
        load.traffic.proto = schema(reader, place, &files, &folders).map(Arc::new);
    }
    if let Some((path, place)) = paths(reader, section, "body_file").into_iter().next() {
        match std::fs::read(&path) {
            Ok(bytes) => {
                let path = path.display().to_string();
                load.traffic.body_file = Some(Arc::new(MessageFile { path, bytes }));
            }
            Err(error) => {
                let message = format!("{}: {error}", path.display());
                reader.report(Problem::at(place, message, "expected a file"));
            }
        }
    }
}

/// The paths that a key names, a text or a list of texts.
fn paths(reader: &mut Reader, section: &Section<'_>, key: &str) -> Vec<(PathBuf, Place)> {
    let Some((entry, path)) = section.entry(key) else {
        return Vec::new();
    };
    let (node, is_one) = (&entry.node, key == "body_file");
    let texts = match &node.tree {
        Tree::Text(text) => Some(vec![(text.clone(), node.place)]),
        _ if is_one => reader
            .text(node, &path)
            .map(|text| vec![(text, node.place)]),
        _ => reader.texts(node, &path),
    };
    let texts = texts.unwrap_or_default().into_iter();
    texts
        .map(|(text, place)| (whole_path(reader, place, &text), place))
        .collect()
}

#[cfg(feature = "full")]
fn schema(
    reader: &mut Reader,
    place: Place,
    files: &[(PathBuf, Place)],
    folders: &[(PathBuf, Place)],
) -> Option<SchemaFiles> {
    let paths = |of: &[(PathBuf, Place)]| of.iter().map(|(path, _)| path.clone()).collect();
    let (files, folders): (Vec<PathBuf>, Vec<PathBuf>) = (paths(files), paths(folders));
    let texts = |of: &[PathBuf]| of.iter().map(|one| one.display().to_string()).collect();
    match schema::read_files(&files, &folders) {
        Ok(set) => Some(SchemaFiles {
            files: texts(&files),
            folders: texts(&folders),
            set,
        }),
        Err(error) => {
            reader.report(Problem::at(place, error.to_string(), "set here"));
            None
        }
    }
}

#[cfg(not(feature = "full"))]
fn schema(
    reader: &mut Reader,
    place: Place,
    _: &[(PathBuf, Place)],
    _: &[(PathBuf, Place)],
) -> Option<SchemaFiles> {
    let error = crate::spec::no_schemas("proto");
    let problem = Problem::at(place, format!("`proto`: {error}"), "set here");
    reader.report(problem.help(error.help.unwrap_or_default()));
    None
}
