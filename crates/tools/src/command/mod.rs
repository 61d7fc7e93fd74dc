//! Command lines of load generators, as they stand above an output.

mod by_table;
mod options;

use crate::text::lines::Line;
use crate::text::units;
use crate::{Tool, ToolReading};
use options::{options, shell_words};

/// A command line and what it asks for. Where it is silent, a field is the tool's default, if the
/// tool's manual names one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Command {
    pub tool: Tool,
    /// Without the prompt.
    pub text: String,
    pub url: Option<String>,
    threads: Asked<u64>,
    connections: Asked<u64>,
    pub keepalive: Option<bool>,
    /// The most requests in flight on one connection.
    depth: Option<u64>,
    closed_loop: Option<bool>,
    pub rate_per_s: Option<f64>,
    requests: Option<u64>,
    duration_s: Option<f64>,
}

/// A number that was given, or is the default.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Asked<T> {
    value: Option<T>,
    given: bool,
}

impl Asked<u64> {
    fn new(given: Option<u64>, default: Option<u64>) -> Self {
        Self {
            value: given.or(default),
            given: given.is_some(),
        }
    }
}

/// A command with the index of its line.
pub(super) struct Placed {
    pub at: usize,
    pub command: Command,
}

/// All command lines of a text. A line that ends with a backslash goes on in the next.
pub(super) fn all(lines: &[Line]) -> Vec<Placed> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let mut text = lines[at].text.clone();
        let mut last = at;
        while text.ends_with('\\') && last + 1 < lines.len() && last < at + 20 {
            text.pop();
            last += 1;
            text.push_str(&lines[last].text);
        }
        if let Some(command) = parse(&text) {
            found.push(Placed { at, command });
            at = last;
        }
        at += 1;
    }
    found
}

/// Words that stand before a command and belong to it.
const WRAPPERS: [&str; 12] = [
    "sudo", "time", "taskset", "numactl", "nice", "nohup", "env", "exec", "chrt", "timeout",
    "stdbuf", "npx",
];

/// The command in a line, where a tool's name stands first, after a prompt, or in backticks.
pub(super) fn parse(line: &str) -> Option<Command> {
    // In backticks stands what every second piece is.
    plain(line).or_else(|| line.split('`').skip(1).step_by(2).find_map(plain))
}

fn plain(line: &str) -> Option<Command> {
    let words = shell_words(line);
    for at in 0..words.len().min(24) {
        let Some(tool) = tool_of(&words[at]) else {
            continue;
        };
        let first = beginning(&words, at).or_else(|| pipeline(tool, &words, at));
        let Some(first) = first else {
            continue;
        };
        let end = (at + 1..words.len())
            .find(|&i| ends_command(&words[i]))
            .unwrap_or(words.len());
        let arguments: Vec<&str> = words[at + 1..end].iter().map(String::as_str).collect();
        if let Some(mut command) = read(tool, &arguments) {
            command.text = after_words(line, first).to_owned();
            if tool == Tool::Vegeta {
                let targets = words[first..at].iter().flat_map(|w| w.split_whitespace());
                command.url = targets
                    .into_iter()
                    .find(|w| w.contains("://"))
                    .map(str::to_owned);
            }
            return Some(command);
        }
    }
    None
}

/// What follows a number of words that hold no quotes.
fn after_words(line: &str, count: usize) -> &str {
    let mut rest = line.trim_start();
    for _ in 0..count {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        rest = rest[end..].trim_start();
    }
    rest.trim_end()
}

fn tool_of(word: &str) -> Option<Tool> {
    let name = word.rsplit('/').next().unwrap_or(word);
    Tool::ALL.into_iter().find(|tool| tool.name() == name)
}

/// The index of a pipeline's first word that hands its targets to vegeta.
fn pipeline(tool: Tool, words: &[String], at: usize) -> Option<usize> {
    let (bar, before) = words[..at].split_last()?;
    let prompt = before.iter().rposition(|word| word.ends_with(PROMPTS));
    (tool == Tool::Vegeta && bar == "|").then(|| prompt.map_or(0, |at| at + 1))
}

/// How a prompt may end.
const PROMPTS: [char; 7] = ['$', '#', '%', '>', '❯', '➜', ':'];

