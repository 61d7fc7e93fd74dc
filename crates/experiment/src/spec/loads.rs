//! Several loads that are made at the same time, and what each is under a condition.

use readings::url::encoded_path;
use readings::{Condition, HttpVersion};
use requests::placeholder::has_places;

use super::experiment::{Effect, Experiment, Role, Subject};
use super::load::{LoadRole, LoadSpec, NamedLoad};
use super::resolved_condition::{LoadBeside, SubjectSpec};

/// The loads under one condition.
pub(super) struct LoadsUnder {
    /// The first compared load.
    pub main: LoadSpec,
    /// Name and path of that load, if there are several.
    pub name: Option<String>,
    pub path: Option<String>,
    others: Vec<NamedLoad>,
    /// The background loads of the condition; `None` for all.
    background: Option<Vec<String>>,
}

impl LoadsUnder {
    /// The other loads, without those that are made on no subject.
    pub fn beside(&self, experiment: &Experiment, condition: &Condition) -> Vec<LoadBeside> {
        let of_load = |one: &NamedLoad| LoadBeside {
            name: one.name.clone(),
            role: one.role,
            subjects: experiment
                .subjects
                .iter()
                .filter(|subject| self.is_made_on(experiment, one, subject))
                .map(|subject| {
                    experiment.subject_under(subject, condition, &one.load, one.path.as_deref())
                })
                .collect(),
            load: one.load.clone(),
        };
        let beside = self.others.iter().map(of_load);
        beside.filter(|one| !one.subjects.is_empty()).collect()
    }

    fn is_made_on(&self, experiment: &Experiment, load: &NamedLoad, subject: &Subject) -> bool {
        if load.role == LoadRole::Compared {
            return true;
        }
        let wanted = match experiment.subjects_have_background() {
            true => subject.background.as_ref(),
            false => match &self.background {
                Some(wanted) => Some(wanted),
                None => return true,
            },
        };
        wanted.is_some_and(|wanted| wanted.contains(&load.name))
    }
}

impl Experiment {
    /// Of several loads the first compared one. A trial's row has its figures in its own fields.
    pub fn main_load(&self) -> Option<&NamedLoad> {
        let mut loads = self.loads.iter();
        loads.find(|one| one.role == LoadRole::Compared)
    }

    /// Whether any subject names its background loads. Then a subject that names none has none.
    pub fn subjects_have_background(&self) -> bool {
        self.subjects.iter().any(|one| one.background.is_some())
    }

    /// Every load, before factors change it, with its name: `None` for `[load]`.
    pub fn all_loads(&self) -> Vec<(Option<&str>, &LoadSpec)> {
        match self.loads.is_empty() {
            true => vec![(None, &self.load)],
            false => {
                let loads = self.loads.iter();
                loads
                    .map(|one| (Some(one.name.as_str()), &one.load))
                    .collect()
            }
        }
    }

    /// The loads with the levels of a condition.
    pub(super) fn loads_under(&self, condition: &Condition) -> LoadsUnder {
        let (mut main, mut loads) = (self.load.clone(), self.loads.clone());
        let mut background = None;
        for effect in self.effects(condition) {
            match effect {
                (Role::OneLoad { load }, Effect::Load(change)) => {
                    if let Some(one) = loads.iter_mut().find(|one| one.name == *load) {
                        change.apply(&mut one.load);
                    }
                }
                (_, Effect::Background(names)) => background = Some(names.clone()),
                (_, Effect::Load(change)) => change.apply(&mut main),
                (_, Effect::Loads(parts)) => {
                    parts.iter().for_each(|part| part.change.apply(&mut main));
                }
                _ => {}
            }
        }
        main.settle();
        loads.iter_mut().for_each(|one| one.load.settle());
        let (mut name, mut path) = (None, None);
        let first = loads.iter().position(|one| one.role == LoadRole::Compared);
        if let Some(first) = first {
            let one = loads.remove(first);
            (main, name, path) = (one.load, Some(one.name), one.path);
        }
        LoadsUnder {
            main,
            name,
            path,
            others: loads,
            background,
        }
    }

    /// A subject with the path, connections and version of HTTP of a load.
    pub(super) fn subject_under(
        &self,
        subject: &Subject,
        condition: &Condition,
        load: &LoadSpec,
        path: Option<&str>,
    ) -> SubjectSpec {
        let http = subject.load.http.unwrap_or(load.http);
        SubjectSpec {
            name: subject.name.clone(),
            scheme: subject.scheme.clone(),
            target: subject.target.clone(),
            path: match self.filled_path(path.unwrap_or(&subject.path), condition) {
                // Encoded as it is filled in.
                path if has_places(&path) => path,
                path => encoded_path(&path),
            },
            through: self.through(&subject.target),
            driver: subject.driver.as_ref().unwrap_or(&load.driver).clone(),
            connections: subject.load.connections.unwrap_or(load.connections),
            requests_per_connection: subject.load.requests_per_connection,
            http,
            streams: (http != HttpVersion::Http1)
                .then(|| subject.load.streams.unwrap_or(load.streams)),
        }
    }
}
