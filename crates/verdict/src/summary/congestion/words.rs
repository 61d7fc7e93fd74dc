//! The congestion control of subjects' connections.

use crate::{CongestionSummary, Transport};
use readings::Condition;
use readings::text::{condition, grouped};

/// The subjects whose connections are alike.
struct Kind<'a> {
    words: String,
    subjects: Vec<(&'a str, Vec<&'a Condition>)>,
}

/// Where algorithms decide or differ, a sentence for each kind of connection: over QUIC, beside QUIC,
/// and of subjects that differ. Otherwise none.
pub fn congestion(all: &[CongestionSummary]) -> Vec<String> {
    let has_quic = all.iter().any(|one| one.transport == Transport::Quic);
    let differ = |one: &CongestionSummary| {
        let mut others = all.iter().filter(|it| it.at.condition == one.at.condition);
        others.any(|other| other.differs_from(one))
    };
    if !has_quic && !all.iter().any(differ) {
        return Vec::new();
    }
    let mut conditions: Vec<&Condition> = Vec::new();
    let mut kinds: Vec<Kind<'_>> = Vec::new();
    for one in all {
        if !conditions.contains(&&one.at.condition) {
            conditions.push(&one.at.condition);
        }
        let words = words(one);
        let at = match kinds.iter().position(|kind| kind.words == words) {
            Some(at) => at,
            None => {
                let subjects = Vec::new();
                kinds.push(Kind { words, subjects });
                kinds.len() - 1
            }
        };
        let subjects = &mut kinds[at].subjects;
        match subjects
            .iter_mut()
            .find(|(name, _)| *name == one.at.subject)
        {
            Some((_, places)) => places.push(&one.at.condition),
            None => subjects.push((&one.at.subject, vec![&one.at.condition])),
        }
    }
    let sentence = |kind: &Kind<'_>| {
        let subjects = kind
            .subjects
            .iter()
            .map(|(name, places)| match places.len() {
                count if count == conditions.len() => (*name).to_owned(),
                1 => format!("{name} at {}", condition(places[0])),
                count => format!("{name} under {} conditions", grouped(count as u64)),
            });
        let subjects: Vec<String> = subjects.collect();
        format!("{}: {}", subjects.join(", "), kind.words)
    };
    kinds.iter().map(sentence).collect()
}

/// `QUIC with the congestion control bbr at both ends`.
pub fn words(one: &CongestionSummary) -> String {
    let ends = match (&one.client, &one.server) {
        (Some(client), Some(server)) if client == server => format!("{client} at both ends"),
        (Some(client), Some(server)) => {
            format!("{client} at the client and {server} at the server")
        }
        (Some(client), None) => format!("{client} at the client"),
        (None, Some(server)) => format!("{server} at the server"),
        (None, None) => "unknown".to_owned(),
    };
    format!("{}, congestion control {ends}", one.transport.name())
}

#[cfg(test)]
mod tests {
    use crate::Place;

    use super::*;

    fn of(subject: &str, level: &str, transport: Transport, name: &str) -> CongestionSummary {
        CongestionSummary {
            at: Place {
                subject: subject.into(),
                condition: Condition::from([("from".to_owned(), level.to_owned())]),
            },
            transport,
            client: Some(name.into()),
            server: Some(name.into()),
        }
    }

    #[test]
    fn subjects_with_the_same_connections_share_a_sentence() {
        use Transport::{Quic, Tcp};
        let all = [
            of("http1", "near", Tcp, "bbr"),
            of("http2", "near", Tcp, "bbr"),
            of("http3", "near", Quic, "bbr"),
            of("http1", "far", Tcp, "bbr"),
            of("http2", "far", Tcp, "bbr"),
            of("http3", "far", Quic, "cubic"),
        ];
        assert_eq!(
            congestion(&all),
            [
                "http1, http2: TCP, congestion control bbr at both ends",
                "http3 at from=near: QUIC, congestion control bbr at both ends",
                "http3 at from=far: QUIC, congestion control cubic at both ends",
            ]
        );
    }

    #[test]
    fn tcp_alone_is_worth_no_sentence_unless_subjects_differ() {
        use Transport::Tcp;
        let mut all = [of("a", "x", Tcp, "cubic"), of("b", "x", Tcp, "cubic")];
        assert_eq!(congestion(&all), Vec::<String>::new());
        all[1].server = Some("bbr".into());
        assert_eq!(
            congestion(&all)[1],
            "b: TCP, congestion control cubic at the client and bbr at the server"
        );
    }
}
