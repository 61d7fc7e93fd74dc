//! Recipes: their rules, and those of the program with the servers that are installed.

mod installed;
mod rules;
