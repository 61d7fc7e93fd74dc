use crate::text::lines::Line;
use crate::text::units;
use crate::{ProcessLine, Tool};

/// So many columns has a row of `top`.
const TOP_COLUMNS: usize = 12;
/// Longer lines are prose.
const WORDS: usize = 16;

/// The lines that list a load generator, in the order of the text.
pub(super) fn listed(lines: &[Line]) -> Vec<ProcessLine> {
    let listed = |line: &Line| {
        let tool = in_list(&line.words()).or_else(|| in_top(&line.words()))?;
        Some(ProcessLine {
            tool,
            line: line.number,
            text: line.text.chars().take(120).collect(),
        })
    };
    lines.iter().filter_map(listed).collect()
}

fn tool_of(word: &str) -> Option<Tool> {
    let tool = Tool::ALL.into_iter().find(|tool| tool.name() == word);
    tool.filter(|tool| *tool != Tool::Time)
}

/// `CPU: httperf 57% server 40%`: a name and a share stand side by side, and CPU is spoken of.
fn in_list(words: &[&str]) -> Option<Tool> {
    let cpu = |word: &&str| word.trim_end_matches(':').eq_ignore_ascii_case("cpu");
    if words.len() > WORDS || !words.iter().any(cpu) {
        return None;
    }
    let is_share = |at: Option<usize>| {
        let word = at.and_then(|at| words.get(at));
        word.is_some_and(|word| units::percent(word.trim_end_matches(',')).is_some())
    };
    (0..words.len())
        .filter(|at| is_share(Some(at + 1)) || is_share(at.checked_sub(1)))
        .find_map(|at| tool_of(words[at]))
}

/// A process of `top`: number, user, priority, niceness, three sizes, state, CPU, memory, time,
/// command.
fn in_top(words: &[&str]) -> Option<Tool> {
    let [pid, .., state, cpu, memory, time, command] = words else {
        return None;
    };
    let is_row = words.len() == TOP_COLUMNS
        && units::count(pid).is_some()
        && state.len() == 1
        && [cpu, memory].iter().all(|n| units::number(n).is_some())
        && time.contains(':');
    tool_of(command).filter(|_| is_row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::lines::lines;

    #[test]
    fn a_load_generator_among_the_processes_is_found() {
        let text = "The tests\n\nCPU: 90% httperf 61% some-server 33% interpreter\n  4711 me        20   0   12.3m   4.5m   1.0m R  57.0   0.1   0:12.34 wrk\n";
        let found = listed(&lines(text));
        let seen: Vec<(Tool, usize)> = found.iter().map(|p| (p.tool, p.line)).collect();
        assert_eq!(seen, [(Tool::Httperf, 3), (Tool::Wrk, 4)]);
        assert_eq!(
            found[0].text,
            "CPU: 90% httperf 61% some-server 33% interpreter"
        );
    }

    #[test]
    fn prose_and_servers_are_none() {
        for text in [
            "hey, the CPU was at 50%",
            "CPU: nginx 57% redis-server 40%",
            "wrk used 57% of it",
            "4711 me 20 0 1 1 1 R 57.0 0.1 0:12.34 nginx",
            "the CPU time of 50% of all requests",
        ] {
            assert_eq!(listed(&lines(text)), [], "{text}");
        }
    }
}
