//! Subjects that negotiated different TLS.

use readings::Negotiated;

use crate::{TlsSummary, Warning};

/// Subjects that are compared under one condition and negotiated different things: the costs of
/// suites, groups and key types differ by more than those of servers.
pub(crate) fn warnings(summaries: &[TlsSummary]) -> Vec<Warning> {
    let conditions = summaries.chunk_by(|a, b| a.at.condition == b.at.condition);
    let differing = conditions.filter_map(|group| {
        let first = &group[0];
        let other = group.iter().find(|one| !has_like_tls(one, first))?;
        Some(Warning::TlsDiffers {
            at: first.at.clone(),
            other: other.at.subject.clone(),
            agreed: [first.negotiated.clone(), other.negotiated.clone()],
        })
    });
    differing.collect()
}

/// ALPN follows from the version of HTTP, which is not a setting of TLS.
fn has_like_tls(one: &TlsSummary, other: &TlsSummary) -> bool {
    let tls_of = |one: &TlsSummary| Negotiated {
        alpn: None,
        ..one.negotiated.clone()
    };
    tls_of(one).is_like(&tls_of(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Place;
    use readings::Quantiles;

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
