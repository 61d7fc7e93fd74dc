//! `weigh doctor`: what on this machine would spoil a measurement.

use ::doctor::{Examination, Finding, Level, examine};
use experiment::catalogue;

use crate::cli::{DoctorArgs, Format};
use crate::failure::Failure;
use crate::recipes::{own_program, recipes};
use crate::terminal::output::{print_json, print_text};

/// Columns of the terminal that explanations are broken at.
const WIDTH: usize = 80;

/// Checks what would spoil a measurement.
pub fn doctor(args: &DoctorArgs) -> Result<u8, Failure> {
    let recipes = recipes(&args.own)?;
    let experiment = match &args.experiment {
        None => None,
        Some(name) => {
            Some(catalogue::open_experiment(name, &[], false, &recipes).map_err(Failure::file)?)
        }
    };
    let found = examine(experiment.as_ref(), &recipes, &own_program()?);
    match args.format {
        Format::Json => print_json(&serde_json::to_value(&found).unwrap_or_default()),
        Format::Text => print_text(&text(&found)),
    }
    Ok(0)
}

/// An examination for a person to read: problems first, each with the command that fixes it on a
/// line of its own, then what is fine, then one sentence.
fn text(examination: &Examination) -> String {
    let (problems, fine): (Vec<&Finding>, Vec<&Finding>) = examination
        .findings
        .iter()
        .partition(|finding| finding.level > Level::Fine);
    let mut out = String::new();
    for finding in &problems {
        problem(finding, &mut out);
    }
    if !fine.is_empty() {
        let width = fine
            .iter()
            .map(|finding| finding.topic.words().len())
            .max()
            .unwrap_or(0);
        for finding in &fine {
            let topic = finding.topic.words();
            out.push_str(&format!(
                "fine     {topic:width$}  {}\n",
                plain(&finding.found)
            ));
        }
        out.push('\n');
    }
    out.push_str(&summary(examination));
    out
}

/// A finding in a line, for the start of a run.
pub fn line(finding: &Finding) -> String {
    let fix = match &finding.mend {
        Some(command) => format!("; fix it with: {}", plain(command)),
        None => String::new(),
    };
    format!(
        "{}: {}, wanted: {}{fix}",
        finding.topic.words(),
        plain(&finding.found),
        plain(&finding.wanted)
    )
}

fn problem(finding: &Finding, out: &mut String) {
    const INDENT: &str = "         ";
    out.push_str(&format!(
        "{:<7}  {}: {}\n",
        finding.level.word(),
        finding.topic.words(),
        plain(&finding.found)
    ));
    let wanted = format!("wanted: {}", plain(&finding.wanted));
    for paragraph in [wanted, plain(&finding.why)] {
        for line in broken(&paragraph, WIDTH - INDENT.len()) {
            out.push_str(&format!("{INDENT}{line}\n"));
        }
    }
    if let Some(command) = &finding.mend {
        // Indentation does no harm when it is pasted; a line break inside would.
        out.push_str(&format!("{INDENT}fix it with:\n    {}\n", plain(command)));
    }
    out.push('\n');
}

fn summary(examination: &Examination) -> String {
    let counts: Vec<String> = [Level::Blocker, Level::Warning, Level::Note]
        .into_iter()
        .map(|level| (level, examination.count(level)))
        .filter(|(_, count)| *count > 0)
        .map(|(level, count)| {
            let plural = if count == 1 { "" } else { "s" };
            format!("{count} {}{plural}", level.word())
        })
        .collect();
    let counts = if counts.is_empty() {
        String::new()
    } else {
        format!(" ({})", counts.join(", "))
    };
    let name = examination.experiment.as_deref().map(plain);
    let sentence = match (examination.worst, name) {
        (Level::Blocker, Some(name)) => format!("{name} cannot run here as it is"),
        (Level::Blocker, None) => "This machine cannot measure as it is".to_owned(),
        (Level::Warning, Some(name)) => {
            format!("{name} can run here, but the warnings would blur its result")
        }
        (Level::Warning, None) => {
            "This machine can measure, but the warnings would blur the result".to_owned()
        }
        (_, Some(name)) => format!("{name} can run here"),
        (_, None) => "This machine is fit to measure".to_owned(),
    };
    format!("{sentence}{counts}.\n")
}

/// Lines of at most `width` characters, broken at spaces; a longer word has a line of its own.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Text without anything that a terminal would act on: names of processes and servers are in it.
fn plain(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c == ' ' || c.is_ascii_graphic() {
                c
            } else {
                '?'
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::doctor::Topic;

    fn finding(topic: Topic, level: Level, found: &str, mend: Option<&str>) -> Finding {
        Finding {
            topic,
            level,
            found: found.into(),
            wanted: "at least 4096".into(),
            why: "Connections that find the accept queue full try again after 1 s, 3 s and 7 s, \
                  and that shows up as latency."
                .into(),
            mend: mend.map(str::to_owned),
            is_certain: false,
        }
    }

    #[test]
    fn problems_come_first_with_commands_on_lines_of_their_own() {
        let examination = Examination::of(
            Some("lighttpd-proxy".into()),
            vec![
                finding(Topic::Clock, Level::Fine, "tsc", None),
                finding(
                    Topic::AcceptQueue,
                    Level::Warning,
                    "net.core.somaxconn is 128",
                    Some("sudo sysctl -w net.core.somaxconn=4096"),
                ),
                finding(Topic::OpenFiles, Level::Fine, "unlimited", None),
                finding(Topic::Turbo, Level::Note, "on", None),
            ],
        );
        assert_eq!(text(&examination), include_str!("doctor/examination.txt"));
    }

    #[test]
    fn the_last_line_sums_up() {
        let last = |experiment: Option<&str>, levels: &[Level]| {
            let findings = levels
                .iter()
                .map(|level| finding(Topic::Cpus, *level, "x", None))
                .collect();
            let examination = Examination::of(experiment.map(str::to_owned), findings);
            text(&examination)
                .lines()
                .last()
                .unwrap_or_default()
                .to_owned()
        };
        assert_eq!(
            last(Some("x"), &[Level::Note, Level::Blocker, Level::Blocker]),
            "x cannot run here as it is (2 blockers, 1 note)."
        );
        assert_eq!(last(Some("x"), &[Level::Fine]), "x can run here.");
        assert_eq!(last(None, &[]), "This machine is fit to measure.");
        assert!(last(None, &[Level::Warning]).ends_with("blur the result (1 warning)."));
    }

    #[test]
    fn a_long_command_stays_on_one_line() {
        let command = format!("sudo apt-get install {}", "package ".repeat(30).trim());
        let finding = finding(Topic::Installed, Level::Blocker, "x", Some(&command));
        let shown = text(&Examination::of(None, vec![finding]));
        assert!(shown.lines().any(|line| line.trim() == command), "{shown}");
    }

    #[test]
    fn nothing_reaches_the_terminal_that_it_would_act_on() {
        let finding = finding(
            Topic::OtherWork,
            Level::Warning,
            "most of it \u{1b}[31m\u{e9}vil\n",
            None,
        );
        let shown = text(&Examination::of(None, vec![finding]));
        assert!(shown.is_ascii());
        assert!(shown.contains("most of it ?[31m?vil?"), "{shown}");
    }
}
