//! Commands that measure nothing, and what the forms of a result have in common.

mod board;
mod foreign_words;
mod gates;
mod history;
mod list;
mod picture;
mod read;
mod shells;
mod unwritten;
