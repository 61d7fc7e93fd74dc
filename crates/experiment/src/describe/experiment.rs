//! The complete description of an experiment.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value as Json};

use super::{Page, json, names};
use crate::catalogue;
use crate::file::{ExperimentError, VARIED_LOAD_KEYS};
use crate::manifest::Value;
use crate::plan::{Plan, time_words};
use crate::recipes::Recipes;
use crate::spec::{
    Effect, Event, EventKind, EventTarget, EventWhat, Experiment, ParamValue, Role, Server, Target,
    Upstream,
};

/// What an experiment asks, its servers and subjects, its load, and how long it takes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExperimentDescription {
    pub name: String,
    pub title: String,
    pub question: Option<String>,
    pub baseline: String,
    /// Names and URLs.
    pub subjects: Vec<(String, String)>,
    pub servers: Vec<ServerDescription>,
    /// Hosts by their names, with their settings as in the file.
    pub hosts: Map<String, Json>,
    pub factors: Vec<FactorDescription>,
    /// How many combinations of levels there are.
    pub conditions: usize,
    /// `[load]` with every default; empty if there are several loads.
    pub load: Map<String, Json>,
    /// Several loads by name, with every default.
    pub loads: Map<String, Json>,
    /// `[expect]` with every default.
    pub expect: Map<String, Json>,
    /// `[design]` with every default.
    pub design: Map<String, Json>,
    /// What happens to servers during a load, in sentences.
    pub events: Vec<String>,
    /// Debian packages of all its servers and drivers.
    pub packages: Vec<String>,
    /// CPUs that its hosts name.
    pub cpus: Vec<u32>,
    /// What else a factor could vary.
    pub may_vary: Vec<String>,
    pub full: Time,
    pub quick: Time,
    /// Whether it has figures that others published, to be shown beside the result.
    pub published: usize,
}

/// A server of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerDescription {
    pub name: String,
    pub recipe: String,
    pub host: Option<String>,
    pub upstreams: Vec<String>,
    /// Parameters that differ from the recipe's defaults.
    pub with: Map<String, Json>,
}

/// A factor of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FactorDescription {
    pub name: String,
    /// What it varies, in words.
    pub varies: String,
    pub levels: Vec<Json>,
}

/// How much is measured, and roughly how long that takes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Time {
    pub blocks: usize,
    pub conditions: usize,
    pub trials: usize,
    /// Searches for bottlenecks after the last block.
    pub searches: usize,
    /// An upper limit for many blocks: a run may end early, once everything is settled.
    pub estimated_s: f64,
    /// Whether it takes longer if answers take long, as with several loads.
    pub is_least: bool,
}

impl ExperimentDescription {
    /// Describes an experiment of the catalogue, or the one in a file.
    ///
    /// # Errors
    /// When there is none of that name, or it has mistakes.
    pub fn open(name_or_path: &str, recipes: &Recipes) -> Result<Self, ExperimentError> {
        let full = catalogue::open_experiment(name_or_path, &[], false, recipes)?;
        let quick = catalogue::open_experiment(name_or_path, &[], true, recipes)?;
        Ok(Self::of(&full, &quick, recipes))
    }

    /// `quick` is the same experiment in its quick form.
    fn of(full: &Experiment, quick: &Experiment, recipes: &Recipes) -> Self {
        // The file as it would be with every default written out.
        let written = full.to_toml().parse::<toml::Table>().unwrap_or_default();
        let table = |key: &str| match written.get(key).map(serde_json::to_value) {
            Some(Ok(Json::Object(map))) => map,
            _ => Map::new(),
        };
        let subjects = full.subjects.iter().map(|subject| {
            let authority = match &subject.target {
                Target::Server(name) | Target::Address(name) => name,
            };
            let url = format!("{}://{authority}{}", subject.scheme, subject.path);
            (subject.name.clone(), url)
        });
        let of_server = |server: &Server| recipes.get(&server.recipe);
        let mut packages: BTreeSet<String> = full
            .servers
            .iter()
            .filter_map(of_server)
            .flat_map(|recipe| recipe.packages.debian.iter().cloned())
            .collect();
        let drivers = recipes.drivers_of(full);
        packages.extend(
            drivers
                .iter()
                .flat_map(|one| one.packages.debian.iter().cloned()),
        );
        let cpus: BTreeSet<u32> = full
            .hosts
            .iter()
            .flat_map(|host| host.cpus.clone())
            .collect();
        Self {
            name: full.name.clone(),
            title: full.title.clone(),
            question: full.question.clone(),
            baseline: full.design.baseline.clone(),
            subjects: subjects.collect(),
            servers: full
                .servers
                .iter()
                .map(|one| server(one, recipes))
                .collect(),
            hosts: table("hosts"),
            factors: full.factors.iter().map(factor).collect(),
            conditions: full.conditions().len(),
            load: table("load"),
            loads: table("loads"),
            expect: table("expect"),
            design: table("design"),
            events: events(full),
            packages: packages.into_iter().collect(),
            cpus: cpus.into_iter().collect(),
            may_vary: may_vary(full, recipes),
            full: time(full),
            quick: time(quick),
            published: full.published.len(),
        }
    }

