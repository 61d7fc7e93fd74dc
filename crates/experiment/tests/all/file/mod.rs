//! What an experiment file may say.

mod event_kinds;
mod loads;
mod machine_links;
mod measured_params;
mod mistakes;
mod placeholders;
mod replay;
mod requests;
mod settings;
mod text;
mod traffic;
mod unreadable_files;
