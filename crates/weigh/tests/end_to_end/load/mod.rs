//! `weigh load`.

mod accept_queues;
mod counts;
mod empty_pages;
mod events;
pub mod hosts;
mod live;
mod overload;
mod requests;
mod shapes;
mod stopped;
mod times;
mod ways;
mod websockets;
mod words;
