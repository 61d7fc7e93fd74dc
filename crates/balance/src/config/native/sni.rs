//! `[[services.NAME.sni]]`

use ::config::nearest::suggestion;
use ::config::reader::{Problem, Reader};
use ::config::section::Section;
use ::config::units::shown;

use super::fields::{self, required};
use crate::config::model::{Service, ServiceKind, SniRule};
use crate::sni::is_pattern;

/// The rules of a service whose back ends are known.
pub(super) fn rules(reader: &mut Reader, section: &Section<'_>, service: &Service) -> Vec<SniRule> {
    let Some((entry, path)) = section.entry("sni") else {
        return Vec::new();
    };
    let why = match (service.kind, &service.tls) {
        (ServiceKind::Http { .. }, _) => Some("the service is HTTP, and reads messages"),
        (ServiceKind::Tcp, Some(_)) => Some("the service ends TLS itself"),
        (ServiceKind::Tcp, None) => None,
    };
    if let Some(why) = why {
        let message = format!("`{path}` chooses back ends without ending TLS, and {why}");
        let problem = Problem::at(entry.node.place, message, "not possible here");
        reader.report(problem.help("use it in a service with kind = \"tcp\" and without tls"));
    }
    let tables = fields::tables(reader, section, "sni");
    let rules = tables
        .iter()
        .filter_map(|table| rule(reader, table, service));
    rules.collect()
}

fn rule(reader: &mut Reader, section: &Section<'_>, service: &Service) -> Option<SniRule> {
    fields::only(reader, section, "names back_ends");
    required(reader, section, "names")?;
    required(reader, section, "back_ends")?;
    let mut names = Vec::new();
    for (name, place) in section.texts(reader, "names")? {
        if !is_pattern(&name) {
            let message = format!(
                "`{}` is no server name: `{}`",
                section.name_of("names"),
                shown(&name)
            );
            let problem = Problem::at(place, message, "expected a name");
            let help = "a name is such as \"a.example\", \"*.example\", or \"*\" for all others";
            reader.report(problem.help(help));
        }
        names.push(name.to_ascii_lowercase());
    }
    let known = || service.backends.iter().map(|one| one.name.as_str());
    let mut back_ends = Vec::new();
    for (name, place) in section.texts(reader, "back_ends")? {
        if !known().any(|one| one == name) {
            let message = format!(
                "`{}` does not know `{}`",
                section.name_of("back_ends"),
                shown(&name)
            );
            let problem = Problem::at(place, message, "no back end of this service");
            reader.report(problem.help(suggestion(&name, "back ends", known())));
        }
        back_ends.push(name);
    }
    for (key, list) in [("names", &names), ("back_ends", &back_ends)] {
        if let (true, Some((entry, path))) = (list.is_empty(), section.entry(key)) {
            let message = format!("`{path}` is empty");
            reader.report(Problem::at(
                entry.node.place,
                message,
                "expected at least one",
            ));
        }
    }
    Some(SniRule { names, back_ends })
}
