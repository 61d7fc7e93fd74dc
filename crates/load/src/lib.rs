//! The load engine.
//!
//! A [`Job`] names targets with their connections, and segments of load on them; [`run()`] carries
//! it out on threads that share nothing, and returns a reading for each number that segments record
//! to. It knows nothing of experiments.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod barrier;
mod batches;
mod clock;
mod conn;
mod crawl;
mod expect;
mod fetcher;
mod h2;
mod h3;
mod job;
mod merge;
mod open_loop;
mod pacing;
mod prepare;
mod record;
mod request_fields;
mod rows;
mod run;
mod serde_as;
mod session;
mod share;
mod silence;
mod stop;
mod target;
mod worker;

pub use crawl::{CrawlError, CrawlLimit, CrawlLimits, Page, Site, crawl, page_links};
pub use expect::{BodyRule, Expect, StatusRule};
pub use fetcher::{Fetcher, FetcherError};
pub use job::{
    Arrivals, Job, JobError, Part, ROW_MIN, Segment, Stage, Stop, TimestampSource, Wait,
};
pub use prepare::{PrepareError, ReferenceError, Varying, prepare};
pub use rows::{ROWS_MAX, Row};
pub use run::{LoadError, Progress, run};
pub use target::{Choice, Http2, Http3, ProxyHeader, ProxyVersion, Request, Target};

/// A duration in nanoseconds; centuries are cut to fit.
fn ns(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 4)
}
