//! The complete description of a recipe.

use serde::Serialize;

use super::{Page, ParamDescription, PinnedDescription, names, params, pinned, pinned_names};
use crate::recipe::{Recipe, Upstreams};

/// What a user of a recipe has to know of its file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecipeDescription {
    pub name: String,
    pub summary: String,
    pub homepage: Option<String>,
    /// `none`, `one`, `many` or `any`.
    pub upstreams: &'static str,
    /// Debian packages that bring all it needs.
    pub packages: Vec<String>,
    /// The packages of registries that bring its program, each in a fixed version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pinned: Vec<PinnedDescription>,
    /// The programs it needs, each with the names to search for.
    pub programs: Vec<Vec<String>>,
    /// Files it needs besides its programs.
    pub needs: Vec<String>,
    /// In an experiment: `servers.NAME.with.PARAM`; as a factor: `NAME.PARAM`.
    pub params: Vec<ParamDescription>,
    /// Whether it can speak TLS on its port.
    pub tls: bool,
    /// Whether an event can reload it.
    pub reload: bool,
    /// Files that it puts into the server's folder.
    pub files: Vec<RecipeFileDescription>,
    pub log_files: Vec<String>,
    /// The user it runs as when weigh runs as root; if absent, a user of its own.
    pub run_as: Option<String>,
    /// The command that starts it, as templates.
    pub command: Vec<String>,
    pub ready: RecipeReadiness,
    /// Signals that stop it, in turn.
    pub stop: Vec<String>,
    /// Its settings in terms common to all servers, as templates.
    pub settings: Vec<(String, String)>,
    /// What stays as the server has it by itself, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub defaults: Vec<(String, String)>,
}

/// A file in a server's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecipeFileDescription {
    /// Its path in the server's folder, a template.
    pub to: String,
    /// Its path in the recipe's folder.
    pub from: String,
    /// Whether it is filled in; otherwise it is copied.
    pub template: bool,
    /// The list parameter for each item of which one such file is made.
    pub each: Option<String>,
}

/// The answer that shows that it is up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecipeReadiness {
    /// The path that is requested; absent if the server does not speak HTTP.
    pub path: Option<String>,
    /// The version of HTTP of the request, a template; 1.1 if absent.
    pub http: Option<String>,
    pub status: Option<u16>,
    /// A text that the answer must contain, a template.
    pub contains: Option<String>,
    pub timeout_s: f64,
}

impl RecipeDescription {
    pub fn of(recipe: &Recipe) -> Self {
        let file = |one: &crate::recipe::RecipeFile, template| RecipeFileDescription {
            to: one.to.clone(),
            from: one.from.clone(),
            template,
            each: one.each.clone(),
        };
        let filled = recipe.templates.iter().map(|one| file(one, true));
        let copied = recipe.copies.iter().map(|one| file(one, false));
        let ready = &recipe.ready;
        Self {
            name: recipe.name.clone(),
            summary: recipe.summary.clone(),
            homepage: recipe.homepage.clone(),
            upstreams: match recipe.upstreams {
                Upstreams::None => "none",
                Upstreams::One => "one",
                Upstreams::Many => "many",
                Upstreams::Any => "any",
            },
            packages: recipe.packages.debian.clone(),
            pinned: pinned(&recipe.packages),
            programs: recipe.programs.iter().map(|(_, all)| all.clone()).collect(),
            needs: recipe.needs.iter().map(|need| need.file.clone()).collect(),
            params: params(&recipe.params),
            tls: recipe.tls.is_some(),
            reload: recipe.can_reload(),
            files: filled.chain(copied).collect(),
            log_files: recipe.log_files.clone(),
            run_as: recipe.run_as.clone(),
            command: recipe.command.clone(),
            ready: RecipeReadiness {
                path: ready.send.is_none().then(|| ready.path.clone()),
                http: recipe.ready_templates.http.clone(),
                status: ready.status,
                contains: ready.contains.clone(),
                timeout_s: ready.timeout.as_secs_f64(),
            },
            stop: recipe.stop.iter().map(|(name, _)| name.clone()).collect(),
            settings: recipe.settings.clone(),
            defaults: recipe.defaults.clone(),
        }
    }

    /// The description for a person to read.
    pub fn page(&self) -> Page {
        let mut page = Page::new(&self.name);
        page.paragraph(&self.summary);
        let upstreams = Upstreams::of_word(self.upstreams).map(Upstreams::words);
        let programs: Vec<String> = self.programs.iter().map(|all| all.join(" or ")).collect();
        let user = match self.run_as.as_deref() {
            None => "a user of its own, when weigh runs as root".to_owned(),
            Some(user) => format!("{user}, when weigh runs as root"),
        };
        page.fields(vec![
            ("home page", self.homepage.clone().unwrap_or_default()),
            ("takes", upstreams.unwrap_or_default().to_owned()),
            (
                "port",
                "one: `port` of the server, or a free one".to_owned(),
            ),
            (
                "packages (Debian)",
                names(self.packages.iter().map(String::as_str)),
            ),
            ("packages (weigh install)", pinned_names(&self.pinned)),
            ("programs", names(programs.iter().map(String::as_str))),
            ("other files", names(self.needs.iter().map(String::as_str))),
            (
                "TLS",
                if self.tls {
                    "yes, see its parameters"
                } else {
                    "no"
                }
                .to_owned(),
            ),
            (
                "reload",
                if self.reload {
                    "yes, by an event"
                } else {
                    "no"
                }
                .to_owned(),
            ),
            ("user", user),
            ("logs", names(self.log_files.iter().map(String::as_str))),
            ("is up when", self.readiness()),
        ]);
        page.params(
            "Parameters: `with = { NAME = VALUE }` of a server, or a factor `SERVER.NAME`",
            &self.params,
        );
        let files = self.files.iter().map(|file| {
            let each = file.each.as_ref();
            let each = each.map_or(String::new(), |list| format!(", for each of `{list}`"));
            let how = if file.template { "filled in" } else { "copied" };
            vec![
                format!("`{}`", file.to),
                format!("`{}`, {how}{each}", file.from),
            ]
        });
        page.table("Files in its folder", &["file", "from"], files.collect());
        let defaults = self.defaults.iter();
        page.table(
            "What no parameter changes",
            &["what", "why"],
            defaults
                .map(|(what, why)| vec![what.clone(), why.clone()])
                .collect(),
        );
        page
    }

    fn readiness(&self) -> String {
        let ready = &self.ready;
        // A version that depends on parameters is not described.
        let http = ready.http.as_ref().filter(|text| !text.contains('{'));
        let over = http.map_or(String::new(), |version| format!(" over HTTP/{version}"));
        let asked = match &ready.path {
            Some(path) => format!("`{path}` answers{over}"),
            None => "it answers a message of its protocol".to_owned(),
        };
        let status = match (&ready.path, ready.status) {
            (_, Some(status)) => format!(" with status {status}"),
            (Some(_), None) => " with a status below 500".to_owned(),
            (None, None) => String::new(),
        };
        format!("{asked}{status}, within {} s", ready.timeout_s)
    }
}
