//! A run's result as people and programs read it: terminal, Markdown, HTML, CSV, JSON, and the formats
//! of programs that follow figures over time.
//!
//! Everything here is a pure function of readings and verdicts; nothing is printed or written.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod data;
mod facts;
mod html;
mod markdown;
mod section;
mod study;
mod text;

pub use data::csv::csv;
pub use data::export::{Better, bencher, github, openmetrics, openmetrics_labels, otava};
pub use data::json::json;
pub use data::junit::junit;
pub use data::load_json::load_json;
pub use facts::{MachineFacts, Profile, RunFacts, TopologyFacts, TopologyServer, TopologySubject};
#[cfg(feature = "full")]
pub use html::ranking_png;
pub use html::{capacity_html, curve_svg, drawing, html, ranking_svg, scaling_html};
pub use markdown::markdown;
pub use markdown::pull_request::{PullRequest, pull_request};
pub use study::capacity::{capacity_json, capacity_markdown, capacity_terminal};
pub use study::gates::{gates_json, gates_markdown, gates_terminal};
pub use study::plan::{plan_json, plan_markdown, plan_terminal};
pub use study::read::{Read, read_json, read_markdown, read_terminal};
pub use study::scaling::{ScalingView, scaling_json, scaling_markdown, scaling_terminal};
pub use text::answer::terminal;
pub use text::idle::{idle_json, idle_terminal};
pub use text::idle_streams::idle_streams;
pub use text::load::load_terminal;
pub use text::load::parts::{crawl_terminal, load_row};
pub use text::run::verbose;
pub use text::visible::{one_line, visible, visible_in_colour, visible_json};

pub use readings::text::compact::{bytes, time};
pub use verdict::capacity::CapacityView;
pub use verdict::words::plan::decides;
pub use verdict::words::{flaw, offered, trial_flaw, why_unmet};
