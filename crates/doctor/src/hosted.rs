//! Runners of continuous integration, and what their noise allows.

use super::machine::Machine;
use super::{Finding, Level, Topic};

/// The runner that this is, by the variables that it sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runner {
    /// A machine of the service, another one for each job.
    Hosted(&'static str),
    /// A machine that the project chose, or one of which that is not known.
    Other(&'static str),
}

impl Runner {
    /// From the environment; nothing outside of continuous integration.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        if is_set("GITHUB_ACTIONS") {
            let own = variable("RUNNER_ENVIRONMENT").as_deref() == Some("self-hosted");
            return Some(match own {
                true => Self::Other("GitHub's runner"),
                false => Self::Hosted("GitHub"),
            });
        }
        if is_set("GITLAB_CI") {
            let tags = variable("CI_RUNNER_TAGS").unwrap_or_default();
            return Some(match tags.contains("saas-") {
                true => Self::Hosted("GitLab"),
                false => Self::Other("GitLab's runner"),
            });
        }
        is_set("CI").then_some(Self::Other("a runner of continuous integration"))
    }
}

/// What the runner's noise allows: what is known of it, and how to find out the rest.
pub(super) fn finding(machine: &Machine) -> Option<Finding> {
    let runner = machine.runner?;
    let name = match runner {
        Runner::Hosted(service) => format!("a hosted runner of {service}"),
        Runner::Other(name) => name.to_owned(),
    };
    let cpus = machine.cpus.len();
    let mut parts = vec![
        name,
        format!("{cpus} CPU{}", if cpus == 1 { "" } else { "s" }),
    ];
    if machine.is_virtual {
        parts.push("a virtual machine".to_owned());
    }
    if let Some(activity) = &machine.activity {
        let steal = activity.steal_since_start * 100.0;
        parts.push(format!("{steal:.1}% of the CPU time stolen so far"));
    }
    let why = match runner {
        Runner::Hosted(_) => {
            "Such machines differ from job to job by more than most changes do, so figures of two \
             jobs cannot be compared. Compare base and head in one job, where they alternate: `weigh \
             compare`. Servers, load and everything else share these CPUs, so expect to settle a few \
             percent of throughput or CPU time per request in minutes, and a p99 hardly. How many \
             blocks it takes here: `weigh plan FOLDER` of a run that was made here."
        }
        Runner::Other(_) => {
            "Compare base and head in one job, where they alternate: `weigh compare`. Keep other jobs \
             off the machine meanwhile. How many blocks it takes here: `weigh plan FOLDER` of a run \
             that was made here."
        }
    };
    Some(Finding::new(
        Topic::Runner,
        Level::Note,
        parts.join(", "),
        "base and head in one job",
        why,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::Activity;
    use crate::fixtures::good;

    fn runner(variables: &[(&str, &str)]) -> Option<Runner> {
        Runner::of(|name| {
            let found = variables.iter().find(|(key, _)| *key == name)?;
            Some(found.1.to_owned())
        })
    }

    #[test]
    fn runners_are_known_by_their_variables() {
        let github = ("GITHUB_ACTIONS", "true");
        for (variables, expected) in [
            (vec![], None),
            (vec![("CI", "")], None),
            (
                vec![("CI", "1")],
                Some(Runner::Other("a runner of continuous integration")),
            ),
            (vec![github], Some(Runner::Hosted("GitHub"))),
            (
                vec![github, ("RUNNER_ENVIRONMENT", "self-hosted")],
                Some(Runner::Other("GitHub's runner")),
            ),
            (
                vec![("GITLAB_CI", "true")],
                Some(Runner::Other("GitLab's runner")),
            ),
            (
                vec![
                    ("GITLAB_CI", "true"),
                    ("CI_RUNNER_TAGS", "[\"saas-linux-small-amd64\"]"),
                ],
                Some(Runner::Hosted("GitLab")),
            ),
        ] {
            assert_eq!(runner(&variables), expected, "{variables:?}");
        }
    }

    #[test]
    fn a_hosted_runner_is_told_what_its_noise_allows() {
        let mut machine = good();
        assert_eq!(finding(&machine), None);
        machine.runner = Some(Runner::Hosted("GitHub"));
        machine.is_virtual = true;
        machine.activity = Some(Activity {
            steal_since_start: 0.021,
            ..Activity::default()
        });
        let told = finding(&machine).unwrap();
        assert_eq!(
            told.found,
            "a hosted runner of GitHub, 4 CPUs, a virtual machine, 2.1% of the CPU time stolen so far"
        );
        assert!(told.why.contains("in one job") && told.why.contains("weigh plan"));
    }
}
