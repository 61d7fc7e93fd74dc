use readings::url::without_users;

use super::command::{self, Placed};
use super::reading::{Figures, has_figures, settle};
use super::scan::{self, Block};
use crate::readers::{reader, weigh};
use crate::text::lines::{Line, lines};
use crate::text::table;
use crate::{FigureTable, ProcessLine, ReadError, Tool, ToolReading, process};
use crate::{cause, whole};

/// A command may stand so many lines above the output that nothing else ties to it.
const COMMAND_LINES: usize = 30;
/// So many commands above an output are looked at.
const COMMANDS: usize = 16;

/// Reads the output of one run of a tool.
///
/// The text is what the tool printed, perhaps with its command line above, and with lines of other
/// programs or of a script between. redis-benchmark gives a reading for each operation; so does a
/// text that holds several runs for each run. wrk2's output is read as wrk2's also when wrk's was
/// asked for. oha, k6 and siege may be text or JSON, redis-benchmark its long form, `-q` or `--csv`.
///
/// # Errors
///
/// When the text is no output of the tool, when it is cut off before its result, when a line of it
/// has no figure where there should be one, and when the tool says that it gave up.
pub fn read_output(tool: Tool, text: &str) -> Result<Vec<ToolReading>, ReadError> {
    if tool == Tool::Weigh {
        return weigh::read(text);
    }
    let text = &*without_users(text);
    let lines = lines(text);
    let mut figures = Figures::new(tool);
    let mut readings = Vec::new();
    let mut cut = Vec::new();
    for block in scan::blocks_of(tool, &lines) {
        readings.extend(read_block(&block, &lines, &mut figures));
        cut.extend(without_end(
            &block,
            &lines,
            &readings,
            figures.take_missing(),
        ));
    }
    for reading in &mut readings {
        if tool == Tool::Wrk2 {
            reading.tool = tool;
        }
    }
    if let Some(wrong) = figures.wrong.into_iter().next() {
        return Err(wrong);
    }
    if let Some(cut) = readings.iter().find(|reading| !has_result(reading)) {
        return Err(gave_up(tool, &lines).unwrap_or(ReadError::Cut {
            tool,
            line: cut.lines.1,
            expected: reader(tool).result,
        }));
    }
    if readings.is_empty() {
        return Err(gave_up(tool, &lines)
            .or_else(|| no_document(tool, text))
            .unwrap_or_else(|| ReadError::Nothing {
                tool,
                expected: reader(tool).first,
                instead: read_all(text).first().map(|reading| reading.tool),
            }));
    }
    complete(&mut readings, &command::all(&lines), &lines);
    cut.retain(|&(at, missing)| !whole::may_lack(&readings[at], missing));
    match cut.first() {
        Some(&(at, expected)) => Err(ReadError::Cut {
            tool,
            line: readings[at].lines.1,
            expected,
        }),
        None => Ok(readings),
    }
}

/// Reads all outputs that stand in a text: a page, a mail, a log.
///
/// Prose, prompts, quoting with `>` and terminal colours do not disturb. An output may be a part of
/// one, such as ab's table of percentages alone; what it does not say is `None`. Each reading has
/// its lines, and the command above it if there is one that fits: one that nothing in the output
/// denies. A command that stands further up, or above another output, is taken only if the output
/// confirms it: the number of requests, or threads and connections, are the same. What the output
/// leaves open is then taken from the command, with the tool's documented defaults.
///
/// The readings come in the order of the text. A text without any output gives none.
pub fn read_all(text: &str) -> Vec<ToolReading> {
    read_text(text).readings
}

/// [`read_all`], with what is missing or damaged in the outputs.
pub fn read_text(text: &str) -> ReadText {
    let text = &*without_users(text);
    let lines = lines(text);
    let mut readings = Vec::new();
    let mut problems = Vec::new();
    let mut cut = Vec::new();
    let mut within = Vec::new();
    for block in scan::all_blocks(&lines) {
        if block.tool == Tool::Weigh && block.json.is_none() {
            let lines = (lines[block.first].number, lines[block.last].number);
            problems.push(ReadError::OwnText { lines });
            within.push(block.first..block.last + 1);
            continue;
        }
        let mut figures = Figures::new(block.tool);
        let read = read_block(&block, &lines, &mut figures);
        let missing = figures.take_missing();
        problems.append(&mut figures.wrong);
        for reading in &read {
            if !has_result(reading) {
                problems.push(without_result(reading, &lines));
            }
        }
        let others = (block.first..=block.last).filter(|at| !block.own.contains(at));
        problems.extend(others.filter_map(|at| cause::decimal_comma(block.tool, &lines[at])));
        if !read.is_empty() {
            within.push(block.first..block.last + 1);
        }
        readings.extend(read.into_iter().filter(has_figures));
        cut.extend(without_end(&block, &lines, &readings, missing));
    }
    let commands = command::all(&lines);
    problems.extend(cause::gave_up(&lines, &commands, &within));
    problems.extend(cause::cut_document(&lines, &within));
    complete(&mut readings, &commands, &lines);
    cut.retain(|&(at, missing)| !whole::may_lack(&readings[at], missing));
    problems.extend(cut.into_iter().map(|(at, expected)| ReadError::Part {
        tool: readings[at].tool,
        lines: readings[at].lines,
        expected,
    }));
    join_times(&mut readings);
    ReadText {
        readings,
        problems,
        processes: process::listed(&lines),
        tables: table::tables(&lines),
    }
}

