//! Configuration files.

mod corpus;
mod crossroads;
mod docs;
mod native;
mod round_trip;
