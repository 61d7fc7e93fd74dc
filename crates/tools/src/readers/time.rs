//! What a shell's `time` prints of a command that it ran: how long it took, and the CPU time of
//! the command and its children.
//!
//! - bash and ksh: `real 0m8.146s`, `user`, `sys`, a line each; with `-p` in plain seconds.
//! - csh and tcsh: `0.130u 0.253s 0:08.14 4.6% ...`.
//! - zsh: `COMMAND  0.13s user 0.25s system 4% cpu 8.146 total`.
//! - GNU time: `0.13user 0.25system 0:08.14elapsed 4%CPU ...`; with `-v` a list.
//! - BSD and mksh: `8.14 real 0.13 user 0.25 sys` in one line.
//!
//! Clock time is `MINUTESmSECONDSs`, `H:MM:SS`, `M:SS.ss` or seconds. A decimal comma, as bash
//! prints it under some locales, is a point. Nothing is said of requests: what a crawl fetched is
//! not known.

use super::Reader;
use crate::mark::Mark;
use crate::reading::Figures;
use crate::text::lines::Line;
use crate::text::units;
use crate::{Tool, ToolReading};

pub(super) static READER: Reader = Reader {
    first: "`real 0m1.234s`, `0.1u 0.2s 0:01.23 24%` or `0.1user 0.2system 0:01.23elapsed`",
    result: "`real 0m1.234s`",
    gives_up: &["Command terminated by signal"],
    mark: |lines, at| mark(&lines[at]),
    read,
    document: None,
};

const COMMAND: &str = "Command being timed:";
const USER: &str = "User time (seconds):";
const SYSTEM: &str = "System time (seconds):";
const ELAPSED: &str = "Elapsed (wall clock) time";

fn mark(line: &Line) -> Option<Mark> {
    let text = line.text.as_str();
    match labelled(line) {
        Some(("real", _)) => return Mark::opens(1),
        Some(("user", _)) => return Mark::once(2),
        Some(("sys", _)) => return Mark::once(3),
        _ => {}
    }
    if in_one_line(line).is_some() || text.starts_with(COMMAND) {
        Mark::opens(1)
    } else if text.starts_with(USER) {
        Mark::opens(2)
    } else if text.starts_with(SYSTEM) {
        Mark::once(3)
    } else if text.starts_with(ELAPSED) {
        Mark::once(4)
    } else {
        None
    }
}

/// `real` and what stands beside it, if that begins like a figure.
fn labelled(line: &Line) -> Option<(&str, &str)> {
    match line.text.split_whitespace().collect::<Vec<_>>()[..] {
        [label @ ("real" | "user" | "sys"), value]
            if value.starts_with(|c: char| c.is_ascii_digit()) =>
        {
            Some((label, value))
        }
        _ => None,
    }
}

/// Seconds of a clock or of CPU time.
fn seconds(text: &str) -> Option<f64> {
    // What a page or a macro has put behind it.
    let text = text.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    let text = text.replacen(',', ".", 1);
    if !text.contains(':') {
        return units::duration_s(&text).filter(|s| *s >= 0.0);
    }
    let mut sum = 0.0;
    for part in text.split(':') {
        let part = units::number(part).filter(|n| *n >= 0.0)?;
        sum = sum * 60.0 + part;
    }
    Some(sum)
}

/// Clock, user and system time.
type Times = (f64, f64, f64);

/// The times of a form that has them in one line.
fn in_one_line(line: &Line) -> Option<Times> {
    let words = line.words();
    named_after(&words)
        .or_else(|| spaced(&words))
        .or_else(|| zsh(&words))
}

/// `0.13user 0.25system 0:08.14elapsed`, and csh's `0.130u 0.253s 0:08.14 4.6%`.
fn named_after(words: &[&str]) -> Option<Times> {
    let [user, system, clock, share, ..] = words else {
        return None;
    };
    if let Some(clock) = clock.strip_suffix("elapsed") {
        let user = units::number(user.strip_suffix("user")?)?;
        let system = units::number(system.strip_suffix("system")?)?;
        return Some((seconds(clock)?, user, system));
    }
    let user = units::number(user.strip_suffix('u')?)?;
    let system = units::number(system.strip_suffix('s')?)?;
    let is_share = share.ends_with('%') && clock.contains(':');
    Some((seconds(clock).filter(|_| is_share)?, user, system))
}

/// `8.14 real 0.13 user 0.25 sys`.
fn spaced(words: &[&str]) -> Option<Times> {
    match words {
        [clock, "real", user, "user", system, "sys" | "system"] => {
            Some((seconds(clock)?, seconds(user)?, seconds(system)?))
        }
        _ => None,
    }
}

/// `wget http://a/  0.13s user 0.25s system 4% cpu 8.146 total`; the command stands before it.
fn zsh(words: &[&str]) -> Option<Times> {
    match words {
        [
            ..,
            user,
            "user",
            system,
            "system",
            share,
            "cpu",
            clock,
            "total",
        ] if share.ends_with('%') => Some((seconds(clock)?, seconds(user)?, seconds(system)?)),
        _ => None,
    }
}

/// How many words of zsh's line come after the command.
const ZSH_WORDS: usize = 8;

