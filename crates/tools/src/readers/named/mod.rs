//! Tools whose figures stand beside or below their names, in a text and in a document: all are
//! read by names ([`crate::text::named`]).

pub(super) mod artillery;
pub(super) mod autocannon;
pub(super) mod bombardier;
pub(super) mod gatling;
pub(super) mod ghz;
pub(super) mod jmeter;
pub(super) mod locust;
pub(super) mod vegeta;
