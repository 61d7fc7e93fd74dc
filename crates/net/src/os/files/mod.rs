//! Files that others may tamper with, or read while they are written.

pub mod folder;
pub mod plain_file;
mod shared_counts;

pub use shared_counts::SharedCounts;
