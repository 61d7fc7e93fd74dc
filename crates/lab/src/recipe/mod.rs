//! Recipes: how to configure, start, know ready, probe and stop one kind of server.
//!
//! A recipe is data, a folder with a `recipe.toml`, templates and files;
//! `docs/src/reference/recipes.md` describes it. Everything here is pure but [`Recipes::load`], which reads the folders it is
//! given, and [`Recipe::available`], which looks for programs and files on this machine.

pub(crate) mod available;
mod error;
pub(crate) mod load;
mod param;
pub(crate) mod read;
pub(crate) mod render;
mod settings;
mod value;

use std::collections::BTreeMap;
use std::time::Duration;

pub use available::Availability;
pub use error::RecipeError;
pub use load::Recipes;
pub use param::{Kind, Param};
pub use render::{Behind, Ready, RenderContext, Rendered, RenderedFile};
pub use value::Value;

/// One kind of server.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    /// Its name: the name of its folder.
    pub name: String,
    /// What it is, in a sentence.
    pub summary: String,
    /// Where its project lives.
    pub homepage: Option<String>,
    /// Debian packages that bring all it needs.
    pub packages: Vec<String>,
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
    /// The user it runs as when Weighstation runs as root.
    pub run_as: Option<String>,
    /// The longest path of its folder, in bytes, where it cannot bear more (Unix sockets).
    pub longest_dir_bytes: Option<usize>,
    /// Its log files inside its folder.
    pub log_files: Vec<String>,
    pub(crate) templates: Vec<Copy>,
    pub(crate) copies: Vec<Copy>,
    pub(crate) command: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) stop: Vec<(String, Duration)>,
    pub(crate) ready: Ready,
    pub(crate) version: Option<Version>,
    /// What it tells of its parameters in words that mean the same for every server: names and
    /// templates.
    pub(crate) settings: Vec<(String, String)>,
    /// Every file of the recipe's folder, by its path inside it.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

/// A file that a recipe needs, and the package that brings it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Its path.
    pub file: String,
    /// The Debian package that holds it.
    pub package: Option<String>,
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

    /// Whether so many fit.
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
pub(crate) struct Copy {
    /// Destination, a template.
    pub to: String,
    /// Path inside the recipe's folder, a template.
    pub from: String,
    /// A list parameter: the file is made once for each `item` of it.
    pub each: Option<String>,
    pub mode: u32,
}

/// How a program tells its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub command: Vec<String>,
    /// The version is the word that follows this text.
    pub after: String,
}

impl Version {
    /// The version in what the command printed.
    pub fn find_in(&self, printed: &str) -> Option<String> {
        let start = printed.find(self.after.as_str())? + self.after.len();
        let word: String = printed[start..]
            .trim_start()
            .chars()
            .take_while(|c| !c.is_whitespace() && !matches!(c, ',' | ')' | '('))
            .collect();
        (!word.is_empty()).then_some(word)
    }
}

/// The parameters with the given ones checked and all others at their defaults.
///
/// # Errors
/// The parameter, and what is wrong with it: a name that is not known, a value that does not fit,
/// or one that has to be given and was not.
pub(crate) fn fill(
    params: &[Param],
    given: &BTreeMap<String, Value>,
) -> Result<BTreeMap<String, Value>, (String, String)> {
    let known = |name: &str| params.iter().any(|param| param.name == name);
    if let Some(unknown) = given.keys().find(|name| !known(name)) {
        return Err((unknown.clone(), "there is no such parameter".to_owned()));
    }
    let mut all = BTreeMap::new();
    for param in params {
        let value = match given.get(&param.name) {
            Some(value) => Some(param.accept(value).map_err(|refusal| {
                let why = format!("{}, found {value}", refusal.expected);
                (param.name.clone(), why)
            })?),
            None => param.default.clone(),
        };
        match value {
            Some(value) => {
                all.insert(param.name.clone(), value);
            }
            None if param.optional => {}
            None => return Err((param.name.clone(), format!("expected {}", param.takes()))),
        }
    }
    Ok(all)
}

impl Recipe {
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
