//! How a worker tells those who write logs and run commands what happened.
//!
//! Telling never holds a worker up: what the channel has no room for is dropped and counted. For a
//! service without logs and commands nothing is built.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::events::Happened;
use super::state::Shared;
use crate::config::model::{Backend, Service};

/// How many events wait at most for whoever reads them: about 1 MiB.
const EVENTS_MAX: usize = 8192;

/// Whether anybody wants to know what happens in a service.
pub(super) fn wanted(service: &Service) -> bool {
    let backend = |one: &Backend| {
        let hooks = &one.hooks;
        one.throughput_log.is_some()
            || hooks.on_start.is_some()
            || hooks.on_end.is_some()
            || hooks.on_fail.is_some()
    };
    service.access_log.is_some() || service.backends.iter().any(backend)
}

/// A worker's end of the channel.
#[derive(Clone)]
pub(super) struct Teller {
    sender: SyncSender<Happened>,
    shared: Arc<Shared>,
}

impl Teller {
    pub fn channel(shared: &Arc<Shared>) -> (Teller, Receiver<Happened>) {
        let (sender, receiver) = sync_channel(EVENTS_MAX);
        let shared = shared.clone();
        (Teller { sender, shared }, receiver)
    }

    pub fn tell(&self, happened: Happened) {
        if self.sender.try_send(happened).is_err() {
            self.shared.events_lost.add(1);
        }
    }
}
