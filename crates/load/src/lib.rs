//! The load engine.
//!
//! A [`Job`] names targets, connections and a list of stints; [`run`] carries it out on threads
//! that share nothing and returns a reading for each number that the stints record to. It knows
//! nothing of experiments.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod barrier;
mod check;
mod conn;
mod crawl;
mod job;
mod learn;
mod merge;
mod pacing;
mod record;
mod rows;
mod run;
mod worker;

pub use check::{BodyRule, Expect, StatusRule};
pub use crawl::{CrawlError, CrawlLimits, Page, Site, crawl};
pub use job::{
    Arrivals, Choice, Job, JobError, Lane, ProxyHeader, ProxyVersion, ROW_MIN, Received, Request,
    Stage, Stint, Stop, Target, Wait,
};
pub use learn::{LearnError, Learned, learn, learn_unless_stopped};
pub use rows::Row;
pub use run::{LoadError, Progress, run};