    /// The description for a person to read.
    pub fn page(&self) -> Page {
        let mut page = Page::new(&self.name);
        page.paragraph(&self.title);
        page.paragraph(self.question.as_deref().unwrap_or_default());
        let cpus: Vec<String> = self.cpus.iter().map(u32::to_string).collect();
        let published = match self.published {
            0 => String::new(),
            count => format!("{count}, shown beside the result"),
        };
        page.fields(vec![
            ("time", self.full.words()),
            ("with --quick", self.quick.words()),
            ("baseline", format!("`{}`", self.baseline)),
            (
                "packages (Debian)",
                names(self.packages.iter().map(String::as_str)),
            ),
            ("CPUs", cpus.join(", ")),
            ("hosts", hosts(&self.hosts)),
            ("load", settings(&self.load)),
            ("loads", hosts(&self.loads)),
            ("good answer", settings(&self.expect)),
            ("design", settings(&self.design)),
            ("published figures", published),
        ]);
        let subjects = self.subjects.iter();
        let subjects = subjects.map(|(name, url)| vec![format!("`{name}`"), format!("`{url}`")]);
        page.table("Subjects", &["subject", "URL"], subjects.collect());
        let servers = self.servers.iter().map(|server| {
            let upstreams = names(server.upstreams.iter().map(String::as_str));
            let host = server.host.clone().unwrap_or_default();
            let with = settings(&server.with);
            vec![
                format!("`{}`", server.name),
                server.recipe.clone(),
                host,
                upstreams,
                with,
            ]
        });
        page.table(
            "Servers: recipe, host, upstreams, and what is not at its default",
            &["server", "recipe", "host", "upstreams", "with"],
            servers.collect(),
        );
        let factors = self.factors.iter().map(|factor| {
            let levels: Vec<String> = factor.levels.iter().map(|one| format!("`{one}`")).collect();
            vec![
                format!("`{}`", factor.name),
                factor.varies.clone(),
                levels.join(", "),
            ]
        });
        page.table(
            &format!("Factors, {} conditions", self.conditions),
            &["factor", "varies", "levels"],
            factors.collect(),
        );
        let events = self.events.iter().map(|event| vec![event.clone()]);
        page.table("Events", &["event"], events.collect());
        let keys = self.may_vary.iter().filter(|name| !name.contains('.'));
        let or = match self.servers.is_empty() {
            true => "",
            false => ", or `SERVER.PARAM`, a parameter of a server's recipe",
        };
        let (prefix, keys) = match self.loads.keys().next() {
            Some(load) => {
                let keys = "`LOAD.KEY`, a key of one of the loads".to_owned();
                (format!("{load}."), keys)
            }
            None => (String::new(), names(keys.map(String::as_str))),
        };
        page.paragraph(&format!(
            "A factor may also vary, as in `--set 'factors.{prefix}connections=[16, 64]'`: {keys}{or}."
        ));
        page
    }
}

impl Time {
    /// `about 20 min`, or `at least 20 min`.
    pub fn about(&self) -> String {
        time_words(self.is_least, Duration::from_secs_f64(self.estimated_s))
    }

    fn words(&self) -> String {
        let early = match self.blocks {
            30 => ", or less: it ends when all is settled",
            _ => "",
        };
        let count = |number: usize, noun: &str| {
            format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
        };
        let searches = match self.searches {
            0 => String::new(),
            1 => ", then a search for its bottleneck".to_owned(),
            some => format!(", then {some} searches for bottlenecks"),
        };
        format!(
            "{}{early} ({} of {} under {}{searches})",
            self.about(),
            count(self.blocks, "block"),
            count(self.trials / self.blocks.max(1), "trial"),
            count(self.conditions, "condition"),
        )
    }
}

fn time(experiment: &Experiment) -> Time {
    let plan = Plan::new(experiment, 0);
    Time {
        blocks: plan.blocks.len(),
        conditions: plan.conditions.len(),
        trials: plan.trials(),
        searches: match experiment.design.bottleneck {
            true => experiment.engine_subjects().len(),
            false => 0,
        },
        estimated_s: (plan.estimated + plan.searches).as_secs_f64(),
        is_least: plan.is_least,
    }
}

fn server(server: &Server, recipes: &Recipes) -> ServerDescription {
    let recipe = recipes.get(&server.recipe);
    let mut with = Map::new();
    for (name, given) in &server.with {
        let default = recipe.and_then(|one| one.param(name)?.default.as_ref());
        let value = match given {
            ParamValue::Value(value) if Some(value) == default => continue,
            ParamValue::Value(value) => json(value),
            ParamValue::Factor { factor, .. } => Some(format!("{{{factor}}}").into()),
        };
        with.extend(value.map(|value| (name.clone(), value)));
    }
    let upstream = |one: &Upstream| match one {
        Upstream::Server(name) => name.clone(),
        Upstream::Address(address) => address.to_string(),
    };
    ServerDescription {
        name: server.name.clone(),
        recipe: server.recipe.clone(),
        host: server.host.clone(),
        upstreams: server.upstreams.iter().map(upstream).collect(),
        with,
    }
}

