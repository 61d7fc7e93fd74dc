//! Files that others may tamper with.

pub mod folder;
pub mod plain_file;
