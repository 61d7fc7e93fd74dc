//! Drivers: the programs that make the load instead of the built-in engine.
//!
//! A driver is data, a folder with a `driver.toml`; `docs/src/reference/drivers.md` describes it. What a driver
//! can do follows from its command: a load setting that none of the command's templates uses
//! is not supported. Everything here is pure but [`Drivers::load`], which reads the
//! folders it is given, and [`Driver::available`] and [`Driver::version`], which look for programs
//! and ask one for its version.

mod error;
mod limits;
mod load;
mod output;
mod read;
mod render;
mod version;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tools::Tool;

pub use error::DriverError;
pub use limits::Refusal;
pub(crate) use limits::{NO_KEEPALIVE, WORDS as LOAD_WORDS};
pub use load::Drivers;
pub use output::read_driver_output;
pub use render::RunContext;

pub use crate::spec::{Choice, ENGINE};

use installed::{Availability, Packages};
use readings::HttpVersion;

use crate::manifest::{Param, Value, Version, fill};

/// A program that makes load.
#[derive(Clone, Debug, PartialEq)]
pub struct Driver {
    /// Its name: the name of its folder.
    pub name: String,
    /// What it is, in a line.
    pub title: String,
    /// The project's home page.
    pub homepage: Option<String>,
    /// The packages that bring it.
    pub packages: Packages,
    /// Programs it needs: a name for the templates, and the names to search for, in order.
    pub programs: Vec<(String, Vec<String>)>,
    /// The reader of what it prints.
    pub reader: Tool,
    /// The schemes of the URLs that it can be sent to.
    pub schemes: Vec<String>,
    /// The versions of HTTP that it speaks.
    pub http: Vec<HttpVersion>,
    /// Its parameters, in the order they were written.
    pub params: Vec<Param>,
    /// What to know before its figures are used, a sentence each.
    pub notes: Vec<String>,
    /// What its latency is worth: what follows "its latency is by its own clock: ".
    pub clock: Option<String>,
    /// The steps in which it prints latencies.
    pub latency_step: Option<Duration>,
    /// Whether it polls without sleeping: its CPU time then does not show whether it kept up.
    pub polls: bool,
    /// The most connections that it can hold.
    pub connections_max: Option<u32>,
    /// Whether it leaves out connections that its threads do not divide.
    pub threads_divide: bool,
    /// Exit statuses after which its output is valid.
    pub statuses: Vec<i32>,
    /// Settings that it cannot do, and why.
    pub(crate) cannot: BTreeMap<String, String>,
    /// The names that its command's templates use.
    pub(crate) uses: BTreeSet<String>,
    pub(crate) command: Vec<String>,
    /// The words for one header.
    pub(crate) header: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) version: Option<Version>,
}

impl Driver {
    /// Looks for its programs in the cache of `weigh install`, in PATH and where Debian keeps servers.
    pub fn available(&self) -> Availability {
        installed::look(
            &self.programs,
            &[],
            &self.packages,
            None,
            self.homepage.as_deref(),
        )
    }

    /// The parameters with the given ones checked and all others at their defaults.
    ///
    /// # Errors
    /// [`DriverError::Param`] for a name that it does not know, a value that does not fit, or a
    /// parameter that has to be given and was not.
    pub fn fill(
        &self,
        given: &BTreeMap<String, Value>,
    ) -> Result<BTreeMap<String, Value>, DriverError> {
        fill(&self.params, given).map_err(|(param, why)| DriverError::Param {
            driver: self.name.clone(),
            param,
            why,
        })
    }

    /// Whether its command's templates use this name.
    pub fn uses(&self, name: &str) -> bool {
        self.uses.contains(name)
    }

    /// Whether it takes a rate, and so can make an open loop.
    pub fn has_open_loop(&self) -> bool {
        self.uses("rate_per_s")
    }

    /// Whether it ends after a number of requests, at least under some settings, so that the rate
    /// has to be known before.
    pub fn counts_requests(&self) -> bool {
        self.uses("requests")
    }

    /// Whether it warms up by itself.
    pub fn warms_up(&self) -> bool {
        self.uses("warmup_s")
    }
}
