//! The columns of the table of figures.

use readings::ErrorCounts;
use readings::text::{condition, grouped, number, once, percent, rate};
use verdict::{EventsRow, Metric, ServerRow, Starts, SubjectRow, words};

use readings::text::compact::{bytes, three_digits, time};

/// The table of subjects as text: a head and rows, only the columns that hold anything.
#[derive(Clone)]
pub(crate) struct Columns {
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
    /// Whether a column holds numbers, which are set to the right.
    pub numeric: Vec<bool>,
}

type Cell = fn(&SubjectRow) -> Option<String>;

/// The columns of what is no metric, or of a metric for each server.
const ALL: [(&str, bool, Cell); 23] = [
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
    ("p99", true, |r| {
        let bound = r.latency_us_p99_bound.as_ref();
        r.latency_us_p99
            .map(time)
            .or_else(|| bound.map(words::bounded))
    }),
    (PER_CONNECTION, true, |r| {
        Some(words::kept(
            r.reconnects_per_request?,
            r.requests_per_connection?,
        ))
    }),
    (STARTS, true, |r| {
        let Starts { failed, all, .. } = &r.starts;
        (*all > 0).then(|| format!("{failed} of {all}"))
    }),
    ("errors", true, |r| {
        (r.errors.total() > 0).then(|| errors(&r.errors))
    }),
    (FAILED, true, |r| r.events.as_ref().map(failed)),
    (FULL_RATE, true, |r| {
        let e = r.events.as_ref().filter(|e| e.events > 0)?;
        Some(after(e.full_rate_after_s, e.not_full_at_end, e.trials))
    }),
    (SILENCE, true, |r| {
        let longest_s = r.events.as_ref()?.longest_silence_s?;
        Some(time(longest_s * 1e6))
    }),
    (RESPONSE, true, |r| {
        let longest_s = r.events.as_ref()?.longest_response_s?;
        Some(time(longest_s * 1e6))
    }),
    (LEFT, true, |r| {
        let e = r.events.as_ref().filter(|e| e.were_lost > 0)?;
        let not = after(e.left_after_s, e.not_left, e.were_lost);
        let Some((low_s, high_s)) = e.left_after_s_low.zip(e.left_after_s_high) else {
            return Some(not);
        };
        // The interval stands behind the time, before how often it was not.
        let interval = format!(" s [{low_s:.1}, {high_s:.1}]");
        Some(not.replacen(" s", &interval, 1))
    }),
    (IN_ROTATION, true, |r| {
        let e = r.events.as_ref().filter(|e| e.were_back > 0)?;
        Some(after(e.in_rotation_after_s, e.not_in_rotation, e.were_back))
    }),
    (IN_EFFECT, true, |r| {
        let e = r.events.as_ref().filter(|e| e.reloads > 0)?;
        let took = e.in_effect_after_s.map(|seconds| time(seconds * 1e6));
        Some(match (took, e.not_in_effect) {
            (None, _) => "not".to_owned(),
            (Some(took), 0) => took,
            (Some(took), not) => format!("{took}, {not} of {} not", e.reloads),
        })
    }),
    (WAITED, true, |r| {
        r.events.as_ref()?.connections_max.map(grouped)
    }),
    (REOPENED, true, |r| {
        let e = r.events.as_ref().filter(|e| e.events > 0)?;
        e.reopened_per_event.map(three_digits)
    }),
    (MEMORY_AFTER, true, |r| {
        let e = r.events.as_ref().filter(|e| e.events > 0)?;
        let (before, after) = (e.memory_before_bytes?, e.memory_after_bytes?);
        Some(format!("{} of {}", bytes(after), bytes(before)))
    }),
    ("upstream/req", true, |r| {
        r.upstream_connections_per_request
            .map(|v| format!("{v:.3}"))
    }),
    (BYTES, true, |r| r.bytes_per_answer.map(bytes)),
    ("client", true, |r| {
        r.client_cpu.map(|share| percent(share * 100.0, 0, false))
    }),
];

const STARTS: &str = "failed trials";
const FAILED: &str = "failed";
const FULL_RATE: &str = "full rate after";
const SILENCE: &str = "longest silence";
const RESPONSE: &str = "longest response";
const LEFT: &str = "left after";
const IN_ROTATION: &str = "in rotation after";
const IN_EFFECT: &str = "in effect after";
const WAITED: &str = "at stopped";
const REOPENED: &str = "reopened/event";
const MEMORY_AFTER: &str = "memory after";

/// `5 of 20,000 (0.025%)`; with none, how many there can be. Around reloads, how many for each.
fn failed(e: &EventsRow) -> String {
    let share = |share: f64| number(share * 100.0, 4, false);
    let of = format!("{} of {}", grouped(e.failed), grouped(e.requests));
    if let Some(per_event) = words::failures_per_event(e) {
        return format!("{of}, {per_event}");
    }
    match e.failed_share_at_most {
        Some(most) => format!("{of} (< {}%)", share(most)),
        None => format!("{of} ({}%)", share(e.failed_share)),
    }
}

