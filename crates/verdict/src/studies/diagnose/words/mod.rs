//! What readings of other tools say, in sentences.

mod name;
#[cfg(test)]
mod tests;

use crate::diagnose::{
    Concurrency, CountedFailures, Diagnosis, Fact, Figure, Finding, FindingKind, LateConnects,
    LevelFigures, ShownBy, Steadiness,
};
use readings::text::{counted, grouped, listed, number, percent};
use readings::{ErrorCounts, Tool, ToolReading};

use name::{lines, name, part, per_s, share, time};

/// What a kind of finding is, in a few words; a possible one rests on an unknown fact.
pub fn heading(kind_of: FindingKind, possible: bool) -> String {
    match possible {
        true => format!("possibly: {}", kind(kind_of)),
        false => kind(kind_of).to_owned(),
    }
}

/// What a kind of finding is, in a few words.
pub fn kind(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::ImpossibleMean => "impossible mean",
        FindingKind::CorrectedAfterwards => "corrected after the fact",
        FindingKind::RoundTripBound => "bound by round trip and connections",
        FindingKind::RoundTripSuspected => "round trip or a full queue",
        FindingKind::StoodStill => "connections stood still",
        FindingKind::Saturated => "saturated",
        FindingKind::SynRetransmission => "SYNs sent again",
        FindingKind::Timeouts => "timeouts left out",
        FindingKind::ErrorsLeftOut => "errors",
        FindingKind::Failures => "failures",
        FindingKind::WrongAnswersAsSpeed => "wrong answers as speed",
        FindingKind::OtherLength => "answers of another length",
        FindingKind::SaidByTool => "the tool's own words",
        FindingKind::SameMachine => "client on the same machine",
        FindingKind::ClientBusy => "busy client",
        FindingKind::SingleMeasurement => "one measurement only",
        FindingKind::SameLoadDiffers => "same load, other figures",
    }
}

/// A finding with the figures that it rests on. `readings` are all that were diagnosed.
pub fn diagnosis(finding: &Finding, readings: &[ToolReading]) -> String {
    let said = said(finding, readings);
    if finding.unknown.is_empty() {
        return said;
    }
    let if_so = finding.unknown.iter().map(|fact| usual(*fact).to_owned());
    let if_so: Vec<String> = if_so.collect();
    format!(
        "{said} That holds if {}, which the text does not say.",
        listed(&if_so)
    )
}

/// What is usually so where nothing says it.
fn usual(fact: Fact) -> &'static str {
    match fact {
        Fact::Depth => {
            "each connection had one request in flight (no pipelining by script or option)"
        }
        Fact::NoPauses => "nothing paused between requests",
        Fact::Version => "this is wrk 4",
        Fact::Connecting => "connections were slow to open",
        Fact::Packets => "packets were lost",
        Fact::SameContent => "all answers should have one length",
        Fact::Place => "this address is no tunnel and both had the same CPUs",
        // They are known, or nothing is said.
        Fact::Rate
        | Fact::Mean
        | Fact::Longest
        | Fact::Duration
        | Fact::Connections
        | Fact::FromSending => "the figures are right",
    }
}

