//! Connections that last: what is recorded when they open and end, whatever is said on them, and
//! those that are lost are opened again.

use net::Io;

use crate::exchange::Kind;
use crate::pacing::Pacer;
use crate::pacing::clock::Clock;
use crate::pacing::stop::StopRule;
use crate::worker::multiplexed::LinkState;
use crate::worker::segment::SegmentRun;

impl<I: Io, C: Clock, K: Kind, P: Pacer, S: StopRule> SegmentRun<'_, I, C, K, P, S> {
    /// A connection is open that lasts; `lost` is when the one before it was lost.
    pub(in crate::worker) fn connection_opened(&mut self, lost: Option<u64>, now: u64) {
        let is_inside = self.window.contains(now);
        if let Some(connections) = &mut self.worker.recorders[self.recorder].connections {
            connections.opened(is_inside);
            if let Some(lost) = lost.filter(|_| is_inside) {
                connections
                    .reading
                    .reconnect
                    .record_ns(now.saturating_sub(lost));
            }
        }
    }

    /// One has ended; it was cut if neither this client nor its format ended it.
    pub(in crate::worker) fn connection_ended(&mut self, how: &str, is_cut: bool, now: u64) {
        let is_inside = self.window.contains(now);
        if let Some(connections) = &mut self.worker.recorders[self.recorder].connections
            && is_inside
        {
            connections.ended(how, is_cut);
        }
    }

    /// One that was lost could not be opened again.
    pub(in crate::worker) fn reconnection_failed(&mut self, now: u64) {
        let is_inside = self.window.contains(now);
        if let Some(connections) = &mut self.worker.recorders[self.recorder].connections
            && is_inside
        {
            connections.reading.reconnect_failed += 1;
        }
    }

    /// The connections of the target that are open now.
    pub(in crate::worker) fn connections_open(&self) -> u64 {
        let links = self.worker.links.iter();
        let own = links.filter(|link| link.target == self.target);
        own.filter(|link| link.state == LinkState::Open).count() as u64
    }
}