/// `1.2 s`, and in how many of all it was not.
fn after(seconds: Option<f64>, not: usize, all: usize) -> String {
    match seconds {
        None => "not".to_owned(),
        Some(seconds) if not == 0 => format!("{seconds:.1} s"),
        Some(seconds) => format!("{seconds:.1} s, {not} of {all} not"),
    }
}

const PER_CONNECTION: &str = "requests/connection";
const BYTES: &str = "bytes/answer";
const INSTRUCTIONS: &str = "instructions/req";
const USER_INSTRUCTIONS: &str = "user instructions/req";
const SWITCHES: &str = "switches/req";
const FAULTS: &str = "faults/req";
const WRITTEN: &str = "written/req";
const USER_SYSTEM: &str = "user+system";
const MEMORY: &str = "peak memory";
const PER_CORE: &str = "requests/core";
/// A figure of a server in a row, by its name.
type ServerCell = fn(&SubjectRow, &str) -> Option<String>;

const OF_SERVERS: [(&str, ServerCell); 9] = [
    ("CPU us/req", |r, server| {
        let us = r.server_cpu_us_per_request.get(server)?;
        Some(three_digits(*us))
    }),
    (PER_CORE, |r, server| {
        own(r, server)?.requests_per_core.map(rate)
    }),
    (USER_SYSTEM, |r, server| {
        let user = r.server_cpu_user_us_per_request.get(server)?;
        let system = r.server_cpu_system_us_per_request.get(server)?;
        Some(format!("{}+{}", three_digits(*user), three_digits(*system)))
    }),
    (INSTRUCTIONS, |r, server| {
        let counts = &r.server_instructions_per_request;
        counts.get(server).map(|count| rate(*count))
    }),
    (USER_INSTRUCTIONS, |r, server| {
        let counts = &r.server_user_instructions_per_request;
        counts.get(server).map(|count| rate(*count))
    }),
    (SWITCHES, |r, server| {
        let count = r.server_switches_per_request.get(server)?;
        Some(three_digits(*count))
    }),
    (FAULTS, |r, server| {
        let count = r.server_faults_per_request.get(server)?;
        Some(three_digits(*count))
    }),
    (WRITTEN, |r, server| {
        let written = r.server_written_bytes_per_request.get(server)?;
        Some(bytes(*written))
    }),
    (MEMORY, |r, server| {
        let most = r.server_rss_bytes_max.get(server)?;
        Some(bytes(*most as f64))
    }),
];

/// The servers of a row: those of the path in its order, then others by name.
fn servers(row: &SubjectRow) -> Vec<&String> {
    let path = row.servers.iter().map(|one| &one.server);
    let times = row.server_cpu_us_per_request.keys();
    let memory = row.server_rss_bytes_max.keys();
    let instructions = row.server_instructions_per_request.keys();
    let user = row.server_user_instructions_per_request.keys();
    let others = times.chain(memory).chain(instructions).chain(user);
    once(path.chain(others))
}

/// What is known of a server by itself.
fn own<'r>(row: &'r SubjectRow, server: &str) -> Option<&'r ServerRow> {
    row.servers.iter().find(|one| one.server == server)
}

#[derive(Clone)]
pub(crate) struct Figures {
    pub subjects: Columns,
    /// A row for each server of each subject; without a row where nothing is known of any.
    pub servers: Columns,
}

impl Figures {
    pub fn of(table: &[SubjectRow]) -> Self {
        Self {
            subjects: Columns::of(table),
            servers: Columns::of_servers(table),
        }
    }

    /// Without the column of the condition.
    pub fn without_condition(self) -> Self {
        Self {
            subjects: self.subjects.without("condition"),
            servers: self.servers.without("condition"),
        }
    }
}

impl Columns {
    /// So many rows without a column yet.
    pub fn empty(rows: usize) -> Self {
        Self {
            head: Vec::new(),
            rows: vec![Vec::new(); rows],
            numeric: Vec::new(),
        }
    }

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

    /// What happened around events, without what else the table has.
    pub fn of_events(table: &[SubjectRow]) -> Self {
        let shown = [
            "condition",
            "subject",
            FAILED,
            FULL_RATE,
            RESPONSE,
            LEFT,
            IN_ROTATION,
            IN_EFFECT,
        ];
        let mut columns = Columns::empty(table.len());
        for (name, numeric, cell) in ALL.into_iter().filter(|one| shown.contains(&one.0)) {
            columns.add(name, numeric, table.iter().map(cell).collect());
        }
        columns
    }

