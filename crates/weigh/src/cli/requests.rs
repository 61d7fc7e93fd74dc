//! Options of requests with data, of files of requests, and of recordings.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use readings::requests::FeedOrder;

use crate::units;

/// Requests with data; the same for `weigh capacity`.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Requests with data")]
pub struct DataArgs {
    /// Rows of data, as CSV with a header line or as JSON lines; may be repeated. `{{ NAME.COLUMN }}`
    /// in the URL, in --header and in --body is filled in. NAME is the file's, without its extension.
    /// Built-in: `{{ seq }}`, `{{ uuid }}`, `{{ now }}`, `{{ int(1, 1000) }}`, `{{ hex(16) }}` and
    /// `{{ zipf(10000, 1.1) }}`.
    #[arg(long = "feed", value_name = "[NAME=]FILE", value_parser = feed)]
    pub feeds: Vec<FeedFile>,
    /// Which row each request takes: in turn (wraps around), random by the seed, or each row once; the
    /// load ends after the last.
    #[arg(long, value_enum, default_value_t, requires = "feeds")]
    pub feed_order: FeedOrderArg,
    /// Take the requests from this file, TOML or JSON lines. All go to the URL's server.
    #[arg(long, value_name = "FILE", conflicts_with = "body")]
    pub requests: Option<PathBuf>,
    /// Each connection is one user, with its own cookies.
    #[arg(long)]
    pub cookies: bool,
}

/// A file of rows and its name in placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedFile {
    pub name: String,
    pub path: PathBuf,
}

/// `[NAME=]FILE`.
fn feed(text: &str) -> Result<FeedFile, String> {
    let named = text.split_once('=');
    if let Some((name, path)) = named.filter(|(name, _)| requests::placeholder::is_name(name)) {
        return Ok(FeedFile {
            name: name.to_owned(),
            path: path.into(),
        });
    }
    match requests::feed::name_of(Path::new(text)) {
        Some(name) => Ok(FeedFile {
            name: name.to_owned(),
            path: text.into(),
        }),
        None => Err(format!(
            "the name of `{text}` cannot stand in a placeholder; give one, such as account={text}"
        )),
    }
}

/// Which row of a feed a request has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FeedOrderArg {
    /// By its number.
    #[default]
    #[value(name = "in_turn", alias = "in-turn")]
    InTurn,
    /// By the seed.
    Random,
    /// Each once.
    Once,
}

impl From<FeedOrderArg> for FeedOrder {
    fn from(order: FeedOrderArg) -> Self {
        match order {
            FeedOrderArg::InTurn => FeedOrder::InTurn,
            FeedOrderArg::Random => FeedOrder::Random,
            FeedOrderArg::Once => FeedOrder::Once,
        }
    }
}

/// Requests with data, and those of a log, in `weigh compare`.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Requests with data")]
pub struct ComparedRequestsArgs {
    /// Rows of data, as CSV with a header line or as JSON lines; may be repeated. `{{ NAME.COLUMN }}`
    /// in the URLs, in --header and in --body is filled in, as in `weigh load`.
    #[arg(long = "feed", value_name = "[NAME=]FILE", value_parser = feed)]
    pub feeds: Vec<FeedFile>,
    /// Which row a request has: by its number, round and round; one by the seed; or each row once,
    /// and no request after the last.
    #[arg(long, value_enum, default_value_t, requires = "feeds")]
    pub feed_order: FeedOrderArg,
    /// Keep cookies: each connection is a user's, who sends them back.
    #[arg(long)]
    pub cookies: bool,
    /// Send each subject the requests of this access log at their times, in each block. It is an open
    /// loop that lasts as long as the log; there is no closed loop.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "requests", "method", "body", "feeds", "cookies", "rate", "curve", "window", "latency"
        ]
    )]
    pub replay: Option<String>,
    /// Replay so many times as fast.
    #[arg(long, value_name = "FACTOR", requires = "replay", value_parser = speed)]
    pub speed: Option<f64>,
}

/// Requests that were recorded.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Recorded requests")]
pub struct RecordedArgs {
    /// Send the requests of this HAR file, as a browser saves it: those to the server that has most
    /// of them, in order. Cookies, `Authorization`, and headers and query parameters that look like
    /// keys are removed. Bodies are kept, passwords included: check the file before you share it.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["requests", "body", "replay"])]
    pub har: Option<PathBuf>,
    /// Keep the cookies, `Authorization` and keys of --har.
    #[arg(long, requires = "har")]
    pub har_secrets: bool,
    /// Make --har the session of a user, with the recorded pauses between requests.
    #[arg(long, requires = "har")]
    pub har_pauses: bool,
    /// Write the requests of --har to this file, for --requests, and send nothing.
    #[arg(long, value_name = "FILE", requires = "har")]
    pub write_requests: Option<PathBuf>,
    /// Send the requests of this access log at their times: nginx's and Apache's combined or common
    /// format, JSON lines, Caddy's, or HAProxy's HTTP log; - is standard input. It is an open loop
    /// that lasts as long as the log.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["requests", "body", "feeds", "cookies"])]
    pub replay: Option<PathBuf>,
    /// Also replay these methods, without bodies: logs have none.
    #[arg(
        long,
        value_name = "METHOD,...",
        value_delimiter = ',',
        requires = "replay"
    )]
    pub replay_methods: Vec<String>,
    /// Speed factor: 2 replays in half the time.
    #[arg(long, value_name = "FACTOR", requires = "replay", value_parser = speed)]
    pub speed: Option<f64>,
    /// Replay from this time on: 2026-11-27T10:00:00Z, without Z by the log's clock, or 10:00:00 of
    /// its first day; or a time after its first line, such as 90s.
    #[arg(long, value_name = "TIME", requires = "replay", value_parser = moment)]
    pub from: Option<requests::log::Moment>,
    /// Replay until before this time.
    #[arg(long, value_name = "TIME", requires = "replay", value_parser = moment)]
    pub to: Option<requests::log::Moment>,
}

fn speed(text: &str) -> Result<f64, String> {
    match text.strip_suffix('x').unwrap_or(text).parse() {
        Ok(speed) if (0.001..=1000.0).contains(&speed) => Ok(speed),
        _ => Err("expected a factor from 0.001 to 1000, such as 2".to_owned()),
    }
}

fn moment(text: &str) -> Result<requests::log::Moment, String> {
    if let Ok(after) = units::duration(text) {
        return Ok(requests::log::Moment::After(after));
    }
    text.parse()
}
