//! Recipes of servers: started, asked, stopped.

mod apps;
mod crossroads;
mod images;
mod install;
mod php;
mod relaying;
mod servers;
mod tls;
