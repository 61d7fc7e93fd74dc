//! The caller's side of the pipe: starts agents, here or elsewhere, gives orders, waits for answers,
//! and does not trust what comes.

pub(crate) mod agent;
pub(crate) mod child_guard;
mod frame_queue;
mod greeting;
pub(crate) mod handle;
mod load_check;
pub(crate) mod output;
pub(crate) mod pipe_command;
pub(crate) mod program;
mod read_answer;
mod reply_timeout;
