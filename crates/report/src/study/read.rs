//! What other tools printed, as text, Markdown and JSON.

use readings::text::{counted, grouped, rate};
use readings::{ToolLatency, ToolReading};
use serde_json::{Value, json};
use verdict::diagnose::{Finding, FindingKind};

use crate::section::columns::{Columns, errors};
use crate::section::document::Document;
use crate::section::run::capitalised;
use crate::section::{Part, Section};
use readings::text::compact::{shortened, time};
use verdict::words::{self, diagnosis};

/// Readings of other tools, what they say, and what is missing in them.
#[derive(Clone, Copy, Debug)]
pub struct Read<'a> {
    /// The outputs that were found.
    pub readings: &'a [ToolReading],
    /// What follows from them, by their index.
    pub findings: &'a [Finding],
    /// What is missing or damaged, a sentence fragment each.
    pub problems: &'a [String],
}

/// A target's name has so many characters at the most in a table.
const TARGET: usize = 36;

/// The readings in a table and the findings below it, at most `width` columns wide.
pub fn read_terminal(read: &Read<'_>, width: usize) -> String {
    document(read).terminal(width)
}

/// The same as Markdown.
pub fn read_markdown(read: &Read<'_>) -> String {
    document(read).markdown()
}

fn document<'a>(read: &Read<'a>) -> Document<'a> {
    let parts = match read.readings.is_empty() {
        true => Vec::new(),
        false => vec![Part::Table(table(read.readings), "readings")],
    };
    Document {
        title: counted(read.readings.len(), "reading"),
        parts,
        sections: findings(read),
        end: read.findings.is_empty().then(|| NOTHING.to_owned()),
        footer: None,
    }
}

/// The same as one JSON document.
pub fn read_json(read: &Read<'_>) -> Value {
    let findings = read.findings.iter().map(|finding| {
        json!({
            "readings": finding.readings,
            "kind": finding.kind(),
            "unknown": finding.unknown,
            "sentence": diagnosis(finding, read.readings),
        })
    });
    json!({
        "readings": read.readings,
        "findings": findings.collect::<Value>(),
        "problems": read.problems,
    })
}

const NOTHING: &str = "Nothing in the figures contradicts itself, and nothing is compared.";

/// The findings by kind, then what is missing.
fn findings<'a>(read: &Read<'a>) -> Vec<Section<'a>> {
    let kind = |finding: &Finding| (finding.kind(), !finding.unknown.is_empty());
    let mut kinds: Vec<(FindingKind, bool)> = read.findings.iter().map(kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let of_kind = |of: (FindingKind, bool)| {
        let of_kind = read.findings.iter().filter(|f| kind(f) == of);
        let sentences = of_kind.map(|f| diagnosis(f, read.readings));
        let heading = capitalised(&words::heading(of.0, of.1));
        Section::list("findings", &heading, sentences)
    };
    let problems = read.problems.iter().cloned();
    let problems = Section::list("problems", "Not all there", problems);
    kinds
        .into_iter()
        .filter_map(of_kind)
        .chain(problems)
        .collect()
}

type Cell = fn(&ToolReading) -> Option<String>;

const COLUMNS: [(&str, bool, Cell); 14] = [
    ("lines", false, |r| {
        let (first, last) = r.lines;
        let lines = match last {
            last if last == first => first.to_string(),
            last => format!("{first}-{last}"),
        };
        match &r.source {
            Some(source) => Some(format!("{source}:{lines}")),
            None => (first > 0).then_some(lines),
        }
    }),
    ("tool", false, |r| {
        let operation = r.operation.as_ref().map(|o| format!(", {o}"));
        Some(format!("{}{}", r.tool, operation.unwrap_or_default()))
    }),
    ("target", false, |r| {
        r.url.as_ref().map(|url| shortened(url, TARGET))
    }),
    ("TLS", false, |r| {
        let tls = r.tls.as_ref()?;
        let parts = [&tls.version, &tls.suite, &tls.group, &tls.alpn];
        let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
        Some(parts.join(" "))
    }),
    ("conns", true, |r| r.connections.map(grouped)),
    ("threads", true, |r| r.threads.map(grouped)),
    ("duration", true, |r| {
        r.duration_s.map(|seconds| time(seconds * 1e6))
    }),
    ("offered/s", true, |r| r.offered_per_s.map(rate)),
    ("requests/s", true, |r| r.requests_per_s.map(rate)),
    ("mean", true, |r| r.latency.mean_us.map(time)),
    ("p50", true, |r| quantile(&r.latency, 0.5)),
    ("p99", true, |r| quantile(&r.latency, 0.99)),
    ("max", true, |r| r.latency.max_us.map(time)),
    ("errors", false, |r| {
        (r.errors.total() > 0).then(|| errors(&r.errors))
    }),
];

