//! The servers of a path, each by itself.

use std::collections::BTreeMap;

use readings::{
    JournalRow, Outcome, ServerReading, ServerSettings, SettingsReading, SubjectSettings,
};
use report::RunFacts;
use testing::journals::journal;
use verdict::analyse;

#[test]
fn each_server_of_a_path_has_its_own_figures() {
    let mut journal = journal();
    for row in &mut journal.rows {
        let JournalRow::Trial(trial) = row else {
            continue;
        };
        let Outcome::Done(reading) = &mut trial.outcome else {
            continue;
        };
        if trial.subject == "balance" {
            let load = reading.throughput.as_ref();
            let requests = load.map_or(0.0, |load| load.weighted_requests());
            let server = |name: &str, us: f64| ServerReading {
                server: name.to_owned(),
                cpu_s: us * requests / 1e6,
                ..ServerReading::default()
            };
            reading.servers = vec![server("balance", 40.0), server("origin", 25.0)];
        }
    }
    let analysis = analyse(&journal);
    let row = analysis.table.iter().find(|row| row.subject == "balance");
    let servers = &row.unwrap().servers;
    assert_eq!(servers.len(), 2);
    assert!(servers[0].first && !servers[1].first);
    for (one, (us, per_core)) in servers.iter().zip([(40.0, 25_000.0), (25.0, 40_000.0)]) {
        assert!((one.cpu_us_per_request.unwrap() / us - 1.0).abs() < 1e-6);
        assert!((one.requests_per_core.unwrap() / per_core - 1.0).abs() < 1e-6);
    }
    let page = report::html(&journal, &analysis, &RunFacts::default());
    assert!(page.contains(">25,000<"), "requests per core of the proxy");
    let csv = report::csv(&journal, &analysis);
    let head: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let column = |name: &str| head.iter().position(|head| *head == name).unwrap();
    let mut lines = csv.lines();
    let closed = lines.find(|line| line.contains(",balance,false,96,closed,"));
    let cells: Vec<&str> = closed.unwrap().split(',').collect();
    let cpu_s: f64 = cells[column("server_cpu_s:balance")].parse().unwrap();
    let requests: f64 = cells[column("requests")].parse().unwrap();
    assert!((cpu_s / requests * 1e6 / 40.0 - 1.0).abs() < 1e-3);
}

#[test]
fn connections_that_a_subject_closes_stand_beside_its_figures_and_before_what_it_declares() {
    let mut journal = journal();
    for row in &mut journal.rows {
        if let JournalRow::Trial(trial) = row
            && let Outcome::Done(reading) = &mut trial.outcome
            && let Some(load) = &mut reading.throughput
            && trial.subject == "balance"
        {
            load.connects = load.requests_all;
        }
    }
    let declared = |name: &str| SubjectSettings {
        subject: name.to_owned(),
        servers: vec![ServerSettings {
            server: name.to_owned(),
            recipe: "nginx".to_owned(),
            version: None,
            settings: BTreeMap::from([
                ("keepalive_client".to_owned(), "on".to_owned()),
                ("access_log".to_owned(), ServerSettings::unknown("extra")),
            ]),
        }],
    };
    let rows = journal.header.conditions.iter().map(|condition| {
        JournalRow::Settings(SettingsReading {
            condition: condition.clone(),
            subjects: vec![declared("direct"), declared("balance")],
        })
    });
    journal.rows.extend(rows);
    let analysis = analyse(&journal);
    let page = report::html(&journal, &analysis, &RunFacts::default());
    for text in [
        "requests/connection",
        "bytes/answer",
        ">kept<",
        "requests per connection (observed)",
        "unknown (extra lines)",
        // The name of a subject stays as it is at the beginning of a sentence.
        "<li>balance at connections=96 needed a new connection for each request",
        " is judged as a whole: the chance of any false difference",
    ] {
        assert!(page.contains(text), "{text}");
    }
    let settings = page.find("requests per connection (observed)").unwrap();
    let declared = page.find("keep-alive to clients").unwrap();
    assert!(settings < declared);
}
