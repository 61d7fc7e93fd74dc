//! What the TLS sessions of each subject negotiated, and how long their handshakes took.

pub(crate) mod words;

use readings::{Histogram, Negotiated, Quantiles, TlsReading};
use serde::Serialize;

use crate::Place;
use crate::trial::cells::{Cell, Cells};

/// The TLS sessions of one subject under one condition, over its valid trials.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TlsSummary {
    #[serde(flatten)]
    pub at: Place,
    /// What most of its sessions negotiated.
    pub negotiated: Negotiated,
    /// Sessions that negotiated something else.
    pub others: u64,
    /// Full handshakes inside the measured windows, us: of the open loop if it opened connections,
    /// else of the closed loop.
    pub handshake_us: Quantiles,
    /// As above, of handshakes that resumed an earlier session, us.
    pub resumed_handshake_us: Quantiles,
    /// Handshakes, ramp-ups included.
    pub handshakes: u64,
    /// Those of them that resumed an earlier session.
    pub resumed: u64,
}

/// All subjects with TLS, in the order of conditions and subjects.
pub(crate) fn summaries(cells: &Cells<'_>) -> Vec<TlsSummary> {
    let mut found = Vec::new();
    for condition in &cells.conditions {
        for subject in &cells.subjects {
            let trials = cells.of_subject(condition, subject, false);
            let at = Place {
                subject: subject.clone(),
                condition: condition.clone(),
            };
            found.extend(summary(at, trials.into_values()));
        }
    }
    found
}

fn summary<'c, 'j: 'c>(
    at: Place,
    trials: impl Iterator<Item = &'c Cell<'j>>,
) -> Option<TlsSummary> {
    let (mut closed, mut open) = (Vec::new(), Vec::new());
    for cell in trials {
        closed.extend(cell.throughput().and_then(|load| load.tls.as_ref()));
        open.extend(cell.latency().and_then(|load| load.tls.as_ref()));
    }
    let has_handshakes =
        |one: &&TlsReading| one.handshake.count() + one.resumed_handshake.count() > 0;
    // In a closed loop handshakes wait for each other, which is part of their time.
    let timed = match open.iter().any(has_handshakes) {
        true => &open,
        false => &closed,
    };
    let (mut full, mut resumed) = (Histogram::new(), Histogram::new());
    let mut agreed: Vec<Negotiated> = Vec::new();
    for reading in timed {
        full.merge(&reading.handshake);
        resumed.merge(&reading.resumed_handshake);
    }
    let readings: Vec<&TlsReading> = closed.iter().chain(&open).copied().collect();
    for reading in &readings {
        for one in &reading.negotiated {
            match agreed.iter_mut().find(|known| known.is_like(one)) {
                Some(known) => known.sessions += one.sessions,
                None => agreed.push(one.clone()),
            }
        }
    }
    let negotiated = agreed.iter().max_by_key(|one| one.sessions)?.clone();
    let all: u64 = agreed.iter().map(|one| one.sessions).sum();
    Some(TlsSummary {
        at,
        others: all - negotiated.sessions,
        negotiated,
        handshake_us: full.quantiles(),
        resumed_handshake_us: resumed.quantiles(),
        handshakes: readings.iter().map(|one| one.handshakes).sum(),
        resumed: readings.iter().map(|one| one.resumed).sum(),
    })
}
