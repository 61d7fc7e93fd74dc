//! Recipes: how to configure, start, know ready, probe and stop one kind of server.
//!
//! A recipe is data, a folder with a `recipe.toml`, templates and files;
//! `docs/src/reference/recipes.md` describes it. Everything here is pure but
//! [`crate::Recipes::load`], which reads the folders it is given, and what looks for programs and
//! files on this machine: [`Recipe::available`] and its like.

mod context;
mod error;
mod items;
mod load;
mod read;
mod relays;
mod reload;
mod render;
mod settings;
mod versions;

pub(crate) use settings::SETTINGS;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use installed::{Need, Packages};

use tls::KeyType;

use crate::manifest::{Param, Value, Version, fill};

pub use context::{
    Behind, Certificates, Ready, RenderContext, Rendered, RenderedFile, certificate_name,
};
pub use error::RecipeError;
pub(crate) use items::PLACEHOLDERS;
pub(crate) use load::recipes;
pub use relays::Relay;
pub(crate) use reload::RecipeReload;
pub use reload::{Reload, ReloadSign, ReloadState};
pub use render::is_certificate;

/// One kind of server.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    /// Its name: the name of its folder.
    pub name: String,
    /// Its folder; `None` of a recipe that the program brings.
    pub folder: Option<PathBuf>,
    /// What it is, in a sentence.
    pub summary: String,
    /// The project's home page.
    pub homepage: Option<String>,
    /// The packages that bring all it needs.
    pub packages: Packages,
    /// Programs it needs: a name for the templates, and the names to search for, in order.
    /// `weigh` is not among them; it is the running program itself.
    pub programs: Vec<(String, Vec<String>)>,
    /// Files it needs besides its programs, such as a module.
    pub needs: Vec<Need>,
    /// How many servers it passes requests on to.
    pub upstreams: Upstreams,
    /// Its parameters, in the order they were written.
    pub params: Vec<Param>,
    /// Folders to be made inside the server's folder.
    pub dirs: Vec<String>,
    /// Folders to be made in memory, with links to them inside the server's folder: templates.
    pub(crate) memory_dirs: Vec<String>,
    /// The user it runs as when Weighstation runs as root; without it a user of the server's own.
    pub run_as: Option<String>,
    /// Whether programs that it starts may gain privileges.
    pub setuid_programs: bool,
    /// The longest path of its folder, in bytes, where it has a limit (Unix sockets).
    pub longest_dir_bytes: Option<usize>,
    /// Its log files inside its folder.
    pub log_files: Vec<String>,
    /// The file in its folder in which it counts what it receives, where it does.
    pub counts: Option<String>,
    pub(crate) templates: Vec<RecipeFile>,
    pub(crate) copies: Vec<RecipeFile>,
    pub(crate) command: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    /// A list parameter with further variables, each as `NAME=VALUE`.
    pub(crate) variables: Option<String>,
    /// The folder that it is started in, a template; its own folder, without it.
    pub(crate) cwd: Option<String>,
    /// Whether it has the environment of the running program.
    pub(crate) inherit_env: bool,
    pub(crate) stop: Vec<(String, Duration)>,
    pub(crate) ready: Ready,
    pub(crate) ready_templates: ReadyTemplates,
    /// How it is reloaded, where it can be.
    pub(crate) reload: Option<RecipeReload>,
    /// When it speaks TLS on its port; never, without it.
    pub(crate) tls: Option<RecipeTls>,
    /// Which traffic that lasts it passes on: names and templates.
    pub(crate) relays: Vec<(String, String)>,
    pub(crate) version: Option<Version>,
    /// Its settings in terms common to all servers: names and templates.
    pub(crate) settings: Vec<(String, String)>,
    /// What stays as the server has it by itself, and why.
    pub(crate) defaults: Vec<(String, String)>,
    /// Every file of the recipe's folder, by its path inside it.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

/// When a server speaks TLS, as templates over its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecipeTls {
    /// `true` or `false`.
    pub enabled: String,
    /// A key type; the default without it.
    pub key: Option<String>,
    /// `true` or `false`; false without it.
    pub client_certs: Option<String>,
    /// How many extra certificates, each for a name of its own; none without it.
    pub certificates: Option<String>,
}

/// The keys of `[ready]` that say how a server is asked, as templates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadyTemplates {
    /// A version of HTTP; 1.1 without it.
    pub http: Option<String>,
    /// `true` or `false`; false without it.
    pub proxy_protocol: Option<String>,
}

/// How many upstreams a server takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upstreams {
    /// None: it answers by itself.
    None,
    /// Exactly one.
    One,
    /// One or more.
    Many,
    /// None or more.
    Any,
}

impl Upstreams {
    /// The words of a recipe file, in the order of the variants.
    pub(crate) const WORDS: [&'static str; 4] = ["none", "one", "many", "any"];

    pub(crate) fn of_word(word: &str) -> Option<Self> {
        Some(match word {
            "none" => Self::None,
            "one" => Self::One,
            "many" => Self::Many,
            "any" => Self::Any,
            _ => return None,
        })
    }

    /// Whether it takes this number of upstreams.
    pub fn takes(self, count: usize) -> bool {
        match self {
            Self::None => count == 0,
            Self::One => count == 1,
            Self::Many => count >= 1,
            Self::Any => true,
        }
    }

    /// What it takes, in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::None => "no upstreams",
            Self::One => "exactly one upstream",
            Self::Many => "one upstream or more",
            Self::Any => "any number of upstreams",
        }
    }
}

/// A file that is filled in, or copied unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecipeFile {
    /// Destination, a template.
    pub to: String,
    /// Path inside the recipe's folder, a template.
    pub from: String,
    /// A list parameter: the file is made once for each `item` of it.
    pub each: Option<String>,
    pub mode: u32,
}

impl Recipe {
    /// Whether a server with these parameters speaks TLS on its port, and the key type of its
    /// certificate. `params` are complete ([`Recipe::fill`]).
    ///
    /// # Errors
    /// When a template of `[tls]` fails, or yields no key type.
    pub fn tls(&self, params: &BTreeMap<String, Value>) -> Result<Option<KeyType>, RecipeError> {
        render::tls(self, params)
    }

    /// Whether a server with these parameters, which are complete, refuses clients without a
    /// certificate of the run's authority.
    ///
    /// # Errors
    /// When a template of `[tls]` fails.
    pub fn wants_client_certs(
        &self,
        params: &BTreeMap<String, Value>,
    ) -> Result<bool, RecipeError> {
        render::wants_client_certs(self, params)
    }

    /// How many extra certificates the server has, of the names that [`certificate_name`] gives.
    ///
    /// # Errors
    /// When its template fails, or is no number.
    pub fn extra_certificates(
        &self,
        params: &BTreeMap<String, Value>,
    ) -> Result<usize, RecipeError> {
        render::extra_certificates(self, params)
    }

    /// The parameter of that name.
    pub fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|param| param.name == name)
    }

    /// The version in what the version command printed: the word after the recipe's `after`.
    pub fn version_in(&self, printed: &str) -> Option<String> {
        self.version.as_ref()?.find_in(printed)
    }

    /// The parameters with the given ones checked and all others at their defaults.
    ///
    /// # Errors
    /// [`RecipeError::Param`] for a name that the recipe does not know, a value that does not
    /// fit, or a parameter that has to be given and was not.
    pub fn fill(
        &self,
        given: &BTreeMap<String, Value>,
    ) -> Result<BTreeMap<String, Value>, RecipeError> {
        fill(&self.params, given).map_err(|(param, why)| RecipeError::Param {
            recipe: self.name.clone(),
            param,
            why,
        })
    }
}