/// The last of all readings, and what is missing at the end of its output, the block that was read
/// last; `missing` is what its reader has seen of that.
fn without_end(
    block: &Block,
    lines: &[Line],
    readings: &[ToolReading],
    missing: Option<&'static str>,
) -> Option<(usize, &'static str)> {
    let at = readings.len().checked_sub(1)?;
    let (first, last) = (lines[block.first].number, lines[block.last].number);
    let is_its = first <= readings[at].lines.0 && readings[at].lines.1 <= last;
    if block.json.is_some() || !is_its || !has_result(&readings[at]) {
        return None;
    }
    let own: Vec<&Line> = block.own.iter().map(|&at| &lines[at]).collect();
    Some((at, whole::missing(&readings[at], &own).or(missing)?))
}

/// Why an output has no result: its tool said so, or it is not all there.
fn without_result(reading: &ToolReading, lines: &[Line]) -> ReadError {
    let (tool, (first, last)) = (reading.tool, reading.lines);
    // The message stands in the output or right below it.
    let from = lines.partition_point(|line| line.number < first);
    let to = lines.partition_point(|line| line.number <= last + 2);
    gave_up(tool, lines.get(from..to).unwrap_or_default()).unwrap_or(ReadError::Part {
        tool,
        lines: (first, last),
        expected: reader(tool).result,
    })
}

/// So many lines may stand between an output and what `time` says of its run.
const TIME_LINES: usize = 2;

/// Takes what `time` says right below a run that took as long as the run's own CPU time.
fn join_times(readings: &mut Vec<ToolReading>) {
    let mut at = 1;
    while at < readings.len() {
        let (run, time) = (&readings[at - 1], &readings[at]);
        let follows = time.tool == Tool::Time
            && run.tool != Tool::Time
            && time.command.is_none()
            && time.lines.0 <= run.lines.1 + 1 + TIME_LINES;
        let as_long = run.duration_s.zip(time.duration_s).is_some_and(|(r, t)| {
            // It also saw the start, and what the tool worked out at the end.
            r - 0.1 <= t && t <= r + f64::max(2.0, r * 0.1)
        });
        if follows && as_long {
            let time = readings.remove(at);
            let run = &mut readings[at - 1];
            run.client_cpu_s = run.client_cpu_s.or(time.client_cpu_s);
            run.lines.1 = time.lines.1;
        } else {
            at += 1;
        }
    }
}

/// What was found in a text.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadText {
    /// The outputs, in the order of the text.
    pub readings: Vec<ToolReading>,
    /// Outputs without their result, and lines without the figure that should stand there.
    pub problems: Vec<ReadError>,
    /// Where the text says that a load generator ran on a machine, and what it took of it.
    pub processes: Vec<ProcessLine>,
    /// Tables in which the text compares subjects.
    pub tables: Vec<FigureTable>,
}

/// A line of each tool's output by which it is known, for messages.
pub fn looked_for() -> impl Iterator<Item = (Tool, &'static str)> {
    let known = |tool: &Tool| *tool != Tool::Wrk2;
    let tools = Tool::ALL.into_iter().filter(known);
    tools.map(|tool| (tool, reader(tool).first))
}

/// Whether a reading holds what its tool prints as the result.
fn has_result(reading: &ToolReading) -> bool {
    match reading.tool {
        Tool::Time => reading.duration_s.is_some(),
        _ => reading.requests.is_some() || reading.requests_per_s.is_some(),
    }
}

fn read_block(block: &Block, lines: &[Line], figures: &mut Figures) -> Vec<ToolReading> {
    let known = reader(block.tool);
    let mut readings = match (&block.json, &known.document) {
        (Some(json), Some(document)) => (document.read)(json).into_iter().collect(),
        _ => {
            let own: Vec<&Line> = block.own.iter().map(|&at| &lines[at]).collect();
            (known.read)(&own, figures)
        }
    };
    for reading in &mut readings {
        // A list of operations has told the lines of each itself.
        if reading.lines == (0, 0) {
            reading.lines = (lines[block.first].number, lines[block.last].number);
        }
    }
    readings
}