/// The index of the command's first word, if a command can begin there.
fn beginning(words: &[String], at: usize) -> Option<usize> {
    let mut first = at;
    while first > 0 {
        let word = words[first - 1].as_str();
        if word.ends_with(PROMPTS) {
            return Some(first);
        }
        let wraps = WRAPPERS.contains(&word)
            || word.starts_with('-')
            || word.contains('=')
            || word.bytes().all(|b| b.is_ascii_digit() || b == b',');
        if !wraps {
            return None;
        }
        first -= 1;
    }
    // Options and numbers alone make no beginning: a list's `- ab is ...` is prose.
    let wrapped = first == at || words[..at].iter().any(|w| WRAPPERS.contains(&w.as_str()));
    wrapped.then_some(first)
}

fn ends_command(word: &str) -> bool {
    // `<URL>` stands for a value and redirects nothing.
    let operator = word.trim_start_matches(['1', '2']);
    word == "<" || operator.starts_with(['>', '|', ';', '&'])
}

/// Whether a word looks like the place where a load goes.
fn is_target(word: &str) -> bool {
    word.contains("://")
        || word.starts_with(['$', '[', '<'])
        || word.starts_with("localhost")
        || (word.contains(['.', ':']) && word.contains(|c: char| c.is_ascii_alphanumeric()))
}

