//! Lines of a log as requests with due times.

use std::collections::{BTreeMap, HashMap};

use readings::requests::{AnswerSpec, Replay, RequestSet, RequestSpec, Template};

use super::line::{Entry, LogFormat, Unusable};
use super::{LINES_MAX, LogFault, LogOptions, TEXT_MAX};
use crate::placeholder::{Names, Part, braces_escaped, parse};

const S: i64 = 1_000_000_000;
const HOUR_NS: i64 = 3_600 * S;
/// Lines are in the order of time but for this.
const SLACK_NS: i64 = 300 * S;
/// The longest log that is replayed.
const DAYS_MAX: i64 = 31;
/// Methods that are named where their lines are left out.
const METHODS: [&str; 15] = [
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
    "REPORT",
    "PURGE",
];

/// A line that is replayed.
#[derive(Clone, Copy)]
struct Line {
    /// The time in the log; since 1970, ns.
    ns: i64,
    /// How long before the request began, µs.
    before_us: u32,
    /// Its number among the distinct requests; the highest bit says that the time is a whole second.
    request: u32,
}

/// Set in [`Line::request`] where the log has whole seconds.
const IS_COARSE: u32 = 1 << 31;

impl Line {
    fn is_coarse(self) -> bool {
        self.request & IS_COARSE != 0
    }

    fn request(self) -> u32 {
        self.request & !IS_COARSE
    }

    fn start_ns(self) -> i64 {
        self.ns - i64::from(self.before_us) * 1000
    }
}

/// The statuses that a log has for a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Statuses {
    Always(u16),
    Various,
}

/// Collects lines of a log.
pub(super) struct Collector<'o> {
    format: LogFormat,
    options: &'o LogOptions,
    /// From and to, once the first line is known; since 1970, ns.
    bounds: Option<(i64, i64)>,
    lines: Vec<Line>,
    /// Method and target of distinct requests, and their numbers.
    numbers: HashMap<String, u32>,
    statuses: Vec<Statuses>,
    text_bytes: usize,
    left_out: BTreeMap<String, u64>,
    /// Lines outside of `--from` and `--to`.
    outside: u64,
    /// Of a clock without a zone: the latest time so far, and what it was set back, ns.
    local: (i64, i64),
    /// Lines so far.
    count: u64,
    /// The earliest and the latest time that is replayed, with the lines that have them.
    ends: Option<((i64, u64), (i64, u64))>,
}

impl<'o> Collector<'o> {
    pub(super) fn new(format: LogFormat, options: &'o LogOptions) -> Self {
        Self {
            format,
            options,
            bounds: None,
            lines: Vec::new(),
            numbers: HashMap::new(),
            statuses: Vec::new(),
            text_bytes: 0,
            left_out: BTreeMap::new(),
            outside: 0,
            local: (i64::MIN, 0),
            count: 0,
            ends: None,
        }
    }

    /// Takes a line.
    ///
    /// # Errors
    /// When there are too many.
    pub(super) fn take(&mut self, line: &str) -> Result<(), LogFault> {
        self.count += 1;
        let mut entry = match self.format.read(line) {
            Ok(entry) => entry,
            Err(why) => {
                self.leave_out(reason(why));
                return Ok(());
            }
        };
        let first = entry.time;
        let options = self.options;
        let with_zone = [options.from, options.to]
            .iter()
            .any(|moment| matches!(moment, Some(super::Moment::At(_))));
        if with_zone && self.bounds.is_none() && !first.has_zone {
            return Err(LogFault::Unusable(
                "the times of this log have no zone; write --from and --to without one, by the log's \
                 clock"
                    .to_owned(),
            ));
        }
        if !first.has_zone {
            entry.time.ns += self.set_back(first.ns);
        }
        let (from, to) = *self.bounds.get_or_insert_with(|| {
            let bound = |moment: Option<super::Moment>| moment.map(|one| one.in_log(first));
            (
                bound(options.from).unwrap_or(i64::MIN),
                bound(options.to).unwrap_or(i64::MAX),
            )
        });
        if !(from..to).contains(&entry.time.ns) {
            self.outside += 1;
            return Ok(());
        }
        match self.wanted(&entry) {
            Ok(target) => self.add(&entry, &target),
            Err(why) => {
                self.leave_out(why);
                Ok(())
            }
        }
    }

    /// What a clock without a zone was set back before this time, ns: in the autumn an hour comes twice.
    fn set_back(&mut self, ns: i64) -> i64 {
        let (latest, back) = &mut self.local;
        let jump = latest.saturating_sub(ns + *back);
        if (HOUR_NS - SLACK_NS..HOUR_NS + SLACK_NS).contains(&jump) {
            *back += HOUR_NS;
        }
        *latest = (*latest).max(ns + *back);
        *back
    }

    fn leave_out(&mut self, why: String) {
        *self.left_out.entry(why).or_default() += 1;
    }

    /// Path and query of a request that is replayed; otherwise why it is not.
    fn wanted(&self, entry: &Entry<'_>) -> Result<String, String> {
        let method = entry.method.as_ref();
        let is_asked = |one: &String| one.eq_ignore_ascii_case(method);
        if !matches!(method, "GET" | "HEAD") && !self.options.methods.iter().any(is_asked) {
            let body = matches!(method, "POST" | "PUT" | "PATCH");
            let without = if body {
                ", without its body, which no log has"
            } else {
                ""
            };
            return Err(match method {
                "CONNECT" => "method CONNECT, which opens a tunnel".to_owned(),
                // A log may have any number of what is no method.
                _ if !METHODS.contains(&method) => {
                    "another method; --replay-methods names those that are sent".to_owned()
                }
                _ => format!("method {method}: --replay-methods {method} sends it{without}"),
            });
        }
        let target = entry.target.as_ref();
        if target.starts_with('/') {
            return Ok(target.to_owned());
        }
        let Some((_, rest)) = target.split_once("://") else {
            return Err("a target that is not a path".to_owned());
        };
        let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let own = self.options.host.as_deref();
        if own.is_some_and(|own| !own.eq_ignore_ascii_case(host)) {
            return Err("an absolute URL of another host".to_owned());
        }
        Ok(match path.starts_with('/') {
            true => path.to_owned(),
            false => format!("/{path}"),
        })
    }

