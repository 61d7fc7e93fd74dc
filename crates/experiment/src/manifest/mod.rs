//! What `recipe.toml` and `driver.toml` have in common: packages, programs, parameters, templates,
//! and the command that reports a version.

mod folders;
mod packages;
mod param;
mod read;
mod read_value;
mod template;
mod value;
mod version;

pub use param::{Kind, Param};
pub use value::Value;
pub use version::printed;

pub(crate) use folders::{entries, folders_with};
pub(crate) use packages::{VERSION, packages, sources, version_param};
pub(crate) use param::fill;
pub(crate) use read::{command, pairs, params, programs, template, version};
pub(crate) use read_value::ReadValue;
pub(crate) use template::{complaint, environment, params_seen, programs_seen};
pub(crate) use version::Version;
