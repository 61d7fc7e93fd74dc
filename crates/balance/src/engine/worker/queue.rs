//! Clients that wait while every usable back end is at its limit.
//!
//! Each worker has a FIFO queue per service; the length limit counts over all workers. There is no
//! order between workers.

use std::sync::atomic::Ordering;

use net::{ConnId, Io};

use super::Worker;
use super::connection::Client;
use super::service_worker::Choice;

impl<I: Io> Worker<I> {
    /// Queues a client, or rejects it if the queue is full.
    pub(in crate::engine) fn enqueue(&mut self, conn: ConnId) {
        let now_ns = self.now();
        let connection = self.connection(conn);
        let service = connection.service as usize;
        let silent = |client: &Client| client.held.is_empty();
        if connection.ended
            && connection.downstream.is_none()
            && connection.client.as_deref().is_some_and(silent)
        {
            // It has closed without having sent anything.
            return self.end_client(conn);
        }
        let most = self.services[service].queue_length;
        let state = self.state(service);
        let room = state
            .queued
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| {
                (now < most).then_some(now + 1)
            });
        if room.is_err() {
            state.overflowed.add(1);
            return self.reject_client(conn);
        }
        if let Some(client) = &mut self.connection(conn).client {
            client.queued_ns = Some(now_ns);
        }
        self.services[service].queue.push_back(conn);
    }

    /// Removes a client from the queue.
    pub(in crate::engine) fn left_queue(&mut self, service: usize, conn: ConnId) {
        self.services[service].queue.retain(|one| *one != conn);
        self.state(service).queued.fetch_sub(1, Ordering::Relaxed);
    }

    fn out_of_queue(&mut self, service: usize, conn: ConnId) {
        if let Some(client) = &mut self.connection(conn).client {
            client.queued_ns = None;
        }
        self.left_queue(service, conn);
    }

    /// Dispatches queued clients while there is capacity.
    pub(in crate::engine) fn serve_queues(&mut self) {
        for service in 0..self.services.len() {
            // Clients bound to one back end do not block the others.
            let mut bound = 0;
            while let Some(&conn) = self.services[service].queue.get(bound) {
                let choice = self.choose(conn);
                if choice != Choice::Full {
                    self.out_of_queue(service, conn);
                    self.apply_choice(conn, choice);
                } else if self.is_sticky(conn) {
                    bound += 1;
                } else {
                    break;
                }
            }
        }
    }

    /// Rejects clients that have waited too long.
    pub(in crate::engine) fn scan_queues(&mut self, now_ns: u64) {
        for service in 0..self.services.len() {
            let limit = self.services[service].limits.queue;
            while let Some(&conn) = self.services[service].queue.front() {
                let since = self
                    .connection(conn)
                    .client
                    .as_ref()
                    .and_then(|one| one.queued_ns);
                if since.is_some_and(|since| now_ns.saturating_sub(since) < limit) {
                    break;
                }
                let state = self.state(service);
                state.overflowed.add(1);
                state.timeouts.add(1);
                self.reject_client(conn);
            }
        }
    }
}