fn factor(factor: &crate::spec::Factor) -> FactorDescription {
    let level = |level: &crate::spec::Level| match &level.effect {
        Effect::Loads(parts) => {
            let parts = parts.iter();
            let parts = parts.filter_map(|part| Some((part.key.clone(), json(&part.value)?)));
            Some(Json::Object(parts.collect()))
        }
        _ => json(&level.value),
    };
    let name = &factor.name;
    FactorDescription {
        name: name.clone(),
        varies: match &factor.role {
            Role::Load if name == "from" => "the host that makes the load".to_owned(),
            Role::Load if name == "load" => "several keys of `[load]` together".to_owned(),
            Role::Load => format!("`load.{name}`"),
            Role::OneLoad { .. } => format!("`loads.{name}`"),
            Role::Background => "which background loads are made".to_owned(),
            Role::Param { server, param } => format!("parameter `{param}` of server `{server}`"),
            Role::Text => format!("every `{{{name}}}`"),
        },
        levels: factor.levels.iter().filter_map(level).collect(),
    }
}

fn events(experiment: &Experiment) -> Vec<String> {
    let time = |time| config::units::duration_text(time);
    let one = |event: &Event| {
        let what = match &event.what {
            EventWhat::Kind(kind) => kind.word().to_owned(),
            EventWhat::Factor { factor, .. } => format!("{{{factor}}}"),
        };
        let target = match &event.target {
            EventTarget::Servers(servers) => names(servers.iter().map(String::as_str)),
            EventTarget::Host(host) => format!("host `{host}`"),
        };
        let until = match event.until {
            // A rolling restart ends by itself.
            None if event.what.all() == [EventKind::Rolling] => String::new(),
            until => format!(", until {}", until.map_or("the end".to_owned(), time)),
        };
        format!("at {} `{what}` of {target}{until}", time(event.at))
    };
    experiment.events.iter().map(one).collect()
}

/// Keys of the load and parameters of servers that no factor varies yet.
fn may_vary(experiment: &Experiment, recipes: &Recipes) -> Vec<String> {
    let prefixes: Vec<String> = match experiment.loads.is_empty() {
        true => vec![String::new()],
        false => {
            let loads = experiment.loads.iter();
            loads.map(|one| format!("{}.", one.name)).collect()
        }
    };
    let of_load = |prefix: &String| VARIED_LOAD_KEYS.map(|key| format!("{prefix}{key}"));
    let keys = prefixes.iter().flat_map(of_load);
    // With several loads the built-in engine is the only driver.
    let keys = keys.filter(|key| !key.ends_with(".driver"));
    let params = experiment.servers.iter().flat_map(|server| {
        let recipe = recipes.get(&server.recipe);
        let names = recipe.into_iter().flat_map(|recipe| &recipe.params);
        let names = names.map(|param| &param.name);
        let is_fixed = |name: &&String| match server.with.get(*name) {
            Some(ParamValue::Factor { .. }) => false,
            Some(ParamValue::Value(Value::Text(text))) => !text.starts_with('{'),
            _ => true,
        };
        let fixed = names.filter(is_fixed);
        fixed.map(|param| format!("{}.{param}", server.name))
    });
    let varied = |name: &String| experiment.factors.iter().any(|factor| factor.name == *name);
    keys.chain(params).filter(|name| !varied(name)).collect()
}

/// `key = value` for each entry of a table, except empty tables.
fn settings(table: &Map<String, Json>) -> String {
    let shown = table.iter().filter(|(_, value)| match value {
        Json::Object(map) => !map.is_empty(),
        _ => true,
    });
    let texts: Vec<String> = shown
        .map(|(key, value)| format!("`{key} = {value}`"))
        .collect();
    texts.join(", ")
}

fn hosts(hosts: &Map<String, Json>) -> String {
    let one = |(name, value): (&String, &Json)| match value {
        Json::Object(map) if !map.is_empty() => format!("`{name}` ({})", settings(map)),
        _ => format!("`{name}`"),
    };
    hosts.iter().map(one).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_the_defaults_of_recipes_is_told() {
        let recipes = Recipes::embedded().unwrap();
        let one = ExperimentDescription::open("tls-cost", &recipes).unwrap();
        assert_eq!(one.baseline, "origin");
        let server = one.servers.iter().find(|one| one.name == "origin_tls");
        let with: Vec<&String> = server.unwrap().with.keys().collect();
        assert_eq!(with, ["tls", "tls_key", "tls_version"]);
        assert_eq!(one.conditions, 12);
        assert!(one.quick.estimated_s < one.full.estimated_s / 10.0);
        assert!(one.may_vary.contains(&"nginx.workers".to_owned()));
        // A factor of another name fills it in.
        assert!(!one.may_vary.contains(&"origin_tls.tls_key".to_owned()));
        assert_eq!(one.load["connections"], 32);
    }

    #[test]
    fn values_are_shown_as_a_file_has_them() {
        assert_eq!(json(&Value::Size(65_536)), Some("64KiB".into()));
    }
}
