//! `[subjects]`: names and URLs.

use crate::file::factors::placeholders::placeholders_of_path;
use crate::file::factors::written::{WrittenFactor, factor_names};
use crate::file::load::background::{self, BACKGROUND};
use crate::file::load::{drivers, load_change};
use crate::file::names::MOST_NAMES;
use crate::recipes::Recipes;
use crate::spec::{Choice, LoadChange, Subject, SubjectLoad, Target};
use config::nearest::{suggestion, suggestion_or};
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::{Entry, Place, Tree};
use config::units::shown;
use readings::url::{self, AuthorityFault};

const FORM: &str =
    "write \"http://SERVER/PATH\", or \"http://HOST:PORT/PATH\" for something that already runs";

/// The keys of `[load]` that a subject may have too.
pub(crate) const OWN_LOAD_KEYS: [&str; 4] =
    ["connections", "requests_per_connection", "http", "streams"];

pub(crate) fn subjects(
    reader: &mut Reader,
    top: &Section<'_>,
    factors: &[WrittenFactor],
    recipes: &Recipes,
) -> Vec<Subject> {
    let section = top.section(reader, "subjects");
    let entries = section.as_ref().map_or(&[][..], |s| &s.table.entries);
    if entries.is_empty() && (section.is_some() || top.table.get("subjects").is_none()) {
        let place = top.table.get("subjects").map(|entry| entry.place);
        let message = "there are no subjects to compare";
        let problem = match place {
            Some(place) => Problem::at(place, message, "expected at least one subject"),
            None => Problem::of_the_file(message),
        };
        reader.report(problem.help(
            "add a table [subjects] with lines such as direct = \"http://backend/\", where `backend` is one of [servers]",
        ));
        return Vec::new();
    }
    if entries.len() > MOST_NAMES {
        reader.report(Problem::at(
            entries[MOST_NAMES].place,
            format!("{} subjects are too many", entries.len()),
            format!("expected at most {MOST_NAMES}"),
        ));
    }
    let mut subjects = Vec::new();
    for entry in entries.iter().take(MOST_NAMES) {
        let name = &entry.name;
        if name.trim() != name
            || name.is_empty()
            || name.chars().count() > 64
            || name.chars().any(char::is_control)
        {
            reader.report(Problem::at(
                entry.place,
                format!("a subject cannot be called `{}`", shown(name)),
                "expected 1 to 64 characters without space at either end",
            ));
        }
        let path = format!("subjects.{name}");
        let described = match &entry.node.tree {
            Tree::Table(_) => match described(reader, entry, path, recipes) {
                Some(found) => found,
                None => continue,
            },
            Tree::Text(url) => Described {
                url: url.clone(),
                place: entry.node.place,
                driver: None,
                load: SubjectLoad::default(),
                background: None,
            },
            _ => {
                let form = "a URL, or a table such as { url = \"http://…\", driver = \"…\" }";
                reader.expected(&entry.node, &path, form);
                continue;
            }
        };
        let (url, place) = (&described.url, described.place);
        let target = target(reader, top, place, name, url, factors, recipes);
        if let Some((scheme, target, path)) = target {
            subjects.push(Subject {
                name: name.clone(),
                scheme,
                target,
                path,
                driver: described.driver,
                load: described.load,
                background: described.background,
            });
        }
    }
    subjects
}

/// A subject as it is written.
struct Described {
    url: String,
    /// The place of the URL.
    place: Place,
    driver: Option<Choice>,
    load: SubjectLoad,
    background: Option<Vec<String>>,
}

/// Reads a subject that is written as a table.
fn described(
    reader: &mut Reader,
    entry: &Entry,
    path: String,
    recipes: &Recipes,
) -> Option<Described> {
    let section = reader.section(entry, path)?;
    section.only(
        reader,
        &[&["url", "driver", "with", BACKGROUND], &OWN_LOAD_KEYS[..]].concat(),
    );
    let background = background::named(reader, &section);
    let driver = drivers::chosen(reader, &section, recipes);
    let url = section.required_text(reader, "url", "\"http://backend/\"")?;
    let place = section.value_place("url");
    let mut load = SubjectLoad::default();
    for key in OWN_LOAD_KEYS {
        if let Some((entry, path)) = section.entry(key) {
            match load_change(reader, key, &entry.node, &path, recipes) {
                Some(LoadChange::Connections(count)) => load.connections = Some(count),
                Some(LoadChange::RequestsPerConnection(count)) => {
                    load.requests_per_connection = Some(count);
                }
                Some(LoadChange::Http(version)) => load.http = Some(version),
                Some(LoadChange::Streams(count)) => load.streams = Some(count),
                _ => {}
            }
            if driver.as_ref().is_some_and(|driver| !driver.is_engine()) {
                reader.report(Problem::at(
                    entry.place,
                    format!("`{path}` is for the built-in engine"),
                    "this subject has another driver",
                ));
            }
        }
    }
    Some(Described {
        url,
        place,
        driver,
        load,
        background,
    })
}

