//! Rows, and the end of a segment.

use net::Io;
use readings::Slice;

use super::ROW_WORK_NS;
use super::multiplexed;
use super::segment::SegmentRun;
use crate::exchange::Kind;
use crate::pacing::Pacer;
use crate::pacing::clock::Clock;
use crate::pacing::stop::StopRule;
use crate::progress::{Message, Progress};
use crate::record::rows::RowMessage;

impl<I: Io, C: Clock, K: Kind, P: Pacer, S: StopRule> SegmentRun<'_, I, C, K, P, S> {
    /// Sends the rows whose time is over.
    pub(super) fn finish_rows(&mut self) {
        while let Some(row) = self.row
            && self.now >= row.from + row.length
            && row.from + row.length <= self.window.end
        {
            self.finish_row(row.length);
        }
    }

    /// Sends the current row with this length, and begins the next.
    fn finish_row(&mut self, length: u64) {
        let open = self.connections_open();
        let (Some(row), Some(reading)) = (&mut self.row, self.reading) else {
            return;
        };
        let recorder = &mut self.worker.recorders[self.recorder];
        recorder.row.row.start_s = (row.from - self.window.from) as f64 / 1e9;
        recorder.row.row.duration_s = length as f64 / 1e9;
        if let Some(connections) = &mut recorder.connections {
            connections.finish_row(recorder.row.row.start_s, open);
        }
        // The receiver is gone once the caller has given up the load.
        let _ = self.worker.events.send(Message::Rows(RowMessage::Row {
            thread: self.worker.thread,
            segment: self.number,
            reading,
            number: row.number,
            stats: Box::new(recorder.finish_row()),
        }));
        row.number += 1;
        row.from += length;
        self.worked(ROW_WORK_NS);
    }

    /// Sends the last row: the rest of the window, and the answers after its end.
    fn finish_last_row(&mut self) {
        let Some(row) = self.row else { return };
        let counts = &self.worker.recorders[self.recorder].row.row;
        let is_begun = counts.requests + counts.errors > 0;
        let mut left = self.window.end.saturating_sub(row.from);
        if P::OPEN && is_begun {
            left = left.max(self.last_done.saturating_sub(row.from));
        }
        if left > 0 || is_begun {
            self.finish_row(left);
        }
        let _ = self.worker.events.send(Message::Rows(RowMessage::Over {
            thread: self.worker.thread,
            segment: self.number,
        }));
    }

    /// Records what is known at the end.
    pub(super) fn finish(mut self) {
        self.now = self.worker.clock.now_ns();
        // Due requests for which no connection was free.
        while let Some(due) = self.backlog.pop_front() {
            self.never_sent(due);
        }
        self.give_up_turns(u64::MAX);
        if K::HAS_MESSAGES {
            self.end_users();
        }
        if self.window.end == u64::MAX {
            self.window.end = self.last_done.max(self.window.from + 1);
        } else if self.is_used_up {
            let end = (self.last_done + 1).max(self.window.from + 1);
            self.window.end = self.window.end.min(end);
        }
        self.cross_edges();
        self.finish_open_loop();
        self.tick();
        self.report(Progress::SegmentEnds {
            segment: self.number,
        });
        self.finish_last_row();
        let worker = self.worker;
        let conns = &worker.conns[worker.conns_of[self.target].clone()];
        let recorder = &mut worker.recorders[self.recorder];
        recorder.finish_row();
        if let Some(open) = &mut recorder.open_loop {
            open.batches.end_slice(&recorder.response);
        }
        if self.row.is_some() {
            let length = self.window.end.saturating_sub(self.window.from);
            recorder.gaps.end(self.number, length);
        }
        if self.reading.is_some() {
            recorder.by_conn.resize(conns.len(), 0);
            for (sum, conn) in recorder.by_conn.iter_mut().zip(conns) {
                *sum += conn.answers;
            }
        }
        recorder.requests += self.requests;
        if let (Some(tls), Some(opened), Some(closed)) =
            (&mut recorder.tls, self.opened, self.closed)
        {
            tls.wire_bytes_read += closed.wire.read - opened.wire.read;
            tls.wire_bytes_sent += closed.wire.sent - opened.wire.sent;
            let packets = closed.quic.since(&opened.quic);
            tls.wire_bytes_read += packets.bytes_received;
            tls.wire_bytes_sent += packets.bytes_sent;
            if let Some(quic) = &mut recorder.quic {
                multiplexed::add_packets(quic, &packets);
                let connections = worker.job.quic_connections();
                quic.window_bytes = quic::client_window(connections).into();
            }
        }
        let (client_cpu_ns, client_waited_ns) = match (self.opened, self.closed) {
            (Some(opened), Some(closed)) => {
                let cpu = closed.cpu.saturating_sub(opened.cpu);
                (
                    cpu.saturating_sub(closed.wasted - opened.wasted),
                    closed.waited.saturating_sub(opened.waited),
                )
            }
            _ => (0, 0),
        };
        recorder.slices.push(Slice {
            start_s: (self.window.from - self.start) as f64 / 1e9,
            at_s: Some(self.window.from as f64 / 1e9),
            duration_s: self.window.end.saturating_sub(self.window.from) as f64 / 1e9,
            requests: self.requests,
            errors: self.errors,
            client_cpu_s: client_cpu_ns as f64 / 1e9,
            edges: self.edges,
            answered: P::OPEN.then_some(self.answered),
            client_waited_s: client_waited_ns as f64 / 1e9,
        });
        recorder.open.push(self.open);
        if let Some(connections) = &mut recorder.connections {
            connections.finish_window(self.open_sockets);
        }
    }
}
