//! Recipes of servers: started, asked, stopped.

mod apps;
mod crossroads;
mod images;
mod install;
mod php;
mod servers;
mod tls;
