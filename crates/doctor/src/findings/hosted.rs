//! Runners of continuous integration, and what their noise allows.

use crate::machine::Machine;
use crate::machine::runner::Runner;
use crate::{Finding, Level, Topic};

/// What the runner's noise allows: what is known of it, and how to find out the rest.
pub(crate) fn finding(machine: &Machine) -> Option<Finding> {
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
    use crate::fixtures::good;
    use crate::machine::activity::Activity;

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
