//! Whether what an experiment starts is installed, and the ports that it names are free.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;

use crate::missing::missing_commands;
use crate::{Finding, Level, Topic, sudo};
use experiment::recipe::Recipe;
use experiment::{Experiment, Recipes};
use installed::Availability;

const WHY: &str = "Servers and drivers are started from what is installed; nothing is brought along \
                   but the built-in ends.";

/// What the servers need that some subject of the experiment reaches.
pub(crate) fn of_experiment(
    experiment: &Experiment,
    recipes: &Recipes,
    root: bool,
    weigh: &Path,
) -> Vec<Finding> {
    let mut servers: BTreeMap<(&str, Option<String>), Vec<String>> = BTreeMap::new();
    for one in experiment.needed(recipes) {
        let names = servers.entry((&one.recipe.name, one.version)).or_default();
        names.extend(one.servers);
    }
    let mut findings: Vec<Finding> = servers
        .iter()
        .filter_map(|((recipe, version), names)| {
            let available = recipes.get(recipe)?.available_in(version.as_deref());
            let wanted = format!("what recipe `{recipe}` needs, for {}", names.join(", "));
            missing(&available, Level::Blocker, &wanted, root)
        })
        .collect();
    for driver in recipes.drivers_of(experiment) {
        let wanted = format!("the driver `{}`, which makes the load", driver.name);
        findings.extend(missing(&driver.available(), Level::Blocker, &wanted, root));
    }
    findings.extend(missing_commands(experiment).into_iter().map(|found| {
        let wanted = "the program of each command";
        Finding::new(Topic::Installed, Level::Blocker, found, wanted, WHY)
    }));
    let all_there = findings.is_empty();
    for driver in recipes.drivers_of(experiment) {
        if let Some(version) = driver.version(weigh) {
            findings.push(Finding::new(
                Topic::Installed,
                Level::Fine,
                format!("driver {} {version}", driver.name),
                "what makes the load",
                WHY,
            ));
        }
    }
    if all_there {
        findings.push(Finding::new(
            Topic::Installed,
            Level::Fine,
            "everything that the experiment starts",
            "what its recipes and drivers need",
            WHY,
        ));
    }
    findings
}

/// What any recipe needs.
pub(crate) fn in_general(recipes: &Recipes, root: bool) -> Vec<Finding> {
    let of = |recipe: &Recipe| {
        let wanted = format!("what recipe `{}` needs", recipe.name);
        missing(&recipe.available(), Level::Note, &wanted, root)
    };
    let mut findings: Vec<Finding> = recipes.iter().filter_map(of).collect();
    let ready = recipes.iter().count() - findings.len();
    findings.push(Finding::new(
        Topic::Installed,
        Level::Fine,
        format!("what {ready} of {} recipes need", recipes.iter().count()),
        "what the recipes need",
        WHY,
    ));
    let drivers = || recipes.drivers().iter();
    let lacking: Vec<Finding> = drivers()
        .filter_map(|driver| {
            let wanted = format!("the driver `{}`", driver.name);
            missing(&driver.available(), Level::Note, &wanted, root)
        })
        .collect();
    let all = drivers().count();
    let ready = all - lacking.len();
    findings.extend(lacking);
    findings.push(Finding::new(
        Topic::Installed,
        Level::Fine,
        format!("what {ready} of {all} drivers need"),
        "what the drivers need",
        WHY,
    ));
    findings
}

fn missing(available: &Availability, level: Level, wanted: &str, root: bool) -> Option<Finding> {
    let sentence = available.sentence()?;
    // The command has a line of its own.
    let found = match sentence.split_once(": `") {
        Some((found, _)) => found.to_owned(),
        None => sentence,
    };
    let finding = Finding::new(Topic::Installed, level, found, wanted, WHY);
    Some(match &available.install_command {
        // `weigh install` needs no rights.
        Some(command) if command.starts_with("weigh ") => finding.mend(command.clone()),
        Some(command) => finding.mend(format!("{}{command}", sudo(root))),
        None => finding,
    })
}

