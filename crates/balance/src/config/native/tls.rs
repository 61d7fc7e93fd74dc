//! `[services.NAME.tls]` and `tls` of a back end.

use ::config::nearest::suggestion;
use ::config::reader::{Problem, Reader};
use ::config::section::Section;
use ::config::tree::Tree;
use ::config::units::shown;
use tls::Version;

use super::fields;
use super::fields::required;
use crate::config::tls::{BackendTls, ServiceTls};

pub(super) fn of_service(reader: &mut Reader, service: &Section<'_>) -> Option<ServiceTls> {
    let section = service.section(reader, "tls")?;
    let keys = "certificate key version suites groups tickets client_ca";
    fields::only(reader, &section, keys);
    required(reader, &section, "certificate")?;
    let mut tls = ServiceTls::new(fields::path(reader, &section, "certificate")?);
    if let Some(key) = fields::path(reader, &section, "key") {
        tls.key = key;
    }
    tls.version = match section.word(reader, "version", &["1.2", "1.3"]).as_deref() {
        Some("1.2") => Some(Version::Tls12),
        Some(_) => Some(Version::Tls13),
        None => None,
    };
    tls.suites = names(reader, &section, "suites", &::tls::suite_names());
    tls.groups = names(reader, &section, "groups", &::tls::group_names());
    fields::boolean(reader, &section, "tickets", &mut tls.tickets);
    tls.client_ca = fields::path(reader, &section, "client_ca");
    Some(tls)
}

fn names(
    reader: &mut Reader,
    section: &Section<'_>,
    key: &str,
    known: &[&'static str],
) -> Vec<String> {
    let given = section.texts(reader, key).unwrap_or_default();
    for (name, place) in &given {
        if !known.iter().any(|one| one.eq_ignore_ascii_case(name)) {
            let message = format!("`{}` is not known: `{}`", section.name_of(key), shown(name));
            let problem = Problem::at(*place, message, "unknown");
            reader.report(problem.help(suggestion(name, "names", known.iter().copied())));
        }
    }
    given.into_iter().map(|(name, _)| name).collect()
}

/// `tls = true`, or a table.
pub(super) fn of_backend(reader: &mut Reader, backend: &Section<'_>) -> Option<BackendTls> {
    let (entry, _) = backend.entry("tls")?;
    if let Tree::Boolean(on) = entry.node.tree {
        return on.then(BackendTls::default);
    }
    let section = backend.section(reader, "tls")?;
    fields::only(reader, &section, "name ca insecure");
    let mut tls = BackendTls {
        name: fields::text(reader, &section, "name"),
        ca: fields::path(reader, &section, "ca"),
        insecure: false,
    };
    fields::boolean(reader, &section, "insecure", &mut tls.insecure);
    Some(tls)
}
