//! Recipes: their rules, and those of the program with the servers that are installed.

mod extra_lines;
mod installed;
mod own_commands;
mod packages;
mod proxies;
mod relays;
pub mod rules;
