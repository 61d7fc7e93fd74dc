//! What the TLS sessions of each subject negotiated, and how long their handshakes took.

pub(crate) mod words;

use readings::{Histogram, Negotiated, Quantiles, TlsReading};
use serde::Serialize;

use crate::trial::cells::{Cell, Cells};
use crate::{Place, Warning};

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

/// Subjects that are compared under one condition and negotiated different things: the costs of
/// suites, groups and key types differ by more than those of servers.
pub(crate) fn warnings(summaries: &[TlsSummary]) -> Vec<Warning> {
    let mut found = Vec::new();
    let mut rest = summaries;
    while let Some(first) = rest.first() {
        let condition = &first.at.condition;
        let same = rest.iter().take_while(|one| one.at.condition == *condition);
        let (group, others) = rest.split_at(same.count());
        rest = others;
        // ALPN follows from the version of HTTP, which is not a setting of TLS.
        let tls_of = |one: &TlsSummary| Negotiated {
            alpn: None,
            ..one.negotiated.clone()
        };
        let differs = |one: &&TlsSummary| !tls_of(one).is_like(&tls_of(first));
        found.extend(group.iter().find(differs).map(|other| Warning::TlsDiffers {
            at: first.at.clone(),
            other: other.at.subject.clone(),
            agreed: [first.negotiated.clone(), other.negotiated.clone()],
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agreed(suite: &str, sessions: u64) -> Negotiated {
        Negotiated {
            version: "1.3".into(),
            suite: suite.into(),
            group: Some("x25519".into()),
            alpn: None,
            key: Some("ecdsa-p256".into()),
            sessions,
        }
    }

    fn of(subject: &str, level: &str, suite: &str) -> TlsSummary {
        let condition = [("size".to_string(), level.to_string())];
        TlsSummary {
            at: Place {
                subject: subject.into(),
                condition: condition.into_iter().collect(),
            },
            negotiated: agreed(suite, 3),
            others: 0,
            handshake_us: Quantiles::default(),
            resumed_handshake_us: Quantiles::default(),
            handshakes: 3,
            resumed: 0,
        }
    }

    #[test]
    fn subjects_that_agreed_on_other_suites_are_named_by_condition() {
        let all = [
            of("a", "1", "X"),
            of("b", "1", "X"),
            of("a", "2", "X"),
            of("b", "2", "Y"),
        ];
        let found = warnings(&all);
        assert_eq!(found.len(), 1);
        let Warning::TlsDiffers { at, other, agreed } = &found[0] else {
            panic!("{found:?}");
        };
        assert_eq!((at, other.as_str()), (&all[2].at, "b"));
        assert_eq!(agreed[1].suite, "Y");
        // The number of sessions is no difference.
        let mut same = all;
        same[3] = of("b", "2", "X");
        same[3].negotiated.sessions = 99;
        assert_eq!(warnings(&same), []);
        // Nor is the version of HTTP.
        same[2].negotiated.alpn = Some("http/1.1".into());
        same[3].negotiated.alpn = Some("h2".into());
        assert_eq!(warnings(&same), []);
    }
}