fn said(finding: &Finding, readings: &[ToolReading]) -> String {
    let rows: Vec<&ToolReading> = finding.readings.iter().map(|i| &readings[*i]).collect();
    let who = || rows.first().map_or_else(String::new, |first| name(first));
    match &finding.diagnosis {
        Diagnosis::ImpossibleMean(c) => {
            let why = match rows.first() {
                Some(first) if first.tool == Tool::Wrk => {
                    "; wrk 4 corrects its latencies after the fact"
                }
                Some(first) if first.tool == Tool::Hey && first.requests > Some(1_000_000) => {
                    "; hey divides the sum of all times by at most a million"
                }
                _ => "",
            };
            format!(
                "{}: {} requests/s x {} = {} requests in flight, and there are only {}: by \
                 Little's law this mean latency cannot be{why}.",
                who(),
                per_s(c.requests_per_s),
                time(c.mean_us),
                number(c.busy(), 1, false),
                slots(c)
            )
        }
        Diagnosis::StoodStill(c) => format!(
            "{}: {} / {} would be {} requests/s, and {} were measured, {} of that: for {} of \
             the time connections waited for something that the mean latency leaves out (an answer \
             that came too late or never, a new connection, the client).",
            who(),
            slots(c),
            time(c.mean_us),
            grouped(c.bound_per_s().round() as u64),
            per_s(c.requests_per_s),
            share(c.reached()),
            share(1.0 - c.reached())
        ),
        Diagnosis::AllBusy {
            concurrency: c,
            steadiness,
            shown_by,
            queue_varies,
        } => {
            let what = match shown_by {
                Some(by) => format!(
                    "The round trip and the number of connections set the throughput, not the \
                     server: {}.",
                    shown(by, readings)
                ),
                None => format!(
                    "Either the round trip and the number of connections set the throughput, or the \
                     server was full and answered its queue in turn: with {} the latency of a full \
                     queue varies by {} of its mean or less, too. A load with twice the connections \
                     tells: it brings twice the throughput in the first case, and twice the latency \
                     in the second; so does the round trip by itself (ping).",
                    slots(c),
                    share(*queue_varies)
                ),
            };
            format!(
                "{}: {} / {} = {} requests/s, and {} were measured ({}): every connection was busy \
                 all the time, and {}. {what}",
                who(),
                slots(c),
                time(c.mean_us),
                grouped(c.bound_per_s().round() as u64),
                per_s(c.requests_per_s),
                share(c.reached()),
                steady(steadiness)
            )
        }
        Diagnosis::CorrectedAfterwards {
            longest_us,
            limit_us,
        } => format!(
            "wrk 4 corrects latencies after the fact: for each that is longer than connections / \
             requests/s it adds shorter ones that were not measured. In {}{} the longest is more \
             than twice that, as {} over {} in the first of them; mean and quantiles there are \
             partly made up.",
            counted(rows.len(), "reading"),
            at(&rows),
            time(*longest_us),
            time(*limit_us)
        ),
        Diagnosis::Saturated { few, many } => saturated(few, many, &rows),
        Diagnosis::SynRetransmission(late) => {
            let without = late.without.map(|other| &readings[other]);
            format!("{}: {}", who(), late_connects(late, without))
        }
        Diagnosis::Timeouts {
            requests,
            share: of_all,
        } => {
            let of_all = of_all.map(|of| format!(" ({} of all)", part(of)));
            let latency = rows.first().map(|first| &first.latency);
            let mean_us = latency.and_then(|latency| latency.mean_us);
            let left_out = match (mean_us, latency.and_then(|latency| latency.max_us)) {
                (None, None) => "",
                _ => ", the slowest of all, and the latency leaves them out",
            };
            let mean = mean_us.map(|us| format!(": its mean of {} is too small", time(us)));
            format!(
                "{}: {} ran into the time limit{}{left_out}{}.",
                who(),
                counted(*requests as usize, "request"),
                of_all.unwrap_or_default(),
                mean.unwrap_or_default()
            )
        }
        Diagnosis::ErrorsLeftOut {
            errors,
            answered,
            opened,
        } => {
            let tool = rows.first().map(|first| first.tool);
            let (of, latency) = match tool.and_then(are_left_out) {
                Some(true) => (
                    "beside {} that were answered",
                    "; the latency leaves them out",
                ),
                Some(false) => ("of {}, and their times are in the latency", ""),
                None => ("beside {} that it counts", ""),
            };
            let of = answered.map(|n| format!(" {}", of.replace("{}", &grouped(n))));
            let opened = opened.map(|c| {
                format!(
                    ". The {} that opened explain the rate: {} / {} = {} requests/s",
                    grouped(c.slots as u64),
                    grouped(c.slots as u64),
                    time(c.mean_us),
                    grouped(c.bound_per_s().round() as u64)
                )
            });
            format!(
                "{}: {}{}{latency}{}.",
                who(),
                failed(errors),
                of.unwrap_or_default(),
                opened.unwrap_or_default()
            )
        }
        Diagnosis::Failures {
            errors,
            answered,
            in_latency,
            counted: among,
        } => {
            let tool = rows.first().map(|first| first.tool);
            let mut parts = Vec::new();
            if errors.connect + errors.read + errors.write > 0 {
                parts.push(failed(errors));
            }
            if errors.timeout > 0 {
                let late = counted(errors.timeout as usize, "request");
                parts.push(format!("{late} ran into the time limit"));
            }
            if errors.unexplained > 0 {
                let all = rows.first().and_then(|first| first.requests_per_s);
                parts.push(unexplained(errors.unexplained, among.as_ref(), all));
            }
            let latency = match (in_latency, tool.and_then(are_left_out)) {
                (true, _) => "; their times are in the latency, which is not that of answers alone",
                (false, Some(true)) => "; the latency leaves them out",
                (false, _) => "",
            };
            let beside = match errors.unexplained {
                0 => "that were answered",
                _ => "that it counts",
            };
            let of = answered.filter(|_| !in_latency || errors.unexplained == 0);
            let of = of.map(|n| format!(", beside {} {beside}", grouped(n)));
            let of = of.unwrap_or_default();
            format!("{}: {}{of}{latency}.", who(), listed(&parts))
        }
        Diagnosis::WrongAnswersAsSpeed {
            wrong,
            requests,
            share: of,
            good_per_s,
        } => {
            let all = rows.first().and_then(|first| first.requests_per_s);
            let good = all.zip(*good_per_s).map(|(all, good)| {
                format!(": {} requests/s are {} good ones", per_s(all), per_s(good))
            });
            format!(
                "{}: {} of {} answers ({}) had an error status, and count as throughput{}.",
                who(),
                grouped(*wrong),
                grouped(*requests),
                part(*of),
                good.unwrap_or_default()
            )
        }
        Diagnosis::OtherLength { answers, requests } => format!(
            "{}: {} of {} answers had another length than the first one: they are failures.",
            who(),
            grouped(*answers),
            grouped(*requests)
        ),
        Diagnosis::Said(said) => {
            let said: Vec<String> = said.iter().map(|words| format!("`{words}`")).collect();
            format!("{}: it says {}.", who(), listed(&said))
        }
        Diagnosis::OnLoopback { client_cores } => on_loopback(&rows, *client_cores),
        Diagnosis::ProcessListed { process, source } => format!(
            "{}: {}line {} lists it among the processes of a machine (`{}`): if the server ran \
             there too, client and server took CPU time from each other, and the throughput is that \
             of the two together.",
            process.tool,
            place(source.as_deref()),
            process.line,
            process.text
        ),
        Diagnosis::ClientBusy { cores, threads } => format!(
            "{}: {} used {} of a core in {}: the client may be what set the throughput, so the \
             figure is a lower bound.",
            who(),
            rows.first().map_or("", |first| first.tool.name()),
            share(*cores),
            counted(*threads as usize, "thread")
        ),
        Diagnosis::TargetsOnce {
            first,
            second,
            once_each,
            figures,
            ratios,
        } => {
            let measured = match once_each {
                true => "from one measurement each",
                false => "with one measurement on a side",
            };
            let against = format!("{second} against {first}{}", at(&rows));
            match ratios[..] {
                [ratio] => format!(
                    "{against}: {} against {} is {}, {measured}: nothing says how much of it is \
                     noise, so nothing follows.",
                    figure(figures.1),
                    figure(figures.0),
                    change(ratio)
                ),
                _ => format!("{against}: {}", ratios_once(ratios, measured)),
            }
        }
        Diagnosis::TimedOnce {
            first,
            second,
            ratio,
        } => {
            let [a, b] = [0, 1].map(|n| rows.get(n).map_or_else(String::new, |row| at(&[*row])));
            format!(
                "time: {}{b} against {}{a} is {}, from one measurement each: nothing says how much \
                 of it is noise, so nothing follows; if both timed the same, the noise is that \
                 large.",
                figure(*second),
                figure(*first),
                change(*ratio)
            )
        }
        Diagnosis::TableOnce {
            lines: (from, to),
            source,
            first,
            column,
            ratios,
        } => format!(
            "{column} against {first} (the table in {}lines {from} to {to}): {}",
            place(source.as_deref()),
            ratios_once(ratios, "from one figure each")
        ),
        Diagnosis::SameLoadDiffers {
            count,
            low,
            high,
            ratio,
        } => {
            let apart = match ratio {
                ratio if *ratio < 2.0 => change(*ratio),
                _ => format!("{} times", number(*ratio, 2, false)),
            };
            let measured = match count {
                2 => "one measurement",
                _ => "few measurements",
            };
            format!(
                "{} of the same target and load{} lie between {} and {}, {apart}: if they are \
                 repetitions, that is the noise; if they are different set-ups, each has {measured}, \
                 and nothing says how much of it is noise.",
                counted(*count, "reading"),
                at(&rows),
                figure(*low),
                figure(*high)
            )
        }
    }
}