fn target(
    reader: &mut Reader,
    top: &Section<'_>,
    place: Place,
    name: &str,
    url: &str,
    factors: &[WrittenFactor],
    recipes: &Recipes,
) -> Option<(String, Target, String)> {
    let wrong = |message: &str, label: &str| {
        Problem::at(
            place,
            format!("subject `{}`: {message}", shown(name)),
            label,
        )
    };
    let known = |scheme: &str| {
        matches!(scheme, "http" | "https")
            || recipes
                .drivers()
                .iter()
                .any(|driver| driver.schemes.iter().any(|one| one == scheme))
    };
    let Some((scheme, rest)) = url.split_once("://").filter(|(scheme, _)| known(scheme)) else {
        reader.report(wrong("this is not a URL", "expected http://… or https://…").help(FORM));
        return None;
    };
    let end = rest.find(['/', '?', '#', '{']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if let Some(level) = level_without_slash(path, factors) {
        reader.report(
            wrong(
                &format!(
                    "a level of its path does not begin with `/`: `{}`",
                    shown(level)
                ),
                "a factor directly behind the host holds the whole path",
            )
            .help(format!(
                "write {scheme}://{authority}/{path}, or begin each level with `/`"
            )),
        );
        return None;
    }
    let path = if path.starts_with(['/', '{']) && !path.starts_with("{{") {
        path.to_owned()
    } else {
        format!("/{path}")
    };
    if let Some(problem) = path_problem(&path, true) {
        reader.report(wrong(&problem, "not allowed in a request"));
    }
    for unknown in placeholders_of_path(&path)
        .into_iter()
        .filter(|name| !factors.iter().any(|factor| factor.name == *name))
    {
        reader.report(
            wrong(
                &format!("no factor is called `{unknown}`"),
                "`{…}` does not name a factor",
            )
            .help(suggestion(unknown, "factors", factor_names(factors))),
        );
    }
    let target = authority_target(reader, top, scheme, authority, &wrong)?;
    Some((scheme.to_owned(), target, path))
}

/// A level that cannot follow a host, where a path begins with a factor's name in braces.
fn level_without_slash<'f>(path: &str, factors: &'f [WrittenFactor]) -> Option<&'f str> {
    path.strip_prefix('{')
        .filter(|rest| !rest.starts_with('{'))?;
    let name = *placeholders_of_path(path).first()?;
    let factor = factors.iter().find(|factor| factor.name == name)?;
    let levels = factor.levels.iter().map(|level| level.text.as_str());
    levels.into_iter().find(|level| !level.starts_with('/'))
}

fn authority_target(
    reader: &mut Reader,
    top: &Section<'_>,
    scheme: &str,
    authority: &str,
    wrong: &impl Fn(&str, &str) -> Problem,
) -> Option<Target> {
    let names: Vec<&str> = match top.table.get("servers").map(|entry| &entry.node.tree) {
        Some(Tree::Table(table)) => table.entries.iter().map(|e| e.name.as_str()).collect(),
        _ => Vec::new(),
    };
    // An empty port stands for the usual one (RFC 3986, 3.2.3).
    let usual = if scheme == "https" { ":443" } else { ":80" };
    let authority = &*match authority.strip_suffix(':') {
        Some(host) if names.contains(&host) || host.is_empty() => host.to_owned(),
        Some(host) => format!("{host}{usual}"),
        None => authority.to_owned(),
    };
    if names.contains(&authority) {
        return Some(Target::Server(authority.to_owned()));
    }
    match url::authority(authority) {
        Ok(_) | Err(AuthorityFault::Character) => {}
        Err(AuthorityFault::Empty) => {
            reader.report(wrong("the URL has no host", "nothing between `//` and `/`").help(FORM));
            return None;
        }
        Err(AuthorityFault::User) => {
            reader.report(
                wrong("a user in the URL is not supported", "remove it")
                    .help("send an Authorization header instead: [load] headers"),
            );
            return None;
        }
        Err(fault) => {
            reader.report(wrong(&fault.to_string(), "not in this host"));
            return None;
        }
    }
    // The colons of a bare IPv6 address are inside brackets.
    let after_brackets = authority.rfind(']').map_or(0, |at| at + 1);
    let Some(colon) = authority[after_brackets..].rfind(':') else {
        reader.report(
            wrong(
                &format!("no server is called `{}`", shown(authority)),
                "not in [servers]",
            )
            .help(suggestion_or(
                authority,
                "servers",
                names.iter().copied(),
                &format!(
                    "for something that already runs give its port too: http://{}:80/",
                    shown(authority)
                ),
            )),
        );
        return None;
    };
    let (host, port) = authority.split_at(after_brackets + colon);
    if names.contains(&host) {
        reader.report(
            wrong(
                "a server's port does not belong in the URL",
                "remove the port",
            )
            .help(format!("write `port` under [servers.{host}] to choose it")),
        );
        return None;
    }
    match port[1..].parse::<u32>() {
        Ok(1..=65_535) => {}
        _ => {
            reader.report(wrong(
                &format!("`{}` is not a port", shown(&port[1..])),
                "expected a port from 1 to 65535",
            ));
            return None;
        }
    }
    let good = |c: char| c.is_ascii_alphanumeric() || ".-_[]:%".contains(c);
    if host.is_empty() || !host.chars().all(good) {
        reader.report(wrong(
            &format!("`{}` is not a host", shown(host)),
            "expected a name or an address",
        ));
        return None;
    }
    Some(Target::Address(authority.to_owned()))
}

