//! `weigh load`.

mod accept_queues;
mod counts;
mod empty_pages;
pub mod hosts;
mod lasting;
mod live;
mod overload;
mod requests;
mod shapes;
mod stopped;
mod times;
mod ways;
mod words;