    fn add(&mut self, entry: &Entry<'_>, target: &str) -> Result<(), LogFault> {
        if self.lines.len() == LINES_MAX {
            return Err(LogFault::Unusable(format!(
                "more than {LINES_MAX} lines are to be replayed; take a part of the log with --from \
                 and --to"
            )));
        }
        let key = format!("{} {target}", entry.method);
        let number = match self.numbers.get(&key) {
            Some(number) => *number,
            None => {
                self.text_bytes += key.len();
                if self.text_bytes > TEXT_MAX {
                    return Err(LogFault::Unusable(format!(
                        "the distinct requests have more than {} MiB of paths; take a part of the \
                         log with --from and --to",
                        TEXT_MAX >> 20
                    )));
                }
                // Not more than there are lines.
                let number = self.statuses.len() as u32;
                self.numbers.insert(key, number);
                self.statuses.push(match entry.status {
                    Some(status) => Statuses::Always(status),
                    None => Statuses::Various,
                });
                number
            }
        };
        self.bound_length(entry.time.ns)?;
        let statuses = &mut self.statuses[number as usize];
        if entry
            .status
            .is_none_or(|status| *statuses != Statuses::Always(status))
        {
            *statuses = Statuses::Various;
        }
        self.lines.push(Line {
            ns: entry.time.ns,
            before_us: entry.before_us,
            request: number | if entry.time.is_coarse { IS_COARSE } else { 0 },
        });
        Ok(())
    }

    /// Refuses a log that is too long: mostly a line of it has a wrong time.
    fn bound_length(&mut self, ns: i64) -> Result<(), LogFault> {
        let own = (ns, self.count);
        let (first, last) = self.ends.unwrap_or((own, own));
        let (first, last) = (first.min(own), last.max(own));
        self.ends = Some((first, last));
        if last.0.saturating_sub(first.0) <= DAYS_MAX * 86_400 * S {
            return Ok(());
        }
        Err(LogFault::Unusable(format!(
            "lines {} and {} are more than {DAYS_MAX} days apart; take a part of the log with --from \
             and --to",
            first.1.min(last.1),
            first.1.max(last.1)
        )))
    }

    /// The requests and their times.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn finish(mut self) -> Result<RequestSet, LogFault> {
        spread(&mut self.lines);
        self.lines.sort_by_key(|line| line.start_ns());
        let Some(first) = self.lines.first().map(|line| line.start_ns()) else {
            return Err(self.nothing());
        };
        let due = |line: &Line| {
            let after = (line.start_ns() - first) as f64 / self.options.speed;
            after.round() as u64
        };
        let replay = Replay {
            due_ns: self.lines.iter().map(due).collect(),
            requests: self.lines.iter().map(|line| line.request()).collect(),
            left_out: self.left_out.into_iter().collect(),
        };
        let mut requests: Vec<Option<RequestSpec>> = vec![None; self.statuses.len()];
        for (key, number) in self.numbers {
            let number = number as usize;
            requests[number] = Some(request(&key, self.statuses[number]));
        }
        Ok(RequestSet {
            requests: requests.into_iter().flatten().collect(),
            in_order: true,
            replay: Some(replay),
            ..RequestSet::default()
        })
    }

    fn nothing(&self) -> LogFault {
        let mut why: Vec<String> = self
            .left_out
            .iter()
            .map(|(why, n)| format!("{n}: {why}"))
            .collect();
        if self.outside > 0 {
            why.push(format!("{}: outside of --from and --to", self.outside));
        }
        LogFault::Unusable(format!("no line can be replayed ({})", why.join("; ")))
    }
}

fn reason(why: Unusable) -> String {
    match why {
        Unusable::Format => "not in the log's format",
        Unusable::Cut => "cut off before its end",
        Unusable::NoRequest => "no HTTP request in it",
    }
    .to_owned()
}

/// Spreads lines that have the same whole second evenly in it, in their order.
fn spread(lines: &mut [Line]) {
    // Stable, so that lines of a second stay in their order.
    lines.sort_by_key(|line| line.ns);
    for group in lines.chunk_by_mut(|a, b| a.ns == b.ns) {
        let coarse = group.iter().filter(|line| line.is_coarse()).count() as i64;
        let own = group.iter_mut().filter(|line| line.is_coarse());
        for (number, line) in own.enumerate() {
            line.ns += number as i64 * S / coarse;
        }
    }
}

/// A request from its method and target. A status from 400 to 499 is expected again if the log always
/// has it; 408 and 499 are the client's doing.
fn request(key: &str, statuses: Statuses) -> RequestSpec {
    let (method, target) = key.split_once(' ').unwrap_or(("GET", key));
    // No placeholders are meant, and a request has no fragment: the character came as it is.
    let target = target.replace('#', "%23");
    let path = parse(&braces_escaped(&target), Names::default(), Part::Path);
    let status = match statuses {
        Statuses::Always(status @ 400..=498) if status != 408 => Some(status),
        _ => None,
    };
    RequestSpec {
        name: key.to_owned(),
        method: method.to_owned(),
        path: path.unwrap_or_else(|_| Template::fixed("/")),
        expect: AnswerSpec {
            status,
            ..AnswerSpec::default()
        },
        ..RequestSpec::default()
    }
}
