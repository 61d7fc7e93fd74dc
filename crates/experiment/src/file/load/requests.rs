//! What a load sends besides one fixed request: files of requests, logs, placeholders and their feeds.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::replay;
use crate::file::names::path_of_load;
use crate::spec::{
    BodyCheck, Experiment, Feeds, LoadSpec, RequestFile, ResolvedCondition, SubjectSpec, is_host,
};
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::Place;
use config::units::shown;
use readings::TrafficKind;
use readings::requests::{Fill, Piece, RequestSet};
use requests::RequestsError;
use requests::placeholder::{Names, Part, has_places};

/// The keys that are read here.
pub(super) const KEYS: [&str; 8] = [
    "requests",
    "replay",
    "speed",
    "from",
    "to",
    "replay_methods",
    "feeds",
    "cookies",
];

/// Reads the files that the keys name.
pub(super) fn read(reader: &mut Reader, section: &Section<'_>, load: &mut LoadSpec) {
    load.feeds = Arc::new(feeds(reader, section));
    load.cookies = section.boolean(reader, "cookies").unwrap_or_default();
    load.requests = requests(reader, section, &load.feeds);
    load.replay = replay::read(reader, section);
}

fn feeds(reader: &mut Reader, section: &Section<'_>) -> Feeds {
    let Some(section) = section.section(reader, "feeds") else {
        return Feeds::default();
    };
    let folder = folder_of(reader, section.place);
    let read = requests::file::feeds_of(reader, &section, &folder, &[]);
    let (files, feeds) = read.into_iter().unzip::<PathBuf, _, Vec<_>, _>();
    let files = files.iter().map(|path| from_root(path));
    Feeds {
        files: files.map(|path| path.display().to_string()).collect(),
        feeds,
    }
}

