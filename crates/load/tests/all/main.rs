//! The load engine on both event loops: what its users rely on, and servers that break every rule,
//! where a load has to end in time and to count each request as what it was.
#![allow(clippy::unwrap_used)]

mod bodies;
mod connections;
mod corpus;
mod filled;
mod heads;
mod loads;
mod memory;
mod odd;
mod protocols;
mod refusals;
mod shares;
mod support;
mod truth;

use protocols::{http2, http3};
