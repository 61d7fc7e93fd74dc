//! HTTP/1.1, with real clients and back ends.

mod churn;
mod configured;
mod failures;
mod forged;
mod idle_memory;
mod lasting;
mod limits;
mod messages;
mod occupied;
mod reuse;
mod stalled_memory;
mod unasked;
