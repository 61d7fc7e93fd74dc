//! Exchanges, whatever they say.

pub(crate) mod conn;
