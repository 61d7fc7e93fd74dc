//! What a thread records of connections that last.

use readings::{ConnectionsRow, LastingReading, TrafficKind};

use super::rows::ROWS_MAX;

/// The connections of a reading.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    pub(crate) reading: LastingReading,
    row: ConnectionsRow,
    /// How many were open at the end of each window.
    open: Vec<u64>,
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
        self.open.push(open);
        self.reading.open_min = self.open.iter().copied().min().unwrap_or(0);
        self.row = ConnectionsRow::default();
    }

    /// Adds another thread's connections.
    pub(crate) fn merge(&mut self, part: &Connections) {
        self.reading.add(&part.reading);
        // The least of the sums, which may be more than the sum of what was least on each thread.
        for (at, open) in part.open.iter().enumerate() {
            match self.open.get_mut(at) {
                Some(sum) => *sum += open,
                None => self.open.push(*open),
            }
        }
        self.reading.open_min = self.open.iter().copied().min().unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_open_are_those_of_all_threads_at_one_time() {
        let of = |open: [u64; 2]| {
            let mut one = Connections::of(TrafficKind::WebSocket);
            open.into_iter().for_each(|open| one.finish_window(open));
            one
        };
        let mut sum = of([10, 2]);
        sum.merge(&of([3, 10]));
        assert_eq!(sum.reading.open_min, 12);
    }
}
