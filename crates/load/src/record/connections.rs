//! What a thread records of connections that last.

use readings::{ConnectionsRow, LastingReading, TrafficKind};

use super::rows::ROWS_MAX;

/// The connections of a reading.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    pub(crate) reading: LastingReading,
    row: ConnectionsRow,
    has_window: bool,
}

impl Connections {
    pub(crate) fn of(traffic: TrafficKind) -> Self {
        let reading = LastingReading {
            traffic,
            ..LastingReading::default()
        };
        Self {
            reading,
            ..Self::default()
        }
    }

    /// One is open, inside the window or not.
    pub(crate) fn opened(&mut self, is_inside: bool) {
        self.reading.opened += 1;
        self.row.opened += u64::from(is_inside);
    }

    /// One has ended in the window.
    pub(crate) fn ended(&mut self, how: &str, is_cut: bool) {
        self.reading.count_end(how, is_cut, 1);
        self.row.cut += u64::from(is_cut);
    }

    /// A row is over, which began at this time of the window, with so many open.
    pub(crate) fn finish_row(&mut self, start_s: f64, open: u64) {
        let row = std::mem::take(&mut self.row);
        if self.reading.connections.len() < ROWS_MAX {
            self.reading.connections.push(ConnectionsRow {
                start_s,
                open,
                ..row
            });
        }
    }

    /// A window is over, with so many open.
    pub(crate) fn finish_window(&mut self, open: u64) {
        let least = match std::mem::replace(&mut self.has_window, true) {
            true => self.reading.open_min.min(open),
            false => open,
        };
        self.reading.open_min = least;
        self.row = ConnectionsRow::default();
    }

    /// Adds another thread's connections.
    pub(crate) fn merge(&mut self, part: &Connections) {
        self.reading.add(&part.reading);
    }
}