/// ` (lines 12 to 20)`; empty where no reading has any.
fn at(rows: &[&ToolReading]) -> String {
    lines(rows).map_or_else(String::new, |lines| format!(" ({lines})"))
}

/// `a.txt `; empty where there is one text.
fn place(source: Option<&str>) -> String {
    source.map_or_else(String::new, |source| format!("{source} "))
}

fn slots(c: &Concurrency) -> String {
    let what = match c.are_connections {
        true => "connections",
        false => "requests that its connections can carry at once",
    };
    format!("{} {what}", grouped(c.slots as u64))
}

fn steady(steadiness: &Steadiness) -> String {
    match steadiness {
        Steadiness::NearSmallest { min_us } => {
            format!("latency is near its smallest ({})", time(*min_us))
        }
        Steadiness::HardlyVaries {
            stdev_us,
            share: of_mean,
        } => format!(
            "latency hardly varies (standard deviation {}, {} of the mean)",
            time(*stdev_us),
            share(*of_mean)
        ),
    }
}

fn shown(by: &ShownBy, readings: &[ToolReading]) -> String {
    let rate = |r: &ToolReading| per_s(r.requests_per_s.unwrap_or(0.0));
    match by {
        ShownBy::Better { reading } => {
            let better = &readings[*reading];
            format!(
                "the same target answered {} requests/s to as many connections elsewhere in the \
                 text{}",
                rate(better),
                at(&[better])
            )
        }
        ShownBy::Connecting {
            connect_us,
            two_round_trips,
        } => {
            let trips = match two_round_trips {
                true => "two of them are",
                false => "it is",
            };
            format!(
                "opening a connection is one round trip and took {}, and {trips} most of the latency",
                time(*connect_us)
            )
        }
        ShownBy::InProportion { reading } => {
            let more = &readings[*reading];
            format!(
                "{} connections brought {} requests/s at {}{}, as much more as they are",
                grouped(more.connections.unwrap_or(0)),
                rate(more),
                time(more.latency.mean_us.unwrap_or(0.0)),
                at(&[more])
            )
        }
    }
}

