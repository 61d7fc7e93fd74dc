//! The congestion control of each subject's connections, at both ends.

pub(crate) mod words;

use readings::{Condition, ServerSettings, SettingsReading, is_same_congestion};
use serde::Serialize;

use crate::Place;
use crate::trial::cells::Cells;

/// What carries the requests of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Transport {
    #[serde(rename = "TCP")]
    Tcp,
    #[serde(rename = "QUIC")]
    Quic,
}

impl Transport {
    /// `TCP` or `QUIC`.
    pub fn name(self) -> &'static str {
        match self {
            Transport::Tcp => "TCP",
            Transport::Quic => "QUIC",
        }
    }
}

/// The congestion control of one subject's connections under one condition. Answers are paced by the
/// server's, requests by the client's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CongestionSummary {
    #[serde(flatten)]
    pub at: Place,
    pub transport: Transport,
    /// That of the load; `None` where it is not known, as with outside drivers.
    pub client: Option<String>,
    /// That of the server that the load asks; `None` where it is not known, as with servers that
    /// the run did not start.
    pub server: Option<String>,
}

impl CongestionSummary {
    /// Whether an end of another subject's connections is known to have another algorithm.
    pub fn differs_from(&self, other: &Self) -> bool {
        let differ = |one: &Option<String>, other: &Option<String>| match (one, other) {
            (Some(one), Some(other)) => !is_same_congestion(one, other),
            _ => false,
        };
        differ(&self.client, &other.client) || differ(&self.server, &other.server)
    }
}

/// All subjects whose congestion control is known, in the order of conditions and subjects.
pub(crate) fn summaries(
    cells: &Cells<'_>,
    settings: &[&SettingsReading],
) -> Vec<CongestionSummary> {
    let mut found = Vec::new();
    for condition in &cells.conditions {
        for subject in &cells.subjects {
            let trials = cells.of_subject(condition, subject, false);
            let mut loads = trials
                .values()
                .flat_map(|cell| cell.throughput().into_iter().chain(cell.latency()));
            let Some(load) = loads.next() else { continue };
            let transport = match load.quic {
                Some(_) => Transport::Quic,
                None => Transport::Tcp,
            };
            let server = asked(settings, condition, subject);
            let summary = CongestionSummary {
                at: Place {
                    subject: subject.clone(),
                    condition: condition.clone(),
                },
                transport,
                client: load.congestion().map(str::to_owned),
                server: server.and_then(|server| of_server(server, transport)),
            };
            if summary.client.is_some() || summary.server.is_some() {
                found.push(summary);
            }
        }
    }
    found
}

/// The server that a subject's requests go to.
fn asked<'s>(
    settings: &[&'s SettingsReading],
    condition: &Condition,
    subject: &str,
) -> Option<&'s ServerSettings> {
    // A load of several adds its name to the condition.
    let holds = |row: &&&SettingsReading| {
        let mut levels = row.condition.iter();
        levels.all(|(factor, level)| condition.get(factor) == Some(level))
    };
    let row = settings.iter().find(holds)?;
    let subject = row.subjects.iter().find(|one| one.subject == subject)?;
    subject.servers.first()
}

fn of_server(server: &ServerSettings, transport: Transport) -> Option<String> {
    let name = match transport {
        Transport::Tcp => ServerSettings::TCP_CONGESTION,
        Transport::Quic => ServerSettings::QUIC_CONGESTION,
    };
    server.settings.get(name).cloned()
}

#[cfg(test)]
mod tests {
    use readings::{Journal, JournalRow, LoadReading, QuicReading, SubjectSettings, Trial};

    use super::*;
    use crate::fixtures::{closed, header, in_closed};
    use crate::{Warning, analyse};

    fn journal_of(tcp: Option<&str>, quic: Option<&str>) -> Journal {
        let load = |quic: Option<&str>| LoadReading {
            tcp_congestion: tcp.map(str::to_owned),
            quic: quic.map(|name| QuicReading {
                congestion: Some(name.to_owned()),
                ..QuicReading::default()
            }),
            ..closed(1_000.0)
        };
        let trials = (1..=3).flat_map(|block| {
            let of = |subject, quic| -> Trial { in_closed(block, subject, load(quic)) };
            [of("direct", None), of("balance", quic)]
        });
        Journal::of_trials(header(3), trials)
    }

    #[test]
    fn a_journal_says_it_of_each_subject_and_an_old_one_nothing() {
        let mut journal = journal_of(Some("bbr"), Some("cubic"));
        let settings = [
            (ServerSettings::TCP_CONGESTION, "bbr"),
            (ServerSettings::QUIC_CONGESTION, "newreno"),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let server = ServerSettings {
            settings: settings.into_iter().collect(),
            ..ServerSettings::default()
        };
        let subject = |name: &str| SubjectSettings {
            subject: name.into(),
            servers: vec![server.clone()],
        };
        journal.rows.push(JournalRow::Settings(SettingsReading {
            condition: journal.header.conditions[0].clone(),
            subjects: vec![subject("direct"), subject("balance")],
        }));
        let analysis = analyse(&journal);
        let ends = analysis.congestion.iter();
        let ends = ends.map(|one| (one.transport, one.client.as_deref(), one.server.as_deref()));
        let expected = [
            (Transport::Tcp, Some("bbr"), Some("bbr")),
            (Transport::Quic, Some("cubic"), Some("newreno")),
        ];
        assert_eq!(ends.collect::<Vec<_>>(), expected);
        let differs = |one: &&Warning| matches!(one, Warning::CongestionDiffers { .. });
        assert_eq!(analysis.warnings.iter().filter(differs).count(), 1);
        assert_eq!(analyse(&journal_of(None, None)).congestion, []);
    }
}