fn read(tool: Tool, words: &[&str]) -> Option<Command> {
    let (options, others) = options(tool, words);
    let value = |names: &[&str]| {
        options
            .iter()
            .rev()
            .find(|(name, _)| names.contains(name))
            .map(|&(_, value)| value)
    };
    let amount = |names: &[&str]| {
        value(names)
            .and_then(units::metric)
            .map(|n| n as u64)
            .filter(|&n| n > 0)
    };
    let flag = |names: &[&str]| options.iter().any(|(name, _)| names.contains(name));
    let closes = options.iter().any(|(name, value)| {
        let value = value.to_ascii_lowercase();
        matches!(*name, "H" | "header") && value.replace(' ', "") == "connection:close"
    });

    // More words than a target and what an unknown option may have left are a sentence.
    let sentence = others.len() > if options.is_empty() { 1 } else { 2 };
    let target = others
        .iter()
        .copied()
        .find(|word| word.contains("://"))
        .or_else(|| others.last().copied().filter(|word| is_target(word)))
        .filter(|_| !sentence || tool == Tool::H2load);
    let mut command = Command {
        tool,
        text: String::new(),
        url: target.map(str::to_owned),
        threads: Asked::new(None, None),
        connections: Asked::new(None, None),
        keepalive: None,
        depth: None,
        closed_loop: None,
        rate_per_s: None,
        requests: None,
        duration_s: None,
    };
    match tool {
        Tool::Wrk | Tool::Wrk2 => {
            target?;
            command.threads = Asked::new(amount(&["t", "threads"]), Some(2));
            command.connections = Asked::new(amount(&["c", "connections"]), Some(10));
            // A script may set any header, send several requests at once, and pause.
            let plain = !flag(&["s", "script"]);
            command.keepalive = plain.then_some(!closes);
            command.depth = plain.then_some(1);
            command.closed_loop = plain.then_some(true);
            command.rate_per_s = value(&["R", "rate"]).and_then(units::metric);
            command.duration_s = value(&["d", "duration"]).and_then(units::duration_s);
            if command.rate_per_s.is_some() {
                command.tool = Tool::Wrk2;
                command.closed_loop = Some(false);
            }
        }
        Tool::Ab => {
            target?;
            command.connections = Asked::new(amount(&["c"]), Some(1));
            command.keepalive = Some(flag(&["k"]));
            // `-t` sets a limit of time, beside or instead of the count.
            command.requests = amount(&["n"]).filter(|_| !flag(&["t"]));
        }
        Tool::Hey | Tool::Oha => {
            target?;
            command.connections = Asked::new(amount(&["c"]), Some(50));
            command.keepalive = Some(!flag(&["disable-keepalive"]) && !closes);
            command.requests = amount(&["n"]).filter(|_| !flag(&["z"]));
            command.duration_s = value(&["z"]).and_then(units::duration_s);
            let rate = value(&["q"]).and_then(units::number).filter(|&q| q > 0.0);
            command.rate_per_s = match tool {
                // hey's limit is that of each worker, oha's that of all.
                Tool::Hey => rate
                    .zip(command.connections.value)
                    .map(|(q, c)| q * c as f64),
                _ => rate,
            };
            command.closed_loop = Some(rate.is_none() && !flag(&["burst-delay"]));
            // Several at once need HTTP/2, which a server may not speak.
            command.depth = (tool == Tool::Hey || !flag(&["p"])).then_some(1);
        }
        Tool::H2load => {
            target?;
            command.threads = Asked::new(amount(&["t", "threads"]), Some(1));
            command.connections = Asked::new(amount(&["c", "clients"]), Some(1));
            command.keepalive = Some(!closes);
            command.duration_s = value(&["D", "duration"]).and_then(units::duration_s);
            command.requests = amount(&["n", "requests"]).filter(|_| command.duration_s.is_none());
            // `--rps` is that of each client.
            let rps = value(&["rps"]).and_then(units::number);
            command.rate_per_s = rps
                .zip(command.connections.value)
                .map(|(rps, clients)| rps * clients as f64);
            command.depth = amount(&["m", "max-concurrent-streams"]).or(Some(1));
            // `-r` opens connections at a rate.
            let paced = ["rps", "r", "rate", "timing-script-file"];
            command.closed_loop = Some(!flag(&paced));
        }
        Tool::Httperf => {
            if options.is_empty() {
                return None;
            }
            read_httperf(&mut command, &value, &amount);
        }
        Tool::K6 => {
            if !matches!(others.first(), Some(&"run") | Some(&"cloud")) {
                return None;
            }
            // The other word is the script; where the load goes stands in it.
            command.url = None;
            command.connections = Asked::new(amount(&["u", "vus"]), None);
            command.duration_s = value(&["d", "duration"]).and_then(units::duration_s);
        }
        Tool::Siege => {
            target?;
            // Whether connections are kept stands in its file of settings. Without `-b` its users may
            // pause.
            command.closed_loop = Some(flag(&["b", "benchmark"]));
            command.connections = Asked::new(amount(&["c", "concurrent"]), Some(25));
            let time = value(&["t", "time"]).map(str::to_ascii_lowercase);
            command.duration_s = time.as_deref().and_then(units::duration_s);
            let reps = amount(&["r", "reps"]).filter(|_| time.is_none());
            command.requests = reps.zip(command.connections.value).map(|(r, c)| r * c);
        }
        Tool::Weigh => return None,
        Tool::Autocannon
        | Tool::Vegeta
        | Tool::Bombardier
        | Tool::Locust
        | Tool::Gatling
        | Tool::Jmeter
        | Tool::Artillery
        | Tool::Ghz => by_table::complete(&mut command, &value, &flag, &others, closes)?,
        Tool::Time => {
            // Of a load generator's command the generator's own reading is made. Without a place
            // to go to, it may be a sentence.
            if words.iter().any(|word| tool_of(word).is_some())
                || !words.iter().any(|w| w.contains("://"))
            {
                return None;
            }
        }
        Tool::RedisBenchmark => {
            if options.is_empty() && !others.is_empty() {
                return None;
            }
            let host = value(&["h"]).unwrap_or("127.0.0.1");
            let port = value(&["p"]).unwrap_or("6379");
            command.url = match value(&["s"]) {
                Some(socket) => Some(format!("unix:{socket}")),
                None => Some(format!("redis://{host}:{port}")),
            };
            command.connections = Asked::new(amount(&["c"]), Some(50));
            command.threads = Asked::new(amount(&["threads"]), Some(1));
            command.keepalive = Some(value(&["k"]) != Some("0"));
            command.depth = amount(&["P"]).or(Some(1));
            command.closed_loop = Some(!flag(&["rps"]));
            command.requests = amount(&["n"]);
        }
    }
    Some(command)
}

