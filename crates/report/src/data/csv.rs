//! A run's trials as CSV.

use readings::{
    DriverReading, Journal, LOAD_KEY, LoadReading, Outcome, Reading, ServerMetrics, SystemMetrics,
};
use verdict::{Analysis, JudgedTrial, judged_trials};

use crate::text::visible::visible;
use readings::text::once;
use verdict::words::trial_flaw;

/// A run's trials as CSV (RFC 4180 with line feeds): one line for each load of each trial, for a
/// spreadsheet or a data frame. Factors are columns of their own, named as in the experiment. Text
/// that a spreadsheet would take for a formula begins with an apostrophe.
///
/// The loads are those that the figures of `analysis` rest on, which was made from `journal`. Where a
/// block has none that can be used, its line has the problem.
pub fn csv(journal: &Journal, analysis: &Analysis) -> String {
    let journal = &*journal.by_load();
    let header = &journal.header;
    let rows: Vec<JudgedTrial<'_>> = judged_trials(journal, &analysis.judgements).collect();
    let conditions = header.conditions.iter();
    let conditions = conditions.chain(rows.iter().map(|one| &one.trial.condition));
    let factors = once(conditions.flat_map(|condition| condition.keys()));
    let mut out = String::from("trial,block,subject,again");
    for name in &factors {
        out.push(',');
        // The name `load` is taken: that column says whether it is the closed or the open loop.
        let is_load = header.main_load().is_some() && *name == LOAD_KEY;
        out.push_str(&field(if is_load { "load_name" } else { name.as_str() }));
    }
    out.push_str(
        ",load,requests,duration_s,requests_per_s,latency_us_p50,latency_us_p99,\
         latency_us_p99_9,latency_us_max,errors,client_cpu_s,client_saturated,driver,driver_max_rss_bytes,\
         server_cpu_user_s,server_cpu_system_s,server_switches_voluntary,\
         server_switches_involuntary,server_faults_minor,server_faults_major,\
         server_rss_bytes_max,probed_requests",
    );
    let names = server_names(&rows);
    for name in &names {
        for figure in ["cpu_s", "rss_bytes_max"] {
            out.push_str(&format!(",{}", field(&format!("server_{figure}:{name}"))));
        }
    }
    out.push_str(",problem\n");
    let no_servers = ",".repeat(2 * names.len());
    for JudgedTrial { trial, judgement } in rows {
        let mut start = format!(
            "{},{},{},{}",
            trial.trial,
            trial.block,
            field(&trial.subject),
            trial.baseline_copy
        );
        for name in &factors {
            start.push(',');
            start.push_str(&field(trial.condition.get(*name).map_or("", |v| v)));
        }
        match &trial.outcome {
            Outcome::Failed { .. } if !judgement.counts => {}
            Outcome::Failed { reason, .. } => {
                out.push_str(&format!(
                    "{start},,,,,,,,,,,,,,,,,,,,,{no_servers},{}\n",
                    field(reason)
                ));
            }
            Outcome::Done(reading) => {
                let loads = [
                    ("closed", &reading.throughput, &reading.probed),
                    ("open", &reading.latency, &reading.latency_probed),
                ];
                let judged = [&judgement.closed, &judgement.open];
                for ((name, load, probed), judged) in loads.into_iter().zip(judged) {
                    let Some(load) = load.as_ref().filter(|_| judged.is_chosen) else {
                        continue;
                    };
                    let [p50, p99, p99_9, max] = latencies(load, reading.driver.as_ref());
                    let driver = reading.driver.as_ref();
                    let problems: Vec<String> = judged.flaws.iter().map(trial_flaw).collect();
                    out.push_str(&format!(
                        "{start},{name},{},{},{},{p50},{p99},{p99_9},{max},{},{},{},{},{},{}{},{}\n",
                        load.requests,
                        load.duration_s,
                        load.requests_per_s(),
                        load.errors.total(),
                        load.client.cpu_s,
                        load.client.saturated,
                        field(&driver.map_or_else(String::new, DriverReading::label)),
                        number(driver.and_then(|d| d.max_rss_bytes()).map(|b| b as f64)),
                        servers(probed.as_ref()),
                        each_server(&names, reading, name == "closed", probed.as_ref()),
                        field(&problems.join("; "))
                    ));
                }
            }
        }
    }
    out
}

