//! The program as its users have it, end to end: one program of tests, so that it is linked once.

#![allow(clippy::unwrap_used)]

mod alone;
mod balance_control;
mod bottlenecks;
mod capacity;
mod catalogue;
mod common;
mod curves;
mod drivers;
mod foreign_words;
mod hostile_servers;
mod hosts;
mod hosts_run;
mod http2;
mod kill;
mod links;
mod load;
mod load_live;
mod load_overload;
mod load_shapes;
mod load_stopped;
mod load_times;
mod load_ways;
mod load_words;
mod looks;
mod odd_servers;
mod ordinary_user;
mod plan;
mod read;
mod recipes;
mod recipes_apps;
mod recipes_crossroads;
mod recipes_php;
mod recipes_tls;
mod run_folder;
mod same;
mod scarce;
mod ssh;
mod started;
mod stop;
mod tls;
mod unwritten;
mod words;
mod wrong_answers;