fn read_httperf<'a>(
    command: &mut Command,
    value: &dyn Fn(&[&str]) -> Option<&'a str>,
    amount: &dyn Fn(&[&str]) -> Option<u64>,
) {
    command.threads = Asked::new(None, Some(1));
    // Sessions make their calls in bursts and at times that a session file may set.
    if value(&["wsess", "wsesslog", "wset"]).is_some() {
        return;
    }
    // Slides and printed pages lose hyphens.
    let calls = amount(&["num-calls", "num-call", "numcalls"]).unwrap_or(1);
    command.keepalive = Some(calls > 1);
    let connections = amount(&["num-conns", "num-conn", "numconns"]).unwrap_or(1);
    command.requests = Some(connections.saturating_mul(calls));
    // The rate is that of connections.
    let rate = value(&["rate"])
        .and_then(units::number)
        .filter(|&rate| rate > 0.0);
    command.rate_per_s = rate.map(|rate| rate * calls as f64);
    let uri = value(&["uri"]).unwrap_or("/");
    let host = value(&["server"]).unwrap_or("localhost");
    command.url = Some(match value(&["port"]) {
        None | Some("80") => format!("http://{host}{uri}"),
        Some(port) => format!("http://{host}:{port}{uri}"),
    });
}

impl Command {
    /// Whether it is the command of a tool; wrk2's binary is called wrk.
    pub fn is_of(&self, tool: Tool) -> bool {
        match (self.tool, tool) {
            (Tool::Wrk | Tool::Wrk2, Tool::Wrk | Tool::Wrk2) => true,
            (own, other) => own == other,
        }
    }

    /// Whether the reading says nothing that the command denies.
    pub fn allows(&self, reading: &ToolReading) -> bool {
        let differs = |asked: Asked<u64>, said: Option<u64>| {
            asked.given && said.is_some_and(|said| asked.value != Some(said))
        };
        // httperf's connections come and go; the command line does not say how many are open.
        let counts = self.tool == Tool::Httperf
            || !(differs(self.threads, reading.threads)
                || differs(self.connections, reading.connections));
        // A run that was asked for a time is seldom a second longer.
        let time = self
            .duration_s
            .zip(reading.duration_s)
            .is_none_or(|(asked, was)| (was - asked).abs() <= f64::max(2.0, asked * 0.1));
        // A run that was asked for a count makes it, unless something fails. hey rounds the count down
        // to a multiple of its workers.
        let may_lack = self.tool == Tool::Hey || reading.errors.total() > 0;
        let requests = self
            .requests
            .zip(reading.requests)
            .is_none_or(|(asked, were)| were == asked || (were < asked && may_lack));
        let url = self
            .url
            .as_deref()
            .zip(reading.url.as_deref())
            .is_none_or(|(a, b)| same_url(a, b));
        self.is_of(reading.tool) && counts && time && requests && url
    }

    /// Whether the reading says something that only this command's run, or one alike, would say.
    pub fn confirmed_by(&self, reading: &ToolReading) -> bool {
        let requests = self.requests.is_some() && self.requests == reading.requests;
        let connections = self.connections.given && self.connections.value == reading.connections;
        let threads = self.threads.given && self.threads.value == reading.threads;
        self.allows(reading) && (requests || (connections && threads))
    }

    /// Fills in what the output left open.
    pub fn complete(&self, reading: &mut ToolReading) {
        reading.command = Some(self.text.clone());
        if self.tool == Tool::Wrk2 && reading.tool == Tool::Wrk {
            reading.tool = Tool::Wrk2;
        }
        reading.url = reading.url.take().or_else(|| self.url.clone());
        reading.threads = reading.threads.or(self.threads.value);
        reading.connections = reading.connections.or(self.connections.value);
        reading.keepalive = reading.keepalive.or(self.keepalive);
        reading.depth = reading.depth.or(self.depth);
        reading.closed_loop = reading.closed_loop.or(self.closed_loop);
        reading.offered_per_s = reading.offered_per_s.or(self.rate_per_s);
    }
}

