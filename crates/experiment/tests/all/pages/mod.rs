//! The pages of the documentation, held against the program.

mod docs;
mod reference;
mod schemas;
