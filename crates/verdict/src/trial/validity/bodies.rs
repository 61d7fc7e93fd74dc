//! Whether the bodies of requests reached the back ends: proof that the work was done.

use readings::{LoadReading, Received};

use crate::Flaw;

/// The share of the bytes that may be missing. Nothing is in flight where counting begins and ends,
/// so none should be.
const MISSING_SHARE: f64 = 0.01;

/// What the back ends' own counts say against a load; nothing where they do not count, or requests
/// have no body.
pub(super) fn flaw(load: &LoadReading) -> Option<Flaw> {
    let body = load.request_body.filter(|_| !load.received.is_empty())?;
    let received = Received::sum(&load.received);
    let requests = load.requests_all;
    let sent_bytes = requests.saturating_mul(body.bytes);
    if (received.body_bytes as f64) < sent_bytes as f64 * (1.0 - MISSING_SHARE) {
        return Some(Flaw::BodiesMissing {
            sent_bytes,
            received_bytes: received.body_bytes,
            requests,
            received: received.requests,
        });
    }
    // Health checks have no body, and requests that are sent again the same one.
    let bodies = received.body_bytes / body.bytes;
    let is_whole = bodies * body.bytes == received.body_bytes;
    let checksum = bodies.saturating_mul(u64::from(body.crc32));
    (is_whole && checksum != received.body_checksum).then_some(Flaw::BodiesChanged {
        body_bytes: body.bytes,
        bodies,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{closed, header, in_closed};
    use crate::trial::cells::Cells;
    use crate::trial::flaw::words;
    use readings::RequestBody;
    use std::collections::BTreeMap;

    const BODY: &[u8] = b"0123456789";

    /// A load whose back ends received so many whole bodies, in two servers.
    fn load(bodies: u64) -> LoadReading {
        let one = |bodies: u64| Received {
            requests: bodies,
            body_bytes: bodies * BODY.len() as u64,
            body_checksum: bodies * u64::from(crc32()),
            sent_bytes: 0,
            weight: None,
        };
        let received = [("a", one(bodies / 2)), ("b", one(bodies - bodies / 2))];
        LoadReading {
            requests_all: 1_000,
            request_body: RequestBody::of(BODY),
            received: received.map(|(name, one)| (name.to_owned(), one)).into(),
            ..closed(100.0)
        }
    }

    fn crc32() -> u32 {
        RequestBody::of(BODY).unwrap().crc32
    }

    #[test]
    fn bodies_that_did_not_reach_the_back_ends_make_a_load_invalid() {
        assert_eq!(flaw(&load(1_000)), None);
        assert_eq!(flaw(&load(1_040)), None, "some were sent again");
        assert_eq!(flaw(&load(995)), None);
        let found = flaw(&load(900)).unwrap();
        assert!(found.spoils_trial());
        assert_eq!(
            words::flaw(&found),
            "the back ends received 9,000 bytes of request bodies in 900 requests, but 1,000 good \
             answers stand for 10,000 bytes: a server answered without passing its requests on, or \
             dropped their bodies"
        );
        // All requests came, without their bodies.
        let mut dropped = load(1_000);
        dropped
            .received
            .values_mut()
            .for_each(|one| one.body_bytes = 0);
        assert!(matches!(
            flaw(&dropped),
            Some(Flaw::BodiesMissing {
                received: 1_000,
                ..
            })
        ));
        // Nothing is said where nobody counts, or nothing was sent.
        dropped.received = BTreeMap::new();
        assert_eq!(flaw(&dropped), None);
        let mut empty = load(0);
        empty.request_body = None;
        assert_eq!(flaw(&empty), None);
    }

    #[test]
    fn bodies_with_another_content_make_a_load_invalid() {
        let mut changed = load(1_000);
        changed.received.values_mut().next().unwrap().body_checksum += 1;
        let found = flaw(&changed).unwrap();
        assert_eq!(
            words::flaw(&found),
            "request bodies were altered on the way: the back ends' checksum differs (1,000 bodies of \
             10 bytes)"
        );
        // A health check counts as a request and has no body.
        let mut checked = load(1_000);
        checked.received.values_mut().next().unwrap().requests += 7;
        assert_eq!(flaw(&checked), None);
    }

    #[test]
    fn the_trial_of_a_subject_that_drops_bodies_is_not_counted() {
        let trials = [in_closed(1, "direct", load(100))];
        let header = header(1);
        let cells = Cells::of(&header, &trials);
        let cell = cells.counted().next().unwrap();
        assert!(cell.throughput().is_none());
        assert_eq!(cell.reasons.len(), 1);
    }
}