/// Whether two spellings mean the same place. What holds a variable or a placeholder may.
fn same_url(a: &str, b: &str) -> bool {
    if a.contains('$') || b.contains('$') {
        return true;
    }
    let plain = |url: &str| {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let (host, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        let host = host.strip_suffix(":80").or(host.strip_suffix(":443"));
        let host = host.unwrap_or(rest.split('/').next().unwrap_or(rest));
        (host.to_ascii_lowercase(), path.to_owned())
    };
    plain(a) == plain(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(line: &str) -> Command {
        parse(line).unwrap_or_else(|| panic!("no command: {line}"))
    }

    #[test]
    fn prompts_and_wrappers_do_not_hide_a_command() {
        for line in [
            "wrk -t12 -c400 -d30s http://server/x",
            "$ wrk -t12 -c400 -d30s http://server/x",
            "root@client:~# wrk -t 12 -c 400 -d 30s http://server/x",
            "me@host ~ % ./wrk --threads 12 --connections=400 -d 30 http://server/x",
            "$ taskset -c 1,2 /usr/bin/wrk -t12 -c400 -d30s http://server/x | tee out.txt",
            "so I ran `wrk -t12 -c400 -d30s http://server/x` and waited",
        ] {
            let command = command(line);
            assert_eq!(command.tool, Tool::Wrk, "{line}");
            assert_eq!(command.threads.value, Some(12), "{line}");
            assert_eq!(command.connections.value, Some(400), "{line}");
            assert_eq!(command.url.as_deref(), Some("http://server/x"), "{line}");
            assert_eq!(command.duration_s, Some(30.0), "{line}");
            assert_eq!(command.keepalive, Some(true), "{line}");
        }
        let command = command("$ sudo nice -n 5 ab -kc 8 -n 100 http://server/ > test");
        assert_eq!(
            command.text,
            "sudo nice -n 5 ab -kc 8 -n 100 http://server/ > test"
        );
        assert_eq!(command.keepalive, Some(true));
        assert_eq!(command.connections.value, Some(8));
        assert_eq!(command.requests, Some(100));
    }

    #[test]
    fn prose_is_no_command() {
        for line in [
            "ab is a tool that comes with a server.",
            "I like wrk -t12 a lot, see http://server/",
            "The -k option for ab turns keep-alive on.",
            "hey, look at http://server/",
            "- ab comes with the server: a short manual",
            "k6 is another",
            "",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }

    #[test]
    fn a_hyphen_that_a_slide_has_lost_does_not_hide_a_count() {
        let httperf = command("httperf --server=localhost --port=81 --numconns=9 --num-calls=5");
        assert_eq!(httperf.requests, Some(45));
        assert_eq!(httperf.url.as_deref(), Some("http://localhost:81/"));
    }

    #[test]
    fn the_rate_is_that_of_all_requests() {
        assert_eq!(
            command("wrk -t2 -c10 -R 2k http://a/").rate_per_s,
            Some(2000.0)
        );
        assert_eq!(command("wrk -t2 -c10 -R 2k http://a/").tool, Tool::Wrk2);
        assert_eq!(command("hey -c 10 -q 5 http://a/").rate_per_s, Some(50.0));
        assert_eq!(command("oha -c 10 -q 5 http://a/").rate_per_s, Some(5.0));
        assert_eq!(
            command("httperf --server a --num-conns 10 --num-calls=4 --rate 100").rate_per_s,
            Some(400.0)
        );
        assert_eq!(
            command("h2load -c 4 --rps=25 http://a/").rate_per_s,
            Some(100.0)
        );
    }

    #[test]
    fn defaults_of_the_tools_hold_where_a_command_is_silent() {
        assert_eq!(command("ab http://a/").connections.value, Some(1));
        assert_eq!(command("hey http://a/").connections.value, Some(50));
        let redis = command("root@keyvalue:~# redis-benchmark -q");
        assert_eq!(redis.connections.value, Some(50));
        assert_eq!(redis.url.as_deref(), Some("redis://127.0.0.1:6379"));
        let closing = command("wrk -H 'Connection: close' http://a/");
        assert_eq!(closing.keepalive, Some(false));
    }

    #[test]
    fn urls_are_compared_by_what_they_mean() {
        assert!(same_url("http://a:80/x", "http://A/x"));
        assert!(same_url("http://a", "a/"));
        assert!(same_url("$URL", "http://a/x"));
        assert!(!same_url("http://a/x", "http://a/y"));
    }
}
