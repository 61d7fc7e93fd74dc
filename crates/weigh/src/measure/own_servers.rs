//! The user's own servers as parts of an experiment: commands, and revisions of a repository.

use experiment::recipe::Upstreams;
use experiment::{ExperimentBuilder, Recipes, command_words, names_a_port};

use crate::cli::{OwnServerArgs, UpstreamArg};
use crate::failure::Failure;

/// The name of the back end of the user's own servers.
const UPSTREAM: &str = "upstream";

/// What a subject of `weigh compare` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubjectValue<'a> {
    /// The URL of something that already runs.
    Url(&'a str),
    /// A command that starts a server.
    Command(&'a str),
    /// A revision of the repository.
    Revision(&'a str),
    Recipe {
        name: &'a str,
        takes: Upstreams,
    },
}

impl<'a> SubjectValue<'a> {
    /// # Errors
    /// When it is none of the four.
    pub fn of(name: &str, text: &'a str, recipes: &Recipes) -> Result<Self, Failure> {
        if let Some(revision) = text.strip_prefix('@') {
            return match revision.is_empty() {
                true => Err(Failure::words(format!(
                    "subject `{name}`: expected a revision after `@`, such as @main, or @. for the \
                     working tree"
                ))),
                false => Ok(Self::Revision(revision)),
            };
        }
        let first = text.split_whitespace().next().unwrap_or_default();
        if first.contains("://") {
            return Ok(Self::Url(text));
        }
        if names_a_port(text) {
            return Ok(Self::Command(text));
        }
        if let Some(recipe) = recipes.get(text) {
            let takes = recipe.upstreams;
            return Ok(Self::Recipe { name: text, takes });
        }
        Err(Failure::words(format!(
            "subject `{name}`: this is not a URL, and no command with {{port}}: `{text}`\n\
             expected one of\n  \
             a URL of what already runs: {name}=http://127.0.0.1:8080/\n  \
             a command that starts a server: {name}='./server --port {{port}}'\n  \
             a command that reads the variable PORT: {name}='PORT={{port}} ./server'\n  \
             a revision of this git repository: {name}=@main\n  \
             a recipe, as `weigh list` shows them: {name}=nginx"
        )))
    }
}

/// Adds the user's own servers to an experiment.
pub struct OwnServers<'a> {
    args: &'a OwnServerArgs,
    /// The current folder.
    here: String,
    upstream: String,
    /// The number of servers so far.
    count: usize,
    /// Whether readiness is checked over HTTP/2.
    http2: bool,
}

impl<'a> OwnServers<'a> {
    /// `names` are those of all subjects.
    ///
    /// # Errors
    /// When the current folder cannot be read, or its path is not UTF-8.
    pub fn new(args: &'a OwnServerArgs, names: &[&str]) -> Result<Self, Failure> {
        let here = std::env::current_dir()
            .map_err(|e| Failure::failed(format!("the current folder cannot be used: {e}")))?;
        let here = here
            .to_str()
            .ok_or_else(|| Failure::failed(format!("{}: expected UTF-8", here.display())))?;
        let mut upstream = UPSTREAM.to_owned();
        while names.contains(&upstream.as_str()) {
            upstream.push('-');
        }
        Ok(Self {
            args,
            here: here.to_owned(),
            upstream,
            count: 0,
            http2: false,
        })
    }

    /// Sets whether the load speaks HTTP/2. The servers may speak nothing else then, so readiness
    /// is checked over HTTP/2, too.
    #[must_use]
    pub fn over_http2(self, http2: bool) -> Self {
        Self { http2, ..self }
    }

    /// Adds the server of a subject, and the subject.
    ///
    /// # Errors
    /// When an option that the subject needs is missing.
    pub fn add(
        &mut self,
        builder: &mut ExperimentBuilder,
        name: &str,
        text: &str,
        value: SubjectValue<'_>,
    ) -> Result<(), Failure> {
        let written = format!("{name}={text}");
        self.count += 1;
        let server = &self.server_name(name);
        let path_of = |key: &'static str| ["servers", server.as_str(), key];
        let command = match value {
            SubjectValue::Url(url) => {
                builder.option(&written, &["subjects", name], url);
                return Ok(());
            }
            SubjectValue::Recipe {
                name: recipe,
                takes,
            } => {
                builder.option(&written, &path_of("recipe"), recipe);
                match self.args.upstream.filter(|_| takes.takes(1)) {
                    Some(upstream) => {
                        builder.set(&path_of("upstreams"), vec![self.upstream_name(upstream)]);
                    }
                    None if !takes.takes(0) => {
                        return Err(Failure::words(format!(
                            "subject `{name}`: the recipe `{recipe}` needs a back end: add --upstream \
                             for the built-in one, or --upstream=ADDRESS for what already runs"
                        )));
                    }
                    None => {}
                }
                self.subject(builder, &written, name, server);
                return Ok(());
            }
            SubjectValue::Command(command) => {
                builder.option(&written, &path_of("command"), command);
                builder.set(&path_of("cwd"), self.here.as_str());
                command
            }
            SubjectValue::Revision(revision) => {
                let start = self.args.start.as_deref().ok_or_else(|| {
                    Failure::words(format!(
                        "subject `{name}` is a revision: say how its server is started with --start, \
                         such as --start 'target/release/server --port {{port}}'"
                    ))
                })?;
                builder.option(&written, &path_of("revision"), revision);
                builder.set(&path_of("repository"), self.here.as_str());
                let from = format!("--start '{start}'");
                builder.option(&from, &path_of("command"), start);
                if let Some(build) = &self.args.build {
                    let from = format!("--build '{build}'");
                    builder.option(&from, &path_of("build"), build.as_str());
                }
                start
            }
        };
        if let Some(ready) = &self.args.ready {
            let from = format!("--ready {ready}");
            builder.option(&from, &path_of("ready"), ready.as_str());
            if self.http2 {
                builder.set(&path_of("ready_http"), "2");
            }
        }
        let wants_upstream = command_words(command).is_ok_and(|words| {
            let mut all = words.words.iter().chain(&words.variables);
            all.any(|word| word.contains("{upstream"))
        });
        if wants_upstream {
            let upstream = match self.args.upstream {
                None => {
                    return Err(Failure::words(format!(
                        "subject `{name}` asks for {{upstream}}: add --upstream for the built-in back \
                         end, or --upstream=ADDRESS for what already runs"
                    )));
                }
                Some(upstream) => self.upstream_name(upstream),
            };
            builder.set(&path_of("upstreams"), vec![upstream]);
        }
        self.subject(builder, &written, name, server);
        Ok(())
    }

    /// Adds the subject of a server.
    fn subject(&self, builder: &mut ExperimentBuilder, written: &str, name: &str, server: &str) {
        let path = self.args.path.as_deref().unwrap_or("/");
        let slash = if path.starts_with('/') { "" } else { "/" };
        let url = format!("http://{server}{slash}{path}");
        builder.option(written, &["subjects", name], url);
    }

    fn upstream_name(&self, upstream: UpstreamArg) -> String {
        match upstream {
            UpstreamArg::BuiltIn => self.upstream.clone(),
            UpstreamArg::Address(address) => address.to_string(),
        }
    }

    /// Adds the back end of the servers.
    pub fn finish(&self, builder: &mut ExperimentBuilder) {
        if self.args.upstream == Some(UpstreamArg::BuiltIn) {
            builder.set(&["servers", &self.upstream, "recipe"], "origin");
        }
    }

    /// The name of a subject's server. Names of servers allow fewer characters than those of
    /// subjects.
    fn server_name(&self, name: &str) -> String {
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        match name.chars().all(good) {
            true => name.to_owned(),
            false => format!("server-{}", self.count),
        }
    }
}

/// Refuses options for the user's own servers if all subjects already run.
///
/// # Errors
/// With the first such option.
pub fn refuse_unused(args: &OwnServerArgs) -> Result<(), Failure> {
    let given = [
        ("--path", args.path.is_some()),
        ("--ready", args.ready.is_some()),
        ("--upstream", args.upstream.is_some()),
        ("--build", args.build.is_some()),
        ("--start", args.start.is_some()),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some(("--path", _)) => Err(Failure::words(
            "--path is for commands, revisions and recipes, and all subjects are URLs: write the path in the \
             URLs",
        )),
        Some((option, _)) => Err(Failure::words(format!(
            "{option} is for commands, revisions and recipes, and all subjects are URLs"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_a_url_a_command_or_a_revision() {
        let recipes = Recipes::embedded().unwrap();
        let kind = |text| SubjectValue::of("a", text, &recipes).ok();
        for (text, expected) in [
            ("http://h:1/", Some(SubjectValue::Url("http://h:1/"))),
            ("./a {port}", Some(SubjectValue::Command("./a {port}"))),
            (
                "PORT={port} ./a --of http://h/",
                Some(SubjectValue::Command("PORT={port} ./a --of http://h/")),
            ),
            ("@v1.2", Some(SubjectValue::Revision("v1.2"))),
            ("@.", Some(SubjectValue::Revision("."))),
            (
                "haproxy",
                Some(SubjectValue::Recipe {
                    name: "haproxy",
                    takes: Upstreams::Many,
                }),
            ),
            ("ngnix", None),
            ("@", None),
            ("./a", None),
            ("127.0.0.1:8080", None),
        ] {
            assert_eq!(kind(text), expected, "{text}");
        }
    }
}