/// A path without its placeholders. What is wrong in these is reported as theirs.
fn without_places(path: &str) -> String {
    let mut rest = path;
    let mut out = String::new();
    while let Some(at) = rest.find("{{") {
        out.push_str(&rest[..at]);
        rest = rest[at..].split_once("}}").map_or("", |(_, behind)| behind);
        // Braces of a factor at the end of a placeholder.
        rest = rest.trim_start_matches('}');
    }
    out + rest
}

/// Why a path is more likely a slip than what is to be asked for. Other characters that may not stand
/// in a request line are percent-encoded. Before a condition is resolved, braces may name factors.
pub(crate) fn path_problem(path: &str, braces: bool) -> Option<String> {
    let outside = without_places(path);
    let bad = outside.chars().find(|c| match c {
        '{' | '}' => !braces,
        '#' => true,
        c => c.is_ascii_whitespace() || c.is_ascii_control(),
    })?;
    Some(if bad == '#' {
        "the part after `#` is never sent to a server".to_owned()
    } else {
        format!(
            "`{}` has to be percent-encoded in a path",
            bad.escape_debug()
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::Experiment;
    use crate::file::error::ExperimentError;
    use crate::recipes::Recipes;
    use crate::spec::Target;

    fn parsed(url: &str, levels: &str) -> Result<Experiment, ExperimentError> {
        let text = format!(
            "title = \"t\"\n[servers.base]\nrecipe = \"origin\"\n[subjects]\na = \"{url}\"\n\
             [factors]\npath = [{levels}]\n"
        );
        let recipes = Recipes::embedded().unwrap();
        Experiment::parse("x.toml", &text, &[], false, &recipes)
    }

    #[test]
    fn a_factor_directly_behind_the_host_is_the_whole_path() {
        let levels = "\"/bytes/10\", \"/bytes/20\"";
        for url in ["http://base{path}", "http://127.0.0.1:80{path}"] {
            let experiment = parsed(url, levels).unwrap();
            let conditions = experiment.conditions();
            let paths = conditions
                .iter()
                .map(|one| experiment.under(one).subjects[0].path.clone());
            assert_eq!(paths.collect::<Vec<_>>(), ["/bytes/10", "/bytes/20"]);
            let written = experiment.to_toml();
            assert!(written.contains(url), "{written}");
        }
    }

    #[test]
    fn a_level_that_cannot_follow_the_host_is_named_with_what_to_write() {
        let error = parsed("http://base{path}", "\"/a\", \"b\"").unwrap_err();
        let ExperimentError::Mistakes(mistakes) = error else {
            panic!("expected mistakes");
        };
        let told = mistakes.all()[0].to_string();
        assert!(told.contains("does not begin with `/`: `b`"), "{told}");
    }

    fn told(url: &str) -> String {
        match parsed(url, "\"/a\"").unwrap_err() {
            ExperimentError::Mistakes(mistakes) => mistakes.all()[0].to_string(),
            other => panic!("expected mistakes, found {other}"),
        }
    }

    #[test]
    fn paths_are_percent_encoded_and_an_empty_port_is_the_usual_one() {
        for (url, path, target) in [
            (
                "http://base/\u{e9}?<a>&{path}",
                "/%C3%A9?%3Ca%3E&/a",
                "base",
            ),
            ("http://base:{path}", "/a", "base"),
            ("http://h:{path}", "/a", "h:80"),
            ("https://[::1]:{path}", "/a", "[::1]:443"),
        ] {
            let experiment = parsed(url, "\"/a\"").unwrap();
            let subject = experiment.under(&experiment.conditions()[0]).subjects[0].clone();
            assert_eq!(subject.path, path, "{url}");
            let (Target::Server(found) | Target::Address(found)) = subject.target;
            assert_eq!(found, target, "{url}");
        }
    }

    #[test]
    fn hosts_that_cannot_be_asked_are_refused_with_the_reason() {
        for (url, why) in [
            ("http://u:p@h:80{path}", "a user in the URL"),
            ("http://[fe80::1%25eth0]:80{path}", "a zone identifier"),
            ("http://\u{fc}:80{path}", "begins with xn--"),
            ("http://:{path}", "no host"),
            ("http://base/a b{path}", "percent-encoded"),
        ] {
            let told = told(url);
            assert!(told.contains(why), "{url}: {told}");
        }
    }
}