fn read(lines: &[&Line], figures: &mut Figures) -> Vec<ToolReading> {
    let mut reading = ToolReading::new(Tool::Time);
    let (mut user, mut system) = (None, None);
    for &line in lines {
        let text = line.text.as_str();
        if let Some((clock, in_user, in_system)) = in_one_line(line) {
            reading.duration_s = Some(clock);
            (user, system) = (Some(in_user), Some(in_system));
            let words = line.words();
            if zsh(&words).is_some() && words.len() > ZSH_WORDS {
                set_command(&mut reading, &words[..words.len() - ZSH_WORDS].join(" "));
            }
        } else if let Some((label, value)) = labelled(line) {
            let value = figures.want(line, "a time such as `0m1.234s`", seconds(value));
            match label {
                "real" => reading.duration_s = value,
                "user" => user = value,
                _ => system = value,
            }
        } else if let Some(command) = line.after(COMMAND) {
            set_command(&mut reading, command.trim_matches('"'));
        } else {
            let last = text.rsplit(' ').next().unwrap_or("");
            let value = figures.want(line, "a time at the line's end", seconds(last));
            match text {
                _ if text.starts_with(USER) => user = value,
                _ if text.starts_with(SYSTEM) => system = value,
                _ => reading.duration_s = value,
            }
        }
    }
    reading.client_cpu_s = user.zip(system).map(|(user, system)| user + system);
    vec![reading]
}

fn set_command(reading: &mut ToolReading, command: &str) {
    let is_url = |word: &&str| word.contains("://");
    reading.url = command.split_whitespace().find(is_url).map(str::to_owned);
    reading.command = Some(command.to_owned()).filter(|c| !c.is_empty());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_all;

    fn only(text: &str) -> ToolReading {
        let mut readings = read_all(text);
        assert_eq!(readings.len(), 1, "{text}: {readings:?}");
        readings.remove(0)
    }

    #[test]
    fn each_form_says_the_same() {
        for text in [
            "real\t0m8.140s\nuser\t0m0.130s\nsys\t0m0.250s\n",
            "real 8.14\nuser 0.13\nsys 0.25\n",
            "real    0m8,140s\nuser    0m0,130s\nsys     0m0,250s\n",
            "0.130u 0.250s 0:08.14 4.6%\t0+0k 0+0io 0pf+0w\n",
            "0.13user 0.25system 0:08.14elapsed 4%CPU (0avgtext+0avgdata 3456maxresident)k\n0inputs+8outputs (0major+148minor)pagefaults 0swaps\n",
            "wget -q -r http://a/  0.13s user 0.25s system 4% cpu 8.140 total\n",
            "        8.14 real         0.13 user         0.25 sys\n",
            "    0m08.14s real     0m00.13s user     0m00.25s system\n",
            "\tCommand being timed: \"wget -r http://a/\"\n\tUser time (seconds): 0.13\n\tSystem time (seconds): 0.25\n\tPercent of CPU this job got: 4%\n\tElapsed (wall clock) time (h:mm:ss or m:ss): 0:08.14\n\tMaximum resident set size (kbytes): 3456\n",
        ] {
            let reading = only(text);
            assert_eq!(reading.tool, Tool::Time, "{text}");
            assert_eq!(reading.duration_s, Some(8.14), "{text}");
            let cpu_s = reading.client_cpu_s.unwrap();
            assert!((cpu_s - 0.38).abs() < 1e-9, "{text}: {cpu_s}");
        }
    }

    #[test]
    fn hours_count_and_the_command_is_kept() {
        let reading = only("curl http://a/b  1,5s user 0.5s system 0% cpu 1:02:03.5 total\n");
        assert_eq!(reading.duration_s, Some(3723.5));
        assert_eq!(reading.command.as_deref(), Some("curl http://a/b"));
        assert_eq!(reading.url.as_deref(), Some("http://a/b"));
        let reading =
            only("$ time wget -q -r http://a/\n\nreal\t61m1.500s\nuser\t0m1.0s\nsys\t0m1.0s\n");
        assert_eq!(reading.duration_s, Some(3661.5));
        assert_eq!(reading.url.as_deref(), Some("http://a/"));
    }

    #[test]
    fn a_page_that_numbers_its_lines_is_read_without_the_numbers() {
        let text = "      1 Without it:\n      2 \n      3 verb(\\\n      4 real\t0m8.146s\n      5 user\t0m0.130s\n      6 sys\t0m0.253s)\n";
        let reading = only(text);
        assert_eq!((reading.lines, reading.duration_s), ((4, 6), Some(8.146)));
    }

    #[test]
    fn words_of_prose_are_no_times() {
        for text in [
            "real life took 8 s\n",
            "user 5\nsys 6\n",
            "1.5u is a unit, and 2.5s another 3 times\n",
            "time is money\n",
        ] {
            assert_eq!(read_all(text), [], "{text}");
        }
    }

    #[test]
    fn the_time_of_a_load_generator_is_its_cpu_time() {
        let text = "$ time wrk -t2 -c10 -d5s http://a/\nRunning 5s test @ http://a/\n  2 threads and 10 connections\n  500 requests in 5.01s, 1.00MB read\nRequests/sec:     99.80\n\nreal\t0m5.020s\nuser\t0m4.500s\nsys\t0m3.500s\n";
        let reading = only(text);
        assert_eq!(reading.tool, Tool::Wrk);
        assert_eq!(reading.client_cpu_s, Some(8.0));
        // One that took another time is of something else.
        let other = text.replace("0m5.020s", "0m50.020s");
        let tools: Vec<Tool> = read_all(&other).iter().map(|r| r.tool).collect();
        assert_eq!(tools, [Tool::Wrk, Tool::Time]);
    }
}
