//! What each tool prints, a file for each.

pub(crate) mod ab;
pub(crate) mod h2load;
pub(crate) mod hey;
pub(crate) mod httperf;
pub(crate) mod k6;
pub(crate) mod oha;
pub(crate) mod redis_benchmark;
pub(crate) mod siege;
pub(crate) mod time;
pub(crate) mod weigh;
pub(crate) mod wrk;
mod wrk2;
