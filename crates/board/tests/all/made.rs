//! Runs that are made up.

use board::{File, Recipes, Run};
use readings::{
    Condition, Journal, JournalRow, Outcome, ServerSettings, SettingsReading, SubjectSettings,
};
use report::{MachineFacts, RunFacts};
use serde_json::json;
use testing::made_up::MadeUp;

/// `proxy` and `origin` are known recipes, `command` runs whatever it is told.
pub struct Known;

impl Recipes for Known {
    fn text(&self, name: &str) -> Option<String> {
        let known = ["proxy", "origin"].contains(&name);
        known.then(|| format!("recipe {name}\n\n  A <server>."))
    }

    fn is_generic(&self, name: &str) -> bool {
        name == "command"
    }
}

/// A run with nothing but its journal.
pub fn bare(journal: Journal) -> Run {
    Run {
        journal,
        facts: RunFacts::default(),
        experiment: None,
        hosts: None,
    }
}

/// A run of so many subjects under so many conditions, in which some trials are lost. The `number`
/// of the run makes its time, its version and its speed.
pub fn run(subjects: usize, conditions: u32, blocks: u32, number: u64) -> Run {
    let names = (0..subjects).map(|at| match at {
        0 => "direct".to_owned(),
        1 => "a-proxy-with-a-name-of-forty-characters-x".to_owned(),
        2 => "<i>markup</i>".to_owned(),
        at => format!("proxy_{at}"),
    });
    let made = MadeUp {
        trials: blocks * conditions * (subjects as u32 + 1),
        subjects: names.collect(),
        conditions,
        lost_every: 97,
    };
    let mut journal = made.journal();
    let header = &mut journal.header;
    header.experiment = "proxies".into();
    header.title = "The <proxies> of today".into();
    header.started_unix_s = 1_772_360_100 + 86_400 * number;
    header.seed = number;
    let factor = |condition: &mut Condition| {
        let level = condition["connections"].clone();
        let size = if level.len().is_multiple_of(2) {
            "10000"
        } else {
            "100"
        };
        condition.insert("size".into(), size.into());
    };
    header.conditions.iter_mut().for_each(factor);
    for row in &mut journal.rows {
        let JournalRow::Trial(trial) = row else {
            continue;
        };
        factor(&mut trial.condition);
        let Outcome::Done(reading) = &mut trial.outcome else {
            continue;
        };
        // From the sixth run on, every proxy is a fifth slower.
        if let Some(load) = reading.throughput.as_mut().filter(|_| number > 5)
            && trial.subject != "direct"
        {
            load.requests = load.requests * 4 / 5;
            load.requests_all = load.requests;
            load.slices
                .iter_mut()
                .for_each(|one| one.requests = one.requests * 4 / 5);
        }
    }
    let settings = settings(&journal.header.subjects, number);
    journal.rows.insert(0, JournalRow::Settings(settings));
    let files = json!({"proxy.conf": format!("# <{}>\nlisten 1;\n", "x".repeat(200))});
    let hosts = json!({"local": {
        "host": "vm", "kernel": "6.18", "cpus": [0, 1],
        "servers": {"proxy_3": {"recipe": "proxy", "files": files}},
    }});
    Run {
        journal,
        facts: RunFacts {
            question: Some("What does each <proxy> cost?".into()),
            machines: vec![MachineFacts {
                name: "vm".into(),
                kernel: Some("6.18".into()),
                cpus: Some(2),
                ..MachineFacts::default()
            }],
            ..RunFacts::default()
        },
        experiment: Some("title = \"The <proxies> of today\"\n".into()),
        hosts: Some(hosts),
    }
}

fn settings(subjects: &[String], number: u64) -> SettingsReading {
    let of = |subject: &String| {
        let (server, recipe) = match subject.as_str() {
            "direct" => ("origin", "origin"),
            "proxy_4" => ("proxy_4", "command"),
            name => (name, "proxy"),
        };
        SubjectSettings {
            subject: subject.clone(),
            servers: vec![ServerSettings {
                server: server.to_owned(),
                recipe: recipe.to_owned(),
                version: Some(if number > 1 { "2.0" } else { "1.9" }.to_owned()),
                ..ServerSettings::default()
            }],
        }
    };
    SettingsReading {
        subjects: subjects.iter().map(of).collect(),
        ..SettingsReading::default()
    }
}

pub fn site(runs: Vec<Run>) -> Vec<File> {
    board::board(runs, &Known)
}

pub fn text<'a>(files: &'a [File], name: &str) -> &'a str {
    let names = || files.iter().map(|file| &file.name).collect::<Vec<_>>();
    let found = files.iter().find(|file| file.name == name);
    &found
        .unwrap_or_else(|| panic!("no {name} in {:?}", names()))
        .text
}
