//! A run's result as people and programs read it: terminal, Markdown, HTML, CSV and JSON.
//!
//! Everything here is a pure function of readings and verdicts; nothing is printed or written.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod capacity;
mod columns;
mod csv;
mod curve_table;
mod facts;
mod gates;
mod grid;
mod html;
mod idle_streams;
mod json;
mod junit;
mod load_hosts;
mod load_json;
mod load_parts;
mod load_terminal;
mod markdown;
mod plan;
mod plot;
mod pull_request;
mod read;
mod scaling;
mod settings;
mod terminal;
mod tiers;
mod visible;

pub use capacity::{capacity_json, capacity_markdown, capacity_terminal};
pub use csv::csv;
pub use facts::{MachineFacts, Profile, RunFacts, TopologyFacts, TopologyServer, TopologySubject};
pub use gates::{gates_json, gates_markdown, gates_terminal};
pub use html::{capacity_html, curve_svg, drawing, html, scaling_html};
pub use idle_streams::idle_streams;
pub use json::json;
pub use junit::junit;
pub use load_json::load_json;
pub use load_parts::{crawl_terminal, load_row};
pub use load_terminal::load_terminal;
pub use markdown::markdown;
pub use plan::{plan_json, plan_markdown, plan_terminal};
pub use pull_request::{PullRequest, pull_request};
pub use read::{Read, read_json, read_markdown, read_terminal};
pub use scaling::{ScalingView, scaling_json, scaling_markdown, scaling_terminal};
pub use terminal::terminal;
pub use visible::{one_line, visible, visible_in_colour, visible_json};

pub use readings::text::compact::{bytes, time};
pub use verdict::capacity::CapacityView;
pub use verdict::words::{flaw, outlook, trial_flaw, why_unmet};