fn saturated(few: &LevelFigures, many: &LevelFigures, rows: &[&ToolReading]) -> String {
    let change = (many.requests_per_s / few.requests_per_s - 1.0) * 100.0;
    let target = rows.first().and_then(|first| first.url.as_deref());
    format!(
        "{few_connections} to {} connections to {}{}: {} times the connections bring {} {} \
         throughput ({} requests/s against {}) and {} times the latency ({} against {}): the target, \
         or what is before it, was saturated at {few_connections} connections or before.",
        many.connections,
        target.unwrap_or("the target"),
        at(rows),
        number(many.connections as f64 / few.connections as f64, 1, false),
        percent(change.abs(), 1, false),
        if change < 0.0 { "less" } else { "more" },
        per_s(many.requests_per_s),
        per_s(few.requests_per_s),
        number(many.mean_us / few.mean_us, 1, false),
        time(many.mean_us),
        time(few.mean_us),
        few_connections = few.connections,
    )
}

fn late_connects(late: &LateConnects, without: Option<&ToolReading>) -> String {
    let what = match late.in_connecting {
        true => "connecting",
        false => "latency",
    };
    let place = |(quantile, us): &(Option<f64>, f64)| match quantile {
        Some(q) => format!("p{} {}", percentile(*q), time(*us)),
        None => format!("a maximum of {}", time(*us)),
    };
    let places: Vec<String> = late.jumps_to.iter().map(place).collect();
    let met: Vec<String> = late.steps_s.iter().map(|s| format!("{s} s")).collect();
    let without = without.map(|other| {
        let at = at(&[other]);
        format!("; with keep-alive{at} there are none")
    });
    format!(
        "{what} has a median of {} and then jumps to {}: steps of {} over the median are what SYNs \
         do that are sent again (1, 3 and 7 s after the first), as with a full accept queue{}.",
        time(late.typical_us),
        listed(&places),
        listed(&met),
        without.unwrap_or_default()
    )
}