/// Gives each reading its command, and what follows from that.
fn complete(readings: &mut [ToolReading], commands: &[Placed], lines: &[Line]) {
    // httperf's own first line is part of its output.
    let is_above = |placed: &&Placed| !is_within(readings, lines[placed.at].number);
    let commands: Vec<&Placed> = commands.iter().filter(is_above).collect();
    let mut chosen: Vec<Option<usize>> = Vec::with_capacity(readings.len());
    for at in 0..readings.len() {
        let before = at.checked_sub(1).map(|before| &readings[before]);
        let previous = before.map(|before| (before, chosen[at - 1]));
        let choice = choose(&readings[at], previous, &commands, lines);
        if let Some(placed) = choice.and_then(|choice| commands.get(choice)) {
            placed.command.complete(&mut readings[at]);
        }
        settle(&mut readings[at]);
        chosen.push(choice);
    }
}

/// Whether a line belongs to one of the readings, which are in the order of their lines.
fn is_within(readings: &[ToolReading], number: usize) -> bool {
    let begun = readings.partition_point(|reading| reading.lines.0 <= number);
    let last = begun.checked_sub(1).map(|last| &readings[last]);
    last.is_some_and(|reading| number <= reading.lines.1)
}

/// The index of the command that a reading's run was started with.
fn choose(
    reading: &ToolReading,
    previous: Option<(&ToolReading, Option<usize>)>,
    commands: &[&Placed],
    lines: &[Line],
) -> Option<usize> {
    let number = |placed: &Placed| lines[placed.at].number;
    if let Some((before, Some(choice))) = previous
        && goes_on(before, reading, lines)
        && commands
            .get(choice)
            .is_some_and(|c| c.command.allows(reading))
    {
        return Some(choice);
    }
    let above = commands.partition_point(|placed| number(placed) < reading.lines.0);
    let candidates = commands[..above]
        .iter()
        .enumerate()
        .rev()
        .take(COMMANDS)
        .filter(|(_, placed)| placed.command.is_of(reading.tool));
    for (nth, (index, placed)) in candidates.enumerate() {
        // Nearest of all, with no other output between.
        let ends = previous.map_or(0, |(before, _)| before.lines.1);
        let near =
            nth == 0 && number(placed) > ends && number(placed) + COMMAND_LINES >= reading.lines.0;
        let fits = placed.command.confirmed_by(reading) || (near && placed.command.allows(reading));
        if fits {
            return Some(index);
        }
    }
    None
}

/// Whether a reading is the next operation of the same run of redis-benchmark.
fn goes_on(before: &ToolReading, reading: &ToolReading, lines: &[Line]) -> bool {
    let both = before.tool == Tool::RedisBenchmark && reading.tool == Tool::RedisBenchmark;
    let first = lines.partition_point(|line| line.number <= before.lines.1);
    let last = lines.partition_point(|line| line.number < reading.lines.0);
    both && lines
        .get(first..last)
        .unwrap_or_default()
        .iter()
        .all(|line| line.text.is_empty())
}

/// The line in which a tool says that it ended without a result.
fn gave_up(tool: Tool, lines: &[Line]) -> Option<ReadError> {
    let beginnings = reader(tool).gives_up;
    lines.iter().find_map(|line| {
        if tool == Tool::Httperf && scan::mark(tool, std::slice::from_ref(line), 0).is_some() {
            return None;
        }
        // ab's progress stands before it on the same line.
        let at = beginnings
            .iter()
            .filter_map(|beginning| line.text.find(beginning))
            .min()?;
        Some(ReadError::GaveUp {
            tool,
            line: line.number,
            said: line.text[at..].to_owned(),
        })
    })
}

/// What is wrong with a text that begins like a JSON document.
fn no_document(tool: Tool, text: &str) -> Option<ReadError> {
    if !matches!(tool, Tool::Oha | Tool::K6) || !text.trim_start().starts_with('{') {
        return None;
    }
    let (line, reason) = match serde_json::from_str::<serde_json::Value>(text) {
        Err(error) => (error.line(), error.to_string()),
        Ok(_) if tool == Tool::Oha => (1, "found no `summary.requestsPerSec`".to_owned()),
        Ok(_) => (1, "found no `metrics.http_reqs`".to_owned()),
    };
    Some(ReadError::Json { tool, line, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_in_urls_are_not_read() {
        let text = "$ wrk -t1 -c1 -d1s http://u:secret@127.0.0.1/\n\
            Running 1s test @ http://u:secret@127.0.0.1/\n\
            \x20 1 threads and 1 connections\n\
            \x20 Thread Stats   Avg      Stdev     Max   +/- Stdev\n\
            \x20   Latency     1.00ms  100.00us   2.00ms   75.00%\n\
            \x20   Req/Sec     1.00k    10.00     1.10k    75.00%\n\
            \x20 1000 requests in 1.00s, 1.00MB read\n\
            Requests/sec:   1000.00\nTransfer/sec:      1.00MB\n";
        for readings in [read_all(text), read_output(Tool::Wrk, text).unwrap()] {
            assert_eq!(readings.len(), 1);
            let shown = format!("{readings:?}");
            assert!(
                shown.contains("********@127.0.0.1") && !shown.contains("secret"),
                "{shown}"
            );
        }
    }
}
