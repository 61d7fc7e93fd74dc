//! `weigh read`.

use std::fs::File;
use std::io::{IsTerminal, Read as _};
use std::path::{Path, PathBuf};

use report::Read;
use tools::{ToolReading, looked_for, read_text};
use verdict::diagnose;

use crate::cli::{ReadArgs, ReadFormat};
use crate::failure::Failure;
use crate::terminal::output::{print_json, print_text, width};

const INPUT: &str = "standard input";
/// More than all tools print together.
const BYTES_MAX: u64 = 64 << 20;

/// Reads what other tools printed and says what follows from it.
pub fn read(args: &ReadArgs) -> Result<u8, Failure> {
    let files = match args.files.as_slice() {
        [] if std::io::stdin().is_terminal() => {
            return Err(Failure::words(
                "expected files to read, or a text on standard input, such as \
                 `wrk ... | weigh read`",
            ));
        }
        [] => vec![PathBuf::from("-")],
        files => files.to_vec(),
    };
    let mut readings: Vec<ToolReading> = Vec::new();
    let mut problems = Vec::new();
    let mut names = Vec::new();
    let mut processes = Vec::new();
    let mut of_tables = Vec::new();
    for file in &files {
        let name = match is_input(file) {
            true => INPUT.to_owned(),
            false => file.display().to_string(),
        };
        let found = read_text(&text(file, &name)?);
        let source = (files.len() > 1).then(|| name.clone());
        readings.extend(found.readings.into_iter().map(|reading| ToolReading {
            source: source.clone(),
            ..reading
        }));
        problems.extend(found.problems.iter().map(|problem| match &source {
            Some(name) => format!("{name}, {problem}"),
            None => problem.to_string(),
        }));
        for table in &found.tables {
            of_tables.extend(diagnose::table_compared(table, source.as_deref()));
        }
        let of_source = |process| (process, source.clone());
        processes.extend(found.processes.into_iter().map(of_source));
        names.push(name);
    }
    if readings.is_empty() && of_tables.is_empty() {
        return Err(Failure::words(nothing(&names, &problems)));
    }
    let mut findings = diagnose::diagnose(&readings);
    findings.extend(
        processes.iter().map(|(process, source)| {
            diagnose::process_listed(&readings, process, source.as_deref())
        }),
    );
    findings.extend(of_tables);
    let read = Read {
        readings: &readings,
        findings: &findings,
        problems: &problems,
    };
    match args.format {
        ReadFormat::Text => print_text(&report::read_terminal(&read, width())),
        ReadFormat::Md => print_text(&report::read_markdown(&read)),
        ReadFormat::Json => print_json(&report::read_json(&read)),
    }
    Ok(0)
}

fn is_input(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// A file's text. Pages are not always UTF-8; what is not becomes a replacement character.
fn text(file: &Path, name: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    // One byte more, so that a longer text is noticed.
    let limit = BYTES_MAX + 1;
    let read = match is_input(file) {
        true => std::io::stdin().lock().take(limit).read_to_end(&mut bytes),
        false => File::open(file).and_then(|file| file.take(limit).read_to_end(&mut bytes)),
    };
    read.map_err(|e| Failure::words(format!("{name}: {e}")))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(Failure::words(format!(
            "{name}: expected at most {} MiB of text; cut out what the tools printed",
            BYTES_MAX >> 20
        )));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What was looked for in vain, and what was there instead.
fn nothing(names: &[String], problems: &[String]) -> String {
    let names = names.join(", ");
    let mut text;
    if problems.is_empty() {
        text = format!("{names}: no output of a known tool; looked for");
        for (tool, line) in looked_for() {
            text.push_str(&format!("\n  {tool}: {line}"));
        }
    } else {
        text = format!("{names}: no output of a known tool with a figure that can be read");
        for problem in problems {
            text.push_str(&format!("\n  {problem}"));
        }
    }
    text
}