fn quantile(latency: &ToolLatency, share: f64) -> Option<String> {
    let found = latency
        .quantiles_us
        .iter()
        .find(|(q, _)| (*q - share).abs() < 1e-9);
    found.map(|(_, us)| time(*us))
}

/// A row for each reading, numbered from 1; a column that none has anything for is left out.
fn table(readings: &[ToolReading]) -> Columns {
    let mut columns = Columns {
        head: vec!["#".to_owned()],
        rows: (1..=readings.len()).map(|n| vec![n.to_string()]).collect(),
        numeric: vec![true],
    };
    for (name, numeric, cell) in COLUMNS {
        columns.add(name, numeric, readings.iter().map(cell).collect());
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use readings::Tool;
    use testing::Text as _;
    use verdict::diagnose::diagnose;

    fn wrk() -> ToolReading {
        let mut r = ToolReading::new(Tool::Wrk);
        r.url = Some("http://near:8080/".into());
        r.lines = (3, 9);
        (r.connections, r.threads) = (Some(96), Some(8));
        (r.requests_per_s, r.duration_s) = (Some(2302.67), Some(30.02));
        r.latency.mean_us = Some(46_270.0);
        r.latency.max_us = Some(528_240.0);
        (r.depth, r.closed_loop) = (Some(1), Some(true));
        r.errors.timeout = 3;
        r
    }

    #[test]
    fn the_table_has_what_is_known_and_findings_stand_below() {
        let readings = [wrk()];
        let findings = diagnose(&readings);
        let problems = ["lines 20 to 22: nothing".to_owned()];
        let read = Read {
            readings: &readings,
            findings: &findings,
            problems: &problems,
        };
        let text = read_terminal(&read, 110);
        let head = "\
1 reading

  #  lines  tool  target             conns  threads  duration  requests/s    mean    max  errors
  1  3-9    wrk   http://near:8080/     96        8     30.0s       2,303  46.3ms  528ms  3 timeout

Impossible mean
- wrk with 96 connections (lines 3 to 9): 2,302.67 requests/s x 46.27 ms = 106.5 requests in flight, and there
";
        assert!(text.starts_with(head), "{text}");
        text.ends("\nNot all there\n- lines 20 to 22: nothing\n");
        let text = read_markdown(&read);
        text.has("| 1 | 3-9 | wrk | http://near:8080/ | 96 | 8 |");
        text.has("\n## Impossible mean\n\n- wrk with 96");
        let document = read_json(&read);
        assert_eq!(document["readings"][0]["tool"], "wrk");
        assert_eq!(document["findings"][0]["kind"], "impossible_mean");
        assert_eq!(document["findings"][0]["readings"][0], 0);
    }

    #[test]
    fn failures_of_an_unknown_kind_are_called_so_in_the_table_and_in_json() {
        let mut siege = ToolReading::new(Tool::Siege);
        siege.requests = Some(104_875);
        siege.errors.unexplained = 1_024;
        let mut k6 = ToolReading::new(Tool::K6);
        (k6.requests, k6.requests_per_s) = (Some(1_240), Some(61.6));
        k6.errors.unexplained = 18;
        let readings = [siege, k6];
        let findings = diagnose(&readings);
        let read = Read {
            readings: &readings,
            findings: &findings,
            problems: &[],
        };
        let text = read_terminal(&read, 110);
        for line in [
            "  1  siege           -  1,024 unexplained\n",
            "  2  k6           61.6  18 unexplained\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        let document = read_json(&read);
        let counts = |at: usize| {
            let errors = &document["readings"][at]["errors"];
            [
                "connect",
                "read",
                "write",
                "timeout",
                "status",
                "unexplained",
            ]
            .map(|kind| errors[kind].as_u64().unwrap())
        };
        assert_eq!(counts(0), [0, 0, 0, 0, 0, 1_024]);
        assert_eq!(counts(1), [0, 0, 0, 0, 0, 18]);
        assert_eq!(document["findings"][0]["kind"], "failures");
    }

    #[test]
    fn what_does_not_fit_goes_on_below_with_its_number() {
        let readings = [wrk(), wrk()];
        let read = Read {
            readings: &readings,
            findings: &[],
            problems: &[],
        };
        let text = read_terminal(&read, 60);
        assert_eq!(text.matches("\n  2  ").count(), 2, "{text}");
        assert!(text.lines().all(|line| line.len() <= 68), "{text}");
        assert!(text.ends_with(&format!("\n{NOTHING}\n")));
    }
}
