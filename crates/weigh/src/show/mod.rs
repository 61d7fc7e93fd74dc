//! The commands that print and measure nothing, a file or folder each by its name, and what a
//! result is shown with: its gates, and the facts of its run's folder.

pub mod board;
pub mod completions;
pub mod doctor;
pub mod gates;
pub mod history;
pub mod list;
pub mod man;
pub mod read;
pub mod report;
pub mod run_facts;
pub mod schema;
