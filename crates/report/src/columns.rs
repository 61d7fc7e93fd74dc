use readings::ErrorCounts;
use verdict::SubjectRow;
use verdict::text::{condition, grouped, percent, rate};

use crate::units::{bytes, three_digits, time};

/// The table of subjects as text: a head and rows, only the columns that hold anything.
#[derive(Clone)]
pub(crate) struct Columns {
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
    /// Whether a column holds numbers, which are set to the right.
    pub numeric: Vec<bool>,
}

type Cell = fn(&SubjectRow) -> Option<String>;
/// A figure of a row.
pub(crate) type Figure = fn(&SubjectRow) -> f64;

const ALL: [(&str, bool, Cell); 17] = [
    ("condition", false, |r| {
        let text = condition(&r.condition);
        (!text.is_empty()).then_some(text)
    }),
    ("subject", false, |r| Some(r.subject.clone())),
    ("driver", false, |r| r.driver.clone()),
    ("requests/s", true, |r| {
        let at_least = if r.at_least { ">= " } else { "" };
        r.requests_per_s.map(|v| format!("{at_least}{}", rate(v)))
    }),
    ("offered/s", true, |r| r.rate_per_s.map(rate)),
    ("p50", true, |r| r.latency_us_p50.map(time)),
    ("p99", true, |r| r.latency_us_p99.map(time)),
    ("errors", true, |r| {
        (r.errors.total() > 0).then(|| errors(&r.errors))
    }),
    ("upstream/req", true, |r| {
        r.upstream_connections_per_request
            .map(|v| format!("{v:.3}"))
    }),
    ("CPU us/req", false, |r| {
        let each = r.server_cpu_us_per_request.iter();
        by_server(each.map(|(name, us)| (name, three_digits(*us))))
    }),
    (USER_SYSTEM, false, |r| {
        let system = &r.server_cpu_system_us_per_request;
        let user = r.server_cpu_user_us_per_request.iter();
        by_server(user.filter_map(|(name, user)| {
            let both = (three_digits(*user), three_digits(*system.get(name)?));
            Some((name, format!("{}+{}", both.0, both.1)))
        }))
    }),
    (SWITCHES, false, |r| {
        let each = r.server_switches_per_request.iter();
        by_server(each.map(|(name, count)| (name, three_digits(*count))))
    }),
    (FAULTS, false, |r| {
        let each = r.server_faults_per_request.iter();
        by_server(each.map(|(name, count)| (name, three_digits(*count))))
    }),
    (MEMORY, false, |r| {
        let each = r.server_rss_bytes_max.iter();
        by_server(each.map(|(name, most)| (name, bytes(*most as f64))))
    }),
    ("client", true, |r| {
        r.client_cpu.map(|share| percent(share * 100.0, 0, false))
    }),
    ("driver us/req", true, |r| {
        r.driver_cpu_us_per_request.map(three_digits)
    }),
    ("driver memory", true, |r| r.driver_max_rss_bytes.map(bytes)),
];

const USER_SYSTEM: &str = "user+system us/req";
const SWITCHES: &str = "switches/req";
const FAULTS: &str = "faults/req";
const MEMORY: &str = "server memory";
/// Columns that a terminal has room for only where they tell subjects apart, the most telling
/// first; and what they add up to over a row's servers.
pub(crate) const WHERE_THEY_DIFFER: [(&str, Figure); 4] = [
    (SWITCHES, |r| r.server_switches_per_request.values().sum()),
    (USER_SYSTEM, |r| r.server_cpu_us_per_request.values().sum()),
    (MEMORY, |r| {
        r.server_rss_bytes_max.values().map(|b| *b as f64).sum()
    }),
    (FAULTS, |r| r.server_faults_per_request.values().sum()),
];

/// `origin 1.2, proxy 3.4`; nothing without servers.
fn by_server<'r>(each: impl Iterator<Item = (&'r String, String)>) -> Option<String> {
    let each: Vec<String> = each.map(|(name, text)| format!("{name} {text}")).collect();
    (!each.is_empty()).then(|| each.join(", "))
}

/// Subjects differ in a figure when the largest is so many times the smallest.
const DIFFER: f64 = 1.1;

/// Whether subjects under the same condition differ in a figure; one without it does not count.
pub(crate) fn differ(table: &[SubjectRow], figure: Figure) -> bool {
    table.iter().any(|one| {
        let others = table.iter().filter(|row| row.condition == one.condition);
        let mut others = others.map(figure).filter(|other| *other > 0.0);
        others.any(|other| figure(one) > DIFFER * other)
    })
}

impl Columns {
    /// Without the column of that name.
    pub fn without(mut self, name: &str) -> Self {
        if let Some(at) = self.head.iter().position(|h| h == name) {
            self.head.remove(at);
            self.numeric.remove(at);
            for row in &mut self.rows {
                row.remove(at);
            }
        }
        self
    }

    /// The table's text; a column that no row has anything for is left out.
    pub fn of(table: &[SubjectRow]) -> Self {
        let mut columns = Columns {
            head: Vec::new(),
            rows: vec![Vec::new(); table.len()],
            numeric: Vec::new(),
        };
        for (name, numeric, cell) in ALL {
            let cells: Vec<Option<String>> = table.iter().map(cell).collect();
            if cells.iter().all(Option::is_none) {
                continue;
            }
            columns.head.push(name.to_owned());
            columns.numeric.push(numeric);
            for (row, text) in columns.rows.iter_mut().zip(cells) {
                row.push(text.unwrap_or_else(|| "-".to_owned()));
            }
        }
        columns
    }
}

/// What the heads that are short for something stand for, as far as they are there.
pub(crate) fn legend(columns: &Columns) -> String {
    let known = [
        ("offered/s", "requests/s at which p50 and p99 were measured"),
        (
            "upstream/req",
            "connections that were opened behind the subject, per request",
        ),
        ("CPU us/req", "CPU time of each server per request"),
        (
            USER_SYSTEM,
            "the same in the server's own code and in the kernel",
        ),
        (SWITCHES, "context switches of each server per request"),
        (FAULTS, "page faults of each server per request"),
        (
            MEMORY,
            "the most resident memory of each server; what its processes share counts for each",
        ),
        ("client", "share of a core that a client thread used"),
        ("driver", "what made the load"),
        ("driver us/req", "CPU time of the driver per request"),
        ("driver memory", "the most that its largest process held"),
    ];
    let mut parts = vec!["geometric means over the valid trials".to_owned()];
    for (head, meaning) in known {
        if columns.head.iter().any(|h| h == head) {
            parts.push(format!("{head}: {meaning}"));
        }
    }
    parts.join("; ")
}

/// `313 timeout, 2 read`.
pub(crate) fn errors(e: &ErrorCounts) -> String {
    let kinds = [
        (e.connect, "connect"),
        (e.read, "read"),
        (e.write, "write"),
        (e.timeout, "timeout"),
        (e.status, "status"),
        (e.verify, "verify"),
    ];
    let each: Vec<String> = kinds
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, kind)| format!("{} {kind}", grouped(*count)))
        .collect();
    each.join(", ")
}