/// Median, p99, p99.9 and maximum in microseconds; empty where an outside driver does not tell.
fn latencies(load: &LoadReading, driver: Option<&DriverReading>) -> [String; 4] {
    let Some(driver) = driver else {
        let q = load.response.quantiles();
        return [q.p50, q.p99, q.p99_9, q.max].map(|us| us.to_string());
    };
    if driver.latency_loop() != load.pacing {
        return Default::default();
    }
    let runs = driver.runs.iter().filter(|run| run.pacing == load.pacing);
    let max = runs.filter_map(|run| run.latency.max_us).reduce(f64::max);
    let [p50, p99, p99_9] = [0.5, 0.99, 0.999].map(|quantile| driver.latency_us(quantile));
    [p50, p99, p99_9, max].map(number)
}

/// What the servers of the path did together, in eight fields; empty without samples.
fn servers(probed: Option<&SystemMetrics>) -> String {
    let Some(probed) = probed else {
        return ",".repeat(7);
    };
    let time = |of: fn(&ServerMetrics) -> f64| probed.servers.values().map(of).sum::<f64>();
    let count = |of: fn(&ServerMetrics) -> u64| probed.servers.values().map(of).sum::<u64>();
    format!(
        "{},{},{},{},{},{},{},{}",
        time(|s| s.user_s),
        time(|s| s.system_s),
        count(|s| s.switches_voluntary),
        count(|s| s.switches_involuntary),
        count(|s| s.faults_minor),
        count(|s| s.faults_major),
        count(|s| s.rss_bytes_max),
        probed.requests
    )
}

/// The names of all servers, in the order in which they first come.
fn server_names(rows: &[JudgedTrial<'_>]) -> Vec<String> {
    let readings = rows.iter().filter_map(|one| one.trial.reading());
    let servers = readings.flat_map(|reading| &reading.servers);
    once(servers.map(|one| one.server.clone()))
}

/// CPU time and memory of each server, with a comma before each; empty where it is not on the path.
/// The time is that of the load's measured windows in a closed loop, of the sampled ones otherwise.
fn each_server(
    names: &[String],
    reading: &Reading,
    is_closed: bool,
    probed: Option<&SystemMetrics>,
) -> String {
    let mut out = String::new();
    for name in names {
        let seen = probed.and_then(|probed| probed.servers.get(name));
        let in_windows = reading.servers.iter().find(|one| one.server == *name);
        let cpu_s = match is_closed {
            true => in_windows.map(|one| one.cpu_s),
            false => seen.map(|seen| seen.user_s + seen.system_s),
        };
        let memory = seen.map(|seen| seen.rss_bytes_max as f64);
        out.push_str(&format!(",{},{}", number(cpu_s), number(memory)));
    }
    out
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// A field, quoted if necessary. It is never a formula and has no control characters.
pub(crate) fn field(text: &str) -> String {
    let seen = visible(text).replace('\t', "\u{2409}");
    let text = match is_formula(text) {
        true => format!("'{seen}"),
        false => seen,
    };
    if text.contains([',', '"', '\n', ';']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

/// Whether a spreadsheet would take a text for a formula: it begins with one of the characters that
/// begin formulas, also in their full-width forms, and is not a number.
fn is_formula(text: &str) -> bool {
    let begins = text.starts_with([
        '=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
    ]);
    let is_number = || {
        let digits = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E');
        text.chars().all(digits) && text.parse::<f64>().is_ok()
    };
    begins && !is_number()
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::journals::journal;
    use verdict::analyse;

    #[test]
    fn every_line_has_every_column() {
        let journal = journal();
        let text = csv(&journal, &analyse(&journal));
        let mut lines = text.lines();
        let head = lines.next().unwrap();
        assert!(head.starts_with("trial,block,subject,again,connections,load,requests,"));
        let columns = head.split(',').count();
        let mut seen = 0;
        for line in lines {
            // Commas inside quotes are no separators.
            let parts: String = line.split('"').step_by(2).collect();
            assert_eq!(parts.split(',').count(), columns, "{line}");
            seen += 1;
        }
        // 18 trials with both loads, 5 with one, 1 failed.
        assert_eq!(seen, 42);
    }

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(field("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(field("plain"), "plain");
    }

    #[test]
    fn no_cell_is_a_formula_and_numbers_stay_numbers() {
        for (text, cell) in [
            ("=1+1", "'=1+1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("+a", "'+a"),
            ("-2+3|cmd", "'-2+3|cmd"),
            ("=HYPERLINK(\"x\")", "\"'=HYPERLINK(\"\"x\"\")\""),
            ("\t=1", "'\u{2409}=1"),
            ("\r=1", "'\u{240d}=1"),
            ("\u{ff1d}1", "'\u{ff1d}1"),
            ("-", "'-"),
            ("-5", "-5"),
            ("+1.5e-3", "+1.5e-3"),
            ("a=b", "a=b"),
            ("a\x1b[2J", "a\u{241b}[2J"),
        ] {
            assert_eq!(field(text), cell, "{text:?}");
        }
    }
}
