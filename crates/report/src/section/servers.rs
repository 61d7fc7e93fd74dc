//! The servers of each subject as a table, each by itself.

use readings::text::compact::{bytes, three_digits};
use readings::text::{condition, rate};
use verdict::{ServerRow, SubjectRow};

use super::columns::Columns;
use super::{Part, Section};

const TITLE: &str = "Servers";

const LEGEND: &str = "first: the load addresses it; CPU us/req: its own CPU time per request of the closed \
     loop, user+system: in its own code and in the kernel; requests/core: requests for each second of it; \
     memory: the most resident memory, what its processes share counts for each; comparisons take all \
     servers of the path together, or the first alone";

type Cell = fn(&SubjectRow, &ServerRow) -> Option<String>;

const ALL: [(&str, bool, Cell); 8] = [
    ("condition", false, |row, _| {
        Some(condition(&row.condition)).filter(|text| !text.is_empty())
    }),
    ("subject", false, |row, _| Some(row.subject.clone())),
    ("server", false, |_, one| Some(one.server.clone())),
    ("first", false, |_, one| {
        Some(if one.first { "yes" } else { "" }.to_owned())
    }),
    ("CPU us/req", true, |_, one| {
        one.cpu_us_per_request.map(three_digits)
    }),
    ("user+system", true, |_, one| {
        let parts = one
            .cpu_user_us_per_request
            .zip(one.cpu_system_us_per_request)?;
        Some(format!(
            "{}+{}",
            three_digits(parts.0),
            three_digits(parts.1)
        ))
    }),
    ("requests/core", true, |_, one| {
        one.requests_per_core.map(rate)
    }),
    ("memory", true, |_, one| {
        one.rss_bytes_max.map(|most| bytes(most as f64))
    }),
];

/// The section; nothing where no server was measured. A condition that all rows share has no column.
pub(crate) fn section(table: &[SubjectRow]) -> Option<Section<'static>> {
    let rows = || {
        table
            .iter()
            .flat_map(|row| row.servers.iter().map(move |one| (row, one)))
    };
    let mut columns = Columns {
        head: Vec::new(),
        rows: rows().map(|_| Vec::new()).collect(),
        numeric: Vec::new(),
    };
    for (name, numeric, cell) in ALL {
        let cells = rows().map(|(row, one)| cell(row, one));
        columns.add(name, numeric, cells.collect());
    }
    let first = table.first()?;
    if table.iter().all(|row| row.condition == first.condition) {
        columns = columns.without("condition");
    }
    if columns.rows.is_empty() {
        return None;
    }
    let parts = vec![
        Part::Table(columns, "servers"),
        Part::Legend(LEGEND.to_owned()),
    ];
    Section::of("servers", TITLE, parts)
}

#[cfg(test)]
mod tests {
    use testing::journals::journal;
    use verdict::analyse;

    #[test]
    fn each_server_of_a_path_has_a_row_with_its_own_figures() {
        let mut journal = journal();
        for row in &mut journal.rows {
            let readings::JournalRow::Trial(trial) = row else {
                continue;
            };
            let readings::Outcome::Done(reading) = &mut trial.outcome else {
                continue;
            };
            if trial.subject == "balance" {
                let requests = reading
                    .throughput
                    .as_ref()
                    .map_or(0.0, |load| load.weighted_requests());
                let server = |name: &str, us: f64| readings::ServerReading {
                    server: name.to_owned(),
                    cpu_s: us * requests / 1e6,
                    ..readings::ServerReading::default()
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
        let text = crate::terminal(&journal.header, &analysis, 200, false, None);
        let from = text.find("\nServers\n").unwrap();
        let lines: Vec<Vec<&str>> = text[from..]
            .lines()
            .skip(2)
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(lines[0][..4], ["subject", "server", "first", "CPU"]);
        let own = lines
            .iter()
            .find(|line| line.starts_with(&["balance", "balance"]))
            .unwrap();
        assert!(
            own.contains(&"yes") && own.contains(&"40.0") && own.contains(&"25,000"),
            "{own:?}"
        );
        let csv = crate::csv(&journal, &analysis);
        let head: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
        let column = |name: &str| head.iter().position(|head| *head == name).unwrap();
        let closed = csv
            .lines()
            .find(|line| line.contains(",balance,false,96,closed,"));
        let cells: Vec<&str> = closed.unwrap().split(',').collect();
        let cpu_s: f64 = cells[column("server_cpu_s:balance")].parse().unwrap();
        let requests: f64 = cells[column("requests")].parse().unwrap();
        assert!((cpu_s / requests * 1e6 / 40.0 - 1.0).abs() < 1e-3);
        let page = crate::html(&journal, &analysis, &crate::RunFacts::default());
        assert!(page.contains("<section id=\"servers\">"));
    }
}
