//! `weigh run`: what an experiment measures, keeps and says.

mod alone;
mod bottlenecks;
mod curves;
mod drivers;
mod folder;
mod kill;
mod looks;
mod profile;
mod quiet;
mod servers;
mod several_loads;
mod stop;
mod words;