    /// The table's text; a column that no row has anything for is left out.
    pub fn of(table: &[SubjectRow]) -> Self {
        let mut columns = Columns::empty(table.len());
        // Where every subject keeps its connections there is nothing to tell.
        let are_kept = !table.iter().any(words::closes_connections);
        let shown = |name: &str| name != PER_CONNECTION || !are_kept;
        for (name, numeric, cell) in ALL.into_iter().filter(|one| shown(one.0)) {
            columns.add(name, numeric, table.iter().map(cell).collect());
        }
        for metric in Metric::ALL {
            let Some(name) = metric.column() else {
                continue;
            };
            let cell = |row: &SubjectRow| Some(words::cell(metric, *row.figures.get(&metric)?));
            columns.add(name, true, table.iter().map(cell).collect());
        }
        columns
    }

    fn of_servers(table: &[SubjectRow]) -> Self {
        let rows: Vec<(&SubjectRow, &String)> = table
            .iter()
            .flat_map(|row| servers(row).into_iter().map(move |server| (row, server)))
            .collect();
        let mut columns = Columns::empty(rows.len());
        let conditions = rows.iter().map(|(row, _)| {
            let text = condition(&row.condition);
            (!text.is_empty()).then_some(text)
        });
        columns.add("condition", false, conditions.collect());
        let subjects = rows.iter().map(|(row, _)| Some(row.subject.clone()));
        columns.add("subject", false, subjects.collect());
        let names = rows.iter().map(|(_, server)| Some((*server).clone()));
        columns.add("server", false, names.collect());
        for (name, cell) in OF_SERVERS {
            let cells = rows.iter().map(|(row, server)| cell(row, server));
            columns.add(name, true, cells.collect());
        }
        columns
    }

    /// A column with a cell for each row; nothing where no row has anything for it.
    pub fn add(&mut self, name: &str, numeric: bool, cells: Vec<Option<String>>) {
        if cells.iter().all(Option::is_none) {
            return;
        }
        self.head.push(name.to_owned());
        self.numeric.push(numeric);
        for (row, text) in self.rows.iter_mut().zip(cells) {
            row.push(text.unwrap_or_else(|| "-".to_owned()));
        }
    }
}

/// What the heads that are short for something stand for, as far as they are there.
pub(crate) fn legend(figures: &Figures) -> String {
    let heads = || figures.subjects.head.iter().chain(&figures.servers.head);
    let known = [
        (
            "offered/s",
            "requests, or users, per second at which p50 and p99 were measured",
        ),
        (
            "upstream/req",
            "connections that were opened behind the subject, per request",
        ),
        (
            PER_CONNECTION,
            "requests that a connection carried before the subject closed it",
        ),
        (BYTES, "bytes received per answer, head included"),
        (
            INSTRUCTIONS,
            "instructions that each server retired per request, the kernel's included",
        ),
        (
            USER_INSTRUCTIONS,
            "instructions that each server retired per request in its own code",
        ),
        ("server", "the load addresses the first of each subject"),
        (PER_CORE, "requests for each second of its CPU time"),
        (SWITCHES, "context switches of each server per request"),
        (FAULTS, "page faults of each server per request"),
        (WRITTEN, "bytes that each server wrote to files per request"),
        (
            STARTS,
            "trials that failed because of the subject, out of all trials, repeated ones included, that \
             machine and client did not spoil",
        ),
        ("client", "share of a core that a client thread used"),
        (
            FAILED,
            "requests that failed while something happened to servers; with none, at most the \
             share in brackets (95%, rule of three); around reloads and rolling restarts also for \
             each event, with the exact 95% interval",
        ),
        (
            FULL_RATE,
            "mean time until 95% of the requests of every second had a good answer within 0.3 s",
        ),
        (
            SILENCE,
            "the longest time without any good answer, from the first event on, in any trial",
        ),
        (RESPONSE, "the longest that a good answer took from then on"),
        (
            LEFT,
            "mean time until a lost server had less than half of its usual requests, with its 95% interval; \
             requests that failed or took over 0.3 s count as its own",
        ),
        (
            IN_ROTATION,
            "mean time until a server that was back had its share of the load again",
        ),
        (
            IN_EFFECT,
            "mean time until a reload was seen to be in effect",
        ),
        (
            WAITED,
            "the most connections that were open at a stopped server",
        ),
        (
            REOPENED,
            "connections that ended, for each event, and were opened again",
        ),
        (
            MEMORY_AFTER,
            "mean memory of the first server after the load, of that before it",
        ),
        ("driver", "what made the load"),
        ("driver us/req", "CPU time of the driver per request"),
        ("driver memory", "the most that its largest process held"),
    ];
    let mut parts = vec!["geometric means over the valid trials".to_owned()];
    for (head, meaning) in known {
        if heads().any(|h| h == head) {
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
        (e.unexplained, "unexplained"),
    ];
    let each: Vec<String> = kinds
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, kind)| format!("{} {kind}", grouped(*count)))
        .collect();
    each.join(", ")
}
