//! A file of hosts that make a load together, without an experiment.

use std::path::Path;

use crate::file::error::ExperimentError;
use crate::file::hosts::{self, reach};
use config::open;
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::Place;
use readings::HostSpec;

const SMALLEST: &str = "a minimal file has [hosts.one] with ssh = \"user@machine\"";
/// Keys that have an effect only in an experiment.
const EXPERIMENT_ONLY: [&str; 5] = ["link", "quota", "access", "settings", "address"];

/// Reads the hosts of a file that has nothing but `[hosts.NAME]` tables, as in an experiment. They
/// are machines: behind a pipe, or this one.
///
/// # Errors
/// [`ExperimentError::Open`] when the file cannot be read, is larger than a mebibyte or is not UTF-8;
/// [`ExperimentError::Mistakes`] with every mistake that was found.
pub fn read_hosts(path: &Path) -> Result<Vec<HostSpec>, ExperimentError> {
    let text = open::open(path)?;
    parse_hosts(&path.display().to_string(), &text)
}

fn parse_hosts(source_name: &str, text: &str) -> Result<Vec<HostSpec>, ExperimentError> {
    let mut reader = Reader::new(source_name, text);
    let table = open::parse(&mut reader, text).unwrap_or_default();
    if !reader.is_clean() {
        return Err(reader.into_mistakes().into());
    }
    let top = Section::whole(&table);
    top.only(&mut reader, &["hosts"]);
    let found = hosts::hosts(&mut reader, &top);
    if reader.is_clean() && found.is_empty() {
        let none = Problem::of_the_file("the file has no host: expected [hosts.NAME] tables");
        reader.report(none.help(SMALLEST));
    }
    for host in found.iter().filter(|host| host.is_first()) {
        check(&mut reader, &top, host);
    }
    if reader.is_clean() && !found.iter().any(HostSpec::is_elsewhere) {
        let place = top.place_of(&["hosts"]).unwrap_or_default();
        let here = Problem::at(
            place,
            "every host of this file is this machine",
            format!("expected one of {}", reach::KEYS.join(", ")),
        );
        reader.report(here.help("leave out --hosts to make the load from here"));
    }
    match reader.is_clean() {
        true => Ok(found),
        false => Err(reader.into_mistakes().into()),
    }
}

fn check(reader: &mut Reader, top: &Section<'_>, host: &HostSpec) {
    let name = host.declared_name();
    let at = |key: &str| -> Option<Place> { top.place_of(&["hosts", name, key]) };
    for key in EXPERIMENT_ONLY {
        if let Some(place) = at(key) {
            let message = format!("`hosts.{name}.{key}` is not possible for a load on a URL");
            let problem = Problem::at(place, message, "has an effect only in an experiment");
            reader.report(problem.help("remove it, or write an experiment"));
        }
    }
    if let (false, Some(place)) = (host.is_elsewhere(), at("binary")) {
        let message = format!("`hosts.{name}.binary` has no effect: the host is this machine");
        let problem = Problem::at(place, message, "for hosts on other machines");
        let ways = reach::KEYS.join(", ");
        reader.report(problem.help(format!("remove it, or add one of {ways}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use readings::Reach;
    use testing::Text as _;

    fn mistakes(text: &str) -> Vec<String> {
        match parse_hosts("hosts.toml", text) {
            Err(ExperimentError::Mistakes(found)) => found
                .all()
                .iter()
                .map(|one| one.message().to_owned())
                .collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn hosts_behind_pipes_and_this_machine_are_read() {
        let text = "[hosts.here]\ncpus = [1]\n[hosts.far]\nssh = \"bench@192.0.2.7\"\n\
                    [hosts.node]\nslurm = { nodes = 2 }\n";
        let hosts = parse_hosts("hosts.toml", text).unwrap();
        let names: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(names, ["here", "far", "node1", "node2"]);
        assert_eq!(
            (hosts[0].reach.as_ref(), hosts[0].cpus.as_slice()),
            (None, &[1][..])
        );
        assert_eq!(hosts[1].reach, Some(Reach::Ssh("bench@192.0.2.7".into())));
    }

    #[test]
    fn what_has_no_meaning_for_a_load_on_a_url_is_refused() {
        let of = |text: &str| mistakes(text).join("\n");
        assert!(of("").contains("has no host"), "{}", of(""));
        let here = of("[hosts.a]\n[hosts.b]\n");
        here.has("every host of this file is this machine");
        let link = of("[hosts.a]\nssh = \"b\"\nlink = { rtt = \"1ms\" }\n");
        assert!(link.contains("`hosts.a.link` is not possible"), "{link}");
        let binary = of("[hosts.a]\nssh = \"b\"\n[hosts.b]\nbinary = \"/bin/weigh\"\n");
        binary.has("`hosts.b.binary` has no effect");
        let other = of("title = \"x\"\n[hosts.a]\nssh = \"b\"\n");
        assert!(other.contains("title"), "{other}");
    }
}
