//! Clients whose back end a program chooses.

use net::{ConnId, Io};

use super::Worker;
use crate::config::Placeholders;
use crate::engine::external::ExternalChoice;

impl<I: Io> Worker<I> {
    /// Asks the program for a client; the client resumes with the reply.
    pub(in crate::engine) fn ask(&mut self, client: ConnId) {
        let now_ns = self.now();
        let Worker {
            connections,
            services,
            shared,
            external_chooser,
            ..
        } = self;
        let connection = &mut connections[client.slot()];
        let service = connection.service as usize;
        let (Some(client_state), Some(external_chooser), Some(command)) = (
            &mut connection.client,
            external_chooser,
            &services[service].program,
        ) else {
            return;
        };
        let mut line = Vec::new();
        let placeholders = Placeholders {
            client: client_state.address.ip(),
            backend: "",
            service: &shared.services[service].name,
        };
        command.fill(&placeholders, &mut line);
        if let Some(number) = external_chooser.ask(service, line, client, now_ns) {
            client_state.external_choice = ExternalChoice::Pending(number);
            return;
        }
        shared.hook_failures.add(1);
        client_state.external_choice = ExternalChoice::Chosen(None);
        self.choice_made(client);
    }

    /// Takes replies, and resumes clients whose limit has passed.
    pub(super) fn take_replies(&mut self) {
        let now_ns = self.now();
        while let Some((number, client, backend)) = self.next_reply(now_ns) {
            let connection = &mut self.connections[client.slot()];
            let is_there = connection.conn == Some(client);
            let Some(client_state) = connection.client.as_mut().filter(|_| is_there) else {
                continue;
            };
            // It may wait for a later reply.
            if client_state.external_choice == ExternalChoice::Pending(number) {
                client_state.external_choice = ExternalChoice::Chosen(backend);
                self.choice_made(client);
            }
        }
    }

    fn next_reply(&mut self, now_ns: u64) -> Option<(u64, ConnId, Option<u32>)> {
        self.external_chooser.as_mut()?.next_reply(now_ns)
    }

    fn choice_made(&mut self, client: ConnId) {
        let service = self.connection(client).service as usize;
        if !self.services[service].queue.is_empty() {
            return self.enqueue(client);
        }
        self.select_backend(client);
    }
}