fn requests(reader: &mut Reader, section: &Section<'_>, feeds: &Feeds) -> Option<RequestFile> {
    let (entry, path) = section.entry("requests")?;
    let text = reader.text(&entry.node, &path)?;
    let place = entry.node.place;
    let file = whole_path(reader, place, &text);
    match requests::file::open(&file, feeds.feeds.clone()) {
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
pub(super) fn whole_path(reader: &Reader, place: Place, text: &str) -> PathBuf {
    from_root(&folder_of(reader, place).join(text))
}

fn from_root(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn folder_of(reader: &Reader, place: Place) -> PathBuf {
    let file = match place.source {
        0 => reader.source(0).map(|(name, _)| Path::new(name)),
        _ => None,
    };
    file.and_then(Path::parent)
        .unwrap_or(Path::new(""))
        .to_owned()
}

/// Reports each mistake of the file where the experiment names it.
pub(super) fn report(reader: &mut Reader, place: Place, error: &RequestsError) {
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

/// Checks what the loads of a condition send.
pub(in crate::file) fn check(
    reader: &mut Reader,
    top: &Section<'_>,
    experiment: &Experiment,
    resolved: &ResolvedCondition,
) {
    let name = resolved.load_name.as_deref();
    let loads = resolved.beside.iter();
    let beside = loads.map(|one| (Some(one.name.as_str()), &one.load, &one.subjects));
    for (name, load, subjects) in beside.chain([(name, &resolved.load, &resolved.subjects)]) {
        let check = Check {
            top,
            name,
            load,
            subjects,
        };
        check.all(reader);
        if check.first_key().is_some() && experiment.expect.body == BodyCheck::Same {
            let place = top.place_of(&["expect", "body"]).unwrap_or_default();
            let problem = Problem::at(
                place,
                "`expect.body = \"same\"` with requests that differ",
                "each of them may have another answer",
            );
            reader.report(problem.help("write body = \"varies\", or remove `body`"));
        }
    }
}

/// The check of one load.
struct Check<'c> {
    top: &'c Section<'c>,
    name: Option<&'c str>,
    load: &'c LoadSpec,
    subjects: &'c [SubjectSpec],
}

impl Check<'_> {
    fn all(&self, reader: &mut Reader) {
        self.excluded(reader);
        if reader.is_clean() {
            self.texts(reader);
        }
    }

    fn place(&self, key: &str) -> Option<Place> {
        self.top.place_of(&path_of_load(self.name, key))
    }

    /// The key that makes requests differ, or placeholders of a subject's path.
    fn first_key(&self) -> Option<(&'static str, Place)> {
        let load = self.load;
        let keys = [
            ("requests", load.requests.is_some()),
            ("replay", load.replay.is_some()),
            ("cookies", load.cookies),
            ("feeds", !load.feeds.feeds.is_empty()),
        ];
        let found = keys.into_iter().find(|(_, is_given)| *is_given);
        if let Some((key, _)) = found {
            return Some((key, self.place(key).unwrap_or_default()));
        }
        let places = "placeholders";
        // Also in a path of another kind of traffic, which cannot have them.
        let with_places = |one: &&SubjectSpec| load.has_places(&one.path) || has_places(&one.path);
        let subject = self.subjects.iter().find(with_places)?;
        Some((places, self.place_of_path(subject)))
    }

    fn place_of_path(&self, subject: &SubjectSpec) -> Place {
        let own = self.place("path").filter(|_| self.name.is_some());
        let url = || self.top.place_of(&["subjects", &subject.name, "url"]);
        let line = || self.top.place_of(&["subjects", &subject.name]);
        own.or_else(url).or_else(line).unwrap_or_default()
    }

    fn excluded(&self, reader: &mut Reader) {
        let Some((key, place)) = self.first_key() else {
            return;
        };
        let load = self.load;
        let is_file = load.requests.is_some() || load.replay.is_some();
        let is_replay = load.replay.is_some();
        let given = |key| self.place(key).is_some();
        let kind = load.traffic.kind();
        let others = [
            (
                "requests",
                key != "requests" && load.requests.is_some() && is_replay,
                "each is a list of requests",
            ),
            (
                "replay",
                key != "replay" && is_replay,
                "each is a list of requests",
            ),
            (
                "cookies",
                is_replay && load.cookies,
                "a log does not say whose its requests are",
            ),
            (
                "feeds",
                is_replay && !load.feeds.feeds.is_empty(),
                "a log has no placeholders",
            ),
            (
                "method",
                is_file && load.method != "GET",
                "the file says the methods",
            ),
            (
                "body",
                is_file && load.body().is_some(),
                "the file says the bodies",
            ),
            ("rate", is_replay && given("rate"), "the log has the times"),
            (
                "curve",
                is_replay && load.curve.is_some(),
                "the log has one rate",
            ),
            (
                "events",
                is_file && kind == TrafficKind::Events,
                "streams have no requests of their own",
            ),
            (
                "websocket",
                kind == TrafficKind::WebSocket,
                "messages are no requests",
            ),
            ("grpc", kind == TrafficKind::Grpc, "calls have one message"),
        ];
        let other = others
            .iter()
            .find(|(other, is_given, _)| *is_given && *other != key);
        if let Some((other, _, why)) = other {
            let message = format!("`{key}` and `{other}` exclude each other");
            reader.advise(place, message, *why, "keep one of the two");
        }
        if let Some(other) = self.subjects.iter().find(|one| !one.driver.is_engine()) {
            let message = format!(
                "`{key}` needs the built-in engine, but the subject `{}` has the driver `{}`",
                shown(&other.name),
                other.driver.name
            );
            let problem = Problem::at(place, message, "outside drivers send one request");
            reader.report(problem.help("remove the driver"));
        }
    }

    /// Reads every text with placeholders, and reports what is wrong in them.
    fn texts(&self, reader: &mut Reader) {
        let load = self.load;
        let of_file = load.requests.as_ref().map(|file| file.set.feeds.as_slice());
        let names = Names {
            feeds: of_file.unwrap_or(&load.feeds.feeds),
            ..Names::default()
        };
        let headers: Vec<&str> = match self.name {
            Some(name) => vec!["loads", name, "headers"],
            None => vec!["load", "headers"],
        };
        for (name, value) in load.headers.iter().filter(|(_, value)| has_places(value)) {
            let path = [headers.as_slice(), &[name]].concat();
            let place = self.top.place_of(&path).unwrap_or_default();
            if is_host(name) {
                let message = format!("a placeholder in the header `{}`", shown(name));
                let problem = Problem::at(place, message, "all requests go to one host");
                reader.report(problem.help("placeholders go into other headers"));
                continue;
            }
            requests::template_of_value(reader, place, value, names, Part::Text);
        }
        if !load.has_places("{{") || load.requests.is_some() || load.replay.is_some() {
            return;
        }
        if let Some(body) = load.body.as_deref().filter(|body| has_places(body)) {
            let factor = match self.name {
                Some(name) => format!("{name}.body"),
                None => "body".to_owned(),
            };
            let varied = self.top.place_of(&["factors", &factor]);
            let place = varied.or(self.place("body")).unwrap_or_default();
            requests::template_of_value(reader, place, body, names, Part::Text);
        }
        let mut seen: Vec<Place> = Vec::new();
        for subject in self.subjects.iter().filter(|one| has_places(&one.path)) {
            let place = self.place_of_path(subject);
            if !seen.contains(&place) {
                seen.push(place);
                requests::template_of_value(reader, place, &subject.path, names, Part::Path);
            }
        }
    }
}

/// Checks that each feed has a placeholder under some condition: single braces are none.
pub(in crate::file) fn check_feeds(
    reader: &mut Reader,
    top: &Section<'_>,
    experiment: &Experiment,
) {
    let feeds: Vec<(Option<&str>, &str, &str)> = experiment
        .all_loads()
        .into_iter()
        .flat_map(|(name, load)| {
            let feeds = load.feeds.feeds.iter();
            feeds.map(move |feed| {
                let first = feed.columns.first().map_or("column", String::as_str);
                (name, feed.name.as_str(), first)
            })
        })
        .collect();
    if feeds.is_empty() {
        return;
    }
    let mut used: Vec<(Option<String>, String)> = Vec::new();
    for condition in experiment.conditions() {
        let resolved = experiment.under(&condition);
        let beside = resolved.beside.iter();
        let beside = beside.map(|one| (Some(&one.name), &one.load, &one.subjects));
        let main = (
            resolved.load_name.as_ref(),
            &resolved.load,
            &resolved.subjects,
        );
        for (name, load, subjects) in beside.chain([main]) {
            for set in subjects
                .iter()
                .filter_map(|one| load.request_set(&one.path))
            {
                used.extend(used_feeds(&set).map(|feed| (name.cloned(), feed)));
            }
        }
    }
    for (name, feed, column) in feeds {
        if used
            .iter()
            .any(|(load, one)| load.as_deref() == name && one == feed)
        {
            continue;
        }
        let path = [path_of_load(name, "feeds").as_slice(), &[feed]].concat();
        let place = top.place_of(&path).unwrap_or_default();
        let problem = Problem::at(
            place,
            format!("no placeholder names the feed `{feed}`"),
            "not used",
        );
        reader.report(problem.help(format!(
            "write {{{{ {feed}.{column} }}}} in a path, a header or the body"
        )));
    }
}

fn used_feeds(set: &RequestSet) -> impl Iterator<Item = String> {
    let texts = set.requests.iter().flat_map(|one| {
        let fields = one.fields.iter().map(|(_, value)| value);
        fields.chain([&one.path]).chain(&one.body)
    });
    let feed = |piece: &Piece| match piece {
        Piece::Place {
            fill: Fill::Column { feed, .. },
            ..
        } => Some(*feed),
        _ => None,
    };
    texts
        .flat_map(|text| &text.0)
        .filter_map(feed)
        .filter_map(|feed| Some(set.feeds.get(feed)?.name.clone()))
}
