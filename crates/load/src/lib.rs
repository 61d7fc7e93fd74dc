//! The load engine.
//!
//! A [`Job`] names targets with their connections, and segments of load on them; [`run()`] carries
//! it out on threads that share nothing, and returns a reading for each number that segments record
//! to. It knows nothing of experiments.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod barrier;
mod crawl;
mod exchange;
mod http;
mod idle;
mod job;
mod pacing;
mod prepare;
mod progress;
mod record;
mod run;
mod template;
mod worker;

pub use crawl::{CrawlError, CrawlLimit, CrawlLimits, Page, Site, crawl, page_links};
pub use http::{CallError, Fetcher, FetcherError, call};
pub use idle::{IdleError, IdleHolder};
pub use job::expect::{BodyChecks, BodyRule, Expect, StatusRule};
pub use job::filling::Filling;
pub use job::log::Log;
pub use job::packed::Unpackable;
pub use job::target::{Choice, Http2, Http3, Idle, ProxyHeader, ProxyVersion, Request, Target};
pub use job::traffic::{CallKind, Events, Grpc, SocketFlow, Step, Traffic, Users, WebSocket};
pub use job::{
    Arrivals, CALL_BYTES_MAX, Job, JobError, Part, ROW_MIN, Segment, Stage, Stop, TimestampSource,
    Wait,
};
pub use prepare::{PrepareError, ReferenceError, Varying, prepare};
pub use progress::{LoadError, Progress};
pub use readings::EventFormat;
pub use record::rows::{ROWS_MAX, Row};
pub use run::{Between, run, run_between};
pub use template::feed::FeedRows;
pub use template::request::RequestTemplate;

/// A duration in nanoseconds; centuries are cut to fit.
fn ns(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 4)
}
