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
    /// One of its files, or a folder of recipes, cannot be read.
    #[error("{} cannot be read: {why}", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        why: std::io::Error,
    },
    /// Its folder is too large.
    #[error("the recipe in {} is too large: {what}", path.display())]
    TooLarge {
        /// The recipe's folder.
        path: PathBuf,
        /// Which limit, and what was found.
        what: String,
    },
    /// A template cannot be filled in.
    #[error("recipe `{recipe}`: {place} cannot be rendered: {why}")]
    Template {
        recipe: String,
        /// The template or the key.
        place: String,
        /// What the template engine says, with the line.
        why: String,
    },
    /// A path that a template gave leads out of the server's folder, or to nothing.
    #[error("recipe `{recipe}`: {place} has the path `{path}`: {why}")]
    Path {
        recipe: String,
        /// The key.
        place: String,
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// A parameter is missing, unknown or out of its limits.
    #[error("recipe `{recipe}`, parameter `{param}`: {why}")]
    Param {
        recipe: String,
        /// The parameter.
        param: String,
        /// What was expected.
        why: String,
    },
    /// A reload cannot change these parameters.
    #[error(
        "recipe `{recipe}`: a reload cannot change {params}: the command or its environment would \
         be another one; change only parameters of its configuration files"
    )]
    Reload {
        recipe: String,
        /// The changed parameters, in quotes.
        params: String,
    },
    /// The number of upstreams does not fit.
    #[error("recipe `{recipe}` takes {takes}, found {found}")]
    Upstreams {
        recipe: String,
        takes: &'static str,
        /// How many were given.
        found: usize,
    },
    /// The server's folder has too long a path for it.
    #[error(
        "recipe `{recipe}` supports a folder path of at most {longest} bytes, found {found}: use a shorter --out"
    )]
    DirTooLong {
        recipe: String,
        /// The longest path that it supports.
        longest: usize,
        /// The path's length.
        found: usize,
    },
}

config::shown_as!(RecipeError: Open, Mistakes);