fn percentile(q: f64) -> String {
    let text = number(q * 100.0, 3, false);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Whether a tool's latency leaves out requests that failed; nothing where that is not known. What
/// ab closes early counts among its complete requests.
fn are_left_out(tool: Tool) -> Option<bool> {
    match tool {
        Tool::Wrk | Tool::Wrk2 | Tool::Httperf | Tool::H2load | Tool::Hey | Tool::Oha => Some(true),
        Tool::Autocannon | Tool::Artillery | Tool::Ghz => Some(true),
        Tool::Ab | Tool::K6 => Some(false),
        _ => None,
    }
}

/// `18 of 1,240 requests (1.5%) failed, and the output does not say how`.
fn unexplained(failed: u64, among: Option<&CountedFailures>, all_per_s: Option<f64>) -> String {
    let Some(among) = among else {
        let lost = counted(failed as usize, "request");
        return format!("{lost} failed, and the output does not say how");
    };
    let good = all_per_s
        .zip(among.good_per_s)
        .map(|(all, good)| format!(": {} requests/s are {} good ones", per_s(all), per_s(good)));
    format!(
        "{} of {} requests ({}) failed, and the output does not say how{}",
        grouped(failed),
        grouped(among.requests),
        part(among.share),
        good.unwrap_or_default()
    )
}

fn failed(e: &ErrorCounts) -> String {
    let mut said = Vec::new();
    if e.connect > 0 {
        let times = counted(e.connect as usize, "attempt");
        said.push(format!("{times} to open a connection failed"));
    }
    let kinds = [(e.read, "read"), (e.write, "write")];
    let broken = e.read.saturating_add(e.write);
    if broken > 0 {
        let kinds = kinds.iter().filter(|(count, _)| *count > 0);
        let kinds = kinds.map(|(count, kind)| format!("{} {kind}", grouped(*count)));
        said.push(format!(
            "{} failed on the way ({})",
            counted(broken as usize, "request"),
            listed(&kinds.collect::<Vec<_>>())
        ));
    }
    listed(&said)
}

fn on_loopback(rows: &[&ToolReading], client_cores: Option<f64>) -> String {
    let Some(first) = rows.first() else {
        return String::new();
    };
    let named = match rows.len() {
        1 => name(first),
        n => format!("{}, {}{}", first.tool, counted(n, "reading"), at(rows)),
    };
    let target = first.url.as_deref().unwrap_or("127.0.0.1, its default");
    let cpu = client_cores
        .map(|cores| format!(" ({} took {} of a core itself)", first.tool, share(cores)));
    format!(
        "{named}: the target is {target}, so client and server took CPU time from each other{}: the \
         throughput is that of the two together.",
        cpu.unwrap_or_default()
    )
}

fn ratios_once(ratios: &[f64], measured: &str) -> String {
    let written: Vec<String> = ratios.iter().map(|r| number(*r, 2, false)).collect();
    let above = ratios.iter().filter(|r| **r > 1.0).count();
    format!(
        "the ratios {}, {measured}, {above} of {} above 1: nothing says how much of them is noise, \
         so nothing follows.",
        listed(&written),
        ratios.len()
    )
}

fn figure(figure: Figure) -> String {
    match figure {
        Figure::PerSecond(v) => format!("{} requests/s", per_s(v)),
        Figure::Duration(s) => format!("{} s", number(s, 3, false)),
        Figure::Mean(us) => time(us),
    }
}

/// A ratio as a signed percentage.
fn change(ratio: f64) -> String {
    let change = (ratio - 1.0) * 100.0;
    percent(change, usize::from(change.abs() < 1.0), true)
}
