//! What can be wrong with a recipe.

use std::path::PathBuf;

use config::{Mistakes, OpenError};

/// A recipe that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecipeError {
    /// Its `recipe.toml` could not be read as text.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Its `recipe.toml` has mistakes.
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
    #[error("{} cannot be read: {why}", path.display())]
    Unreadable { path: PathBuf, why: std::io::Error },
    #[error("the recipe in {} is too large: {what}", path.display())]
    TooLarge { path: PathBuf, what: String },
    #[error("recipe `{recipe}`: {place} cannot be rendered: {why}")]
    Template {
        recipe: String,
        place: String,
        why: String,
    },
    #[error("recipe `{recipe}`: {place} has the path `{path}`: {why}")]
    Path {
        recipe: String,
        place: String,
        path: String,
        why: String,
    },
    /// A parameter is missing, unknown or out of its limits.
    #[error("recipe `{recipe}`, parameter `{param}`: {why}")]
    Param {
        recipe: String,
        param: String,
        why: String,
    },
    #[error(
        "recipe `{recipe}`: a reload cannot change {params}: the command or its environment would \
         be another one; change only parameters of its configuration files"
    )]
    Reload { recipe: String, params: String },
    /// The number of upstreams does not fit.
    #[error("recipe `{recipe}` takes {takes}, found {found}")]
    Upstreams {
        recipe: String,
        takes: &'static str,
        found: usize,
    },
    #[error(
        "recipe `{recipe}` supports a folder path of at most {longest} bytes, found {found}: use a shorter --out"
    )]
    DirTooLong {
        recipe: String,
        longest: usize,
        found: usize,
    },
}

config::shown_as!(RecipeError: Open, Mistakes);
