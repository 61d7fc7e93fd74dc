//! What an experiment needs that is not installed here.

use std::collections::BTreeMap;
use std::path::Path;

use experiment::manifest::Value;
use experiment::{Experiment, Recipes};

/// What is missing on this machine for an experiment, a sentence each. Other
/// machines are checked once their agents run.
pub fn missing(experiment: &Experiment, recipes: &Recipes) -> Vec<String> {
    let mut sentences = Vec::new();
    let here = |host: &Option<String>| !experiment.is_elsewhere(host.as_deref());
    let needed = experiment.needed(recipes);
    for one in needed.iter().filter(|one| here(&one.host)) {
        let available = one.recipe.available_in(one.version.as_deref());
        if let Some(sentence) = available.sentence()
            && !sentences.contains(&sentence)
        {
            sentences.push(sentence);
        }
    }
    let conditions = experiment.conditions();
    sentences.extend(missing_commands(experiment));
    let mut loads = conditions.iter().map(|one| experiment.under(one).load.host);
    if !loads.any(|host| here(&host)) {
        return sentences;
    }
    for driver in recipes.drivers_of(experiment) {
        let sentence = driver.available().sentence();
        sentences.extend(sentence.filter(|sentence| !sentences.contains(sentence)));
    }
    sentences
}

/// The commands of servers on this machine that do not exist, a sentence each.
pub(crate) fn missing_commands(experiment: &Experiment) -> Vec<String> {
    let mut sentences = Vec::new();
    let conditions = experiment.conditions();
    for server in conditions
        .iter()
        .flat_map(|one| experiment.under(one).servers)
    {
        if server.recipe == experiment::COMMAND
            && !experiment.is_elsewhere(server.host.as_deref())
            && let Some(sentence) = missing_command(&server.name, &server.params)
            && !sentences.contains(&sentence)
        {
            sentences.push(sentence);
        }
    }
    sentences
}

/// What is missing for a server that is a command, with these parameters. The program of a revision
/// may be built first, and a program whose name holds a placeholder is known once it is started.
fn missing_command(server: &str, params: &BTreeMap<String, Value>) -> Option<String> {
    let text = |name: &str| match params.get(name) {
        Some(Value::Text(text)) => text.as_str(),
        _ => "",
    };
    let list = |name: &str| match params.get(name) {
        Some(Value::List(items)) => items.as_slice(),
        _ => &[],
    };
    let program = list("command").first()?;
    if !text("revision").is_empty() || program.contains('{') {
        return None;
    }
    if program.contains('/') {
        let path = Path::new(text("cwd")).join(program);
        return (!installed::is_executable(&path)).then(|| {
            format!(
                "server `{server}` starts {}, which does not exist or is not executable",
                path.display()
            )
        });
    }
    let sets_path = list("env").iter().any(|one| one.starts_with("PATH="));
    (!sets_path && !installed::is_in_path(program))
        .then(|| format!("server `{server}` starts {program}, which is not in PATH"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(command: &str, more: &[(&str, Value)]) -> Option<String> {
        let command = Value::List(vec![command.into(), "{port}".into()]);
        let mut params = BTreeMap::from([("command".to_owned(), command)]);
        params.extend(
            more.iter()
                .map(|(key, value)| (key.to_string(), value.clone())),
        );
        missing_command("a", &params)
    }

    #[test]
    fn a_program_that_does_not_exist_is_missing() {
        let text = |text: &str| Value::Text(text.into());
        assert_eq!(missing("sh", &[]), None);
        assert_eq!(missing("/bin/sh", &[]), None);
        assert_eq!(missing("./sh", &[("cwd", text("/bin"))]), None);
        assert_eq!(
            missing("no-such-program", &[]).unwrap(),
            "server `a` starts no-such-program, which is not in PATH"
        );
        assert_eq!(
            missing("./no-such-program", &[("cwd", text("/bin"))]).unwrap(),
            "server `a` starts /bin/./no-such-program, which does not exist or is not executable"
        );
        // A folder, and a file that cannot be executed.
        assert!(missing("/bin", &[]).is_some());
        assert!(missing("/etc/passwd", &[]).is_some());
    }

    #[test]
    fn a_program_that_is_known_later_is_not_missing() {
        let later = [
            ("revision", Value::Text("main".into())),
            ("env", Value::List(vec!["PATH=/opt/x".into()])),
        ];
        for one in later {
            assert_eq!(missing("no-such-program", &[one]), None);
        }
        assert_eq!(missing("{dir}/no-such-program", &[]), None);
    }
}
