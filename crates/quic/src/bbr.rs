//! BBR whose connections begin with their startup phase.
//!
//! quinn-proto 0.11 probes for the smallest round-trip time every 10 s: for 200 ms a connection
//! sends only four packets per round trip. A connection that has never probed counts as overdue. So
//! every connection begins with a probe, and a page on a new connection takes 200 ms longer, however
//! near its server is. By its specification BBR begins with the startup phase (draft-ietf-ccwg-bbr,
//! 5.3.1).

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{BbrConfig, Controller, ControllerFactory, ControllerMetrics};

/// How long a probe takes.
const PROBE: Duration = Duration::from_millis(200);

/// Makes the controllers of connections.
pub(crate) struct BbrFactory(pub(crate) Arc<BbrConfig>);

impl ControllerFactory for BbrFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Bbr {
            inner: self.0.clone().build(now, current_mtu),
            first_probe: FirstProbe::Due,
        })
    }
}

/// The state of the probe that a connection begins with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FirstProbe {
    Due,
    /// Its beginning was dated back, so that it ends with the next round trip.
    Ending,
    Ended,
}

struct Bbr {
    inner: Box<dyn Controller>,
    first_probe: FirstProbe,
}

impl Controller for Bbr {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        if self.first_probe == FirstProbe::Due {
            self.first_probe = FirstProbe::Ended;
            // The probe begins with packets that are not limited by the application, and its time
            // is counted from when little is in flight.
            if let Some(earlier) = now.checked_sub(PROBE) {
                self.first_probe = FirstProbe::Ending;
                self.inner
                    .on_end_acks(earlier, 0, false, largest_packet_num_acked);
            }
        }
        self.inner
            .on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
        if self.first_probe == FirstProbe::Ending
            && self.inner.window() >= self.inner.initial_window()
        {
            self.first_probe = FirstProbe::Ended;
        }
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.inner
            .on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        let window = self.inner.window();
        match self.first_probe {
            FirstProbe::Ending => window.max(self.inner.initial_window()),
            FirstProbe::Due | FirstProbe::Ended => window,
        }
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            inner: self.inner.clone_box(),
            first_probe: self.first_probe,
        })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.inner.into_any()
    }
}
