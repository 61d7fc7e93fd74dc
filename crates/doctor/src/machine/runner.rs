//! Runners of continuous integration.

/// The runner that this is, by the variables that it sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runner {
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