/// The ports that the experiment names, each with its server.
pub(crate) fn ports(ports: &[(String, u16)]) -> Vec<Finding> {
    if ports.is_empty() {
        return Vec::new();
    }
    let mut findings: Vec<Finding> = ports
        .iter()
        .filter_map(|(server, port)| {
            let listener = agent::listener_at((Ipv4Addr::LOCALHOST, *port).into())?;
            Some(held(server, *port, listener.process))
        })
        .collect();
    if findings.is_empty() {
        let list: Vec<String> = ports.iter().map(|(_, port)| port.to_string()).collect();
        findings.push(Finding::new(
            Topic::FixedPort,
            Level::Fine,
            format!("free: {}", list.join(", ")),
            "free ports",
            "A server cannot listen where another program does.",
        ));
    }
    findings
}

fn held(server: &str, port: u16, holder: Option<(i32, String)>) -> Finding {
    let by = match &holder {
        Some((pid, name)) => format!("{name} (process {pid})"),
        None => "a program that this user may not see".to_owned(),
    };
    let finding = Finding::new(
        Topic::FixedPort,
        Level::Blocker,
        format!("port {port} of server `{server}` is held by {by}"),
        "a free port",
        format!(
            "A server cannot listen where another program does. End that program if you do not \
             need it, or give the server another port: --set servers.{server}.port=N."
        ),
    );
    match holder {
        Some((pid, _)) => finding.mend(format!("kill {pid}")),
        None => finding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::on;

    fn experiment(text: &str) -> Experiment {
        let recipes = Recipes::embedded().unwrap();
        Experiment::parse("x.toml", text, &[], false, &recipes).unwrap()
    }

    #[test]
    fn what_is_missing_comes_with_the_command_that_brings_it() {
        let available = Availability {
            missing_programs: vec!["tinyd".into()],
            install_command: Some("apt-get install --no-install-recommends tiny".into()),
            ..Availability::default()
        };
        let finding = missing(&available, Level::Blocker, "what it needs", false).unwrap();
        assert_eq!(finding.found, "tinyd is not installed");
        assert_eq!(
            finding.mend.unwrap(),
            "sudo apt-get install --no-install-recommends tiny"
        );
        let of_registry = Availability {
            install_command: Some("weigh install tiny".into()),
            ..available
        };
        let finding = missing(&of_registry, Level::Blocker, "what it needs", false).unwrap();
        assert_eq!(finding.mend.unwrap(), "weigh install tiny");
        assert_eq!(
            missing(&Availability::default(), Level::Blocker, "", false),
            None
        );
    }

    #[test]
    fn the_built_in_ends_need_nothing() {
        let recipes = Recipes::embedded().unwrap();
        let experiment = experiment(
            "title = \"x\"\n[servers.web]\nrecipe = \"origin\"\n\
             [subjects]\ndirect = \"http://web/\"\n",
        );
        let findings = of_experiment(&experiment, &recipes, true, Path::new("weigh"));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].level, Level::Fine);
    }

    #[test]
    fn in_general_what_is_missing_is_a_note_and_all_are_counted() {
        let recipes = Recipes::embedded().unwrap();
        let findings = in_general(&recipes, true);
        assert!(findings.iter().all(|finding| finding.level <= Level::Note));
        let drivers = recipes.drivers().iter().count();
        for (all, what) in [(recipes.iter().count(), "recipes"), (drivers, "drivers")] {
            let word = what.trim_end_matches('s');
            let notes = |f: &&Finding| f.level == Level::Note && f.wanted.contains(word);
            let missing = findings.iter().filter(notes).count();
            let found = format!("what {} of {all} {what} need", all - missing);
            assert!(findings.iter().any(|f| f.found == found), "{findings:?}");
        }
    }

    #[test]
    fn a_port_in_use_names_the_process_that_holds_it() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let wanted = [("web".to_owned(), port)];
        let finding = on(Topic::FixedPort, &ports(&wanted));
        let own = std::process::id();
        assert_eq!(finding.level, Level::Blocker);
        assert!(
            finding.found.contains(&format!("(process {own})")),
            "{}",
            finding.found
        );
        assert_eq!(finding.mend.unwrap(), format!("kill {own}"));
        drop(listener);
        assert_eq!(on(Topic::FixedPort, &ports(&wanted)).level, Level::Fine);
        assert!(ports(&[]).is_empty());
    }

    #[test]
    fn a_port_of_another_user_has_no_command() {
        let finding = held("web", 80, None);
        assert!(finding.found.ends_with("may not see"));
        assert_eq!(finding.mend, None);
        assert!(finding.why.contains("--set servers.web.port=N"));
    }
}
