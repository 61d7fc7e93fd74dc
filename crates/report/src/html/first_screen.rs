//! The first screen: question, result, machine, caveats. It can be shared without the rest.

use readings::text::{counted, grouped, listed};
use readings::{Journal, RunHeader};
use verdict::Analysis;

use crate::html::picture::ranking::rankings;
use crate::html::picture::svg::{escaped, prose};
use crate::html::table::summary_table::tables;
use crate::{MachineFacts, RunFacts};
use readings::text::compact::{bytes, utc};
use verdict::words;

const CAVEATS_MAX: usize = 3;

/// Title, question, the ranking as a picture, what follows, the caveats, a table for each condition and
/// the machine.
pub(crate) fn first_screen(journal: &Journal, analysis: &Analysis, facts: &RunFacts) -> String {
    let header = &journal.header;
    let mut out = format!("<h1>{}</h1>\n", escaped(&header.title));
    if let Some(question) = facts.question.as_deref().map(str::trim)
        && !question.is_empty()
    {
        out.push_str(&format!(
            "<p class=\"question\">{}</p>\n",
            escaped(question)
        ));
    }
    out.push_str(&rankings(header, analysis));
    if let Some(text) = words::closing(analysis) {
        out.push_str(&format!("<p class=\"closing\">{}</p>\n", prose(&text)));
    }
    if analysis.all_comparisons().next().is_none() {
        for text in words::uncompared(analysis) {
            out.push_str(&format!("<p>{}</p>\n", prose(&text)));
        }
    }
    out.push_str(&caveats(analysis));
    out.push_str(&tables(analysis, header));
    out.push_str(&format!(
        "<p class=\"sub\">{}</p>\n",
        escaped(&measured_on(header, analysis, facts))
    ));
    format!("<section id=\"result\">\n{out}</section>\n")
}

/// When, on which machines, with which versions, and how often was measured.
pub fn measured_on(header: &RunHeader, analysis: &Analysis, facts: &RunFacts) -> String {
    let machines = match facts.machines.is_empty() {
        true => "on a machine that the run's folder does not describe".to_owned(),
        false => {
            let each: Vec<String> = facts.machines.iter().map(machine).collect();
            format!("on {}", listed(&each))
        }
    };
    let mut text = match header.started_unix_s {
        0 => format!("Measured {machines}"),
        from => format!("Measured {}, {machines}", utc(from)),
    };
    if let Some(cpus) = words::placement(&analysis.placements) {
        text.push_str(&format!("; {cpus}"));
    }
    let versions = facts.versions.iter();
    let versions = versions.map(|(name, version)| format!("{name} {version}"));
    let versions: Vec<String> = versions
        .chain([format!("weigh {}", header.weigh_version)])
        .collect();
    text.push_str(&format!(". {}.", versions.join(", ")));
    text.push_str(&format!(
        " {} of {} planned, {}, seed {}",
        grouped(u64::from(analysis.stage.blocks_done)),
        counted(header.blocks as usize, "block"),
        counted(analysis.trials_done, "trial"),
        header.seed
    ));
    let lost = [
        (analysis.trials_failed, "failed"),
        (analysis.invalid.len(), "invalid"),
    ];
    for (count, word) in lost.iter().filter(|(count, _)| *count > 0) {
        text.push_str(&format!(", {count} {word}"));
    }
    text + "."
}

/// `vm (AMD EPYC, 2 CPUs, 25.3GB, Linux 6.18)`.
fn machine(one: &MachineFacts) -> String {
    let parts = [
        one.cpu.clone(),
        one.cpus.map(|count| counted(count, "CPU")),
        one.memory_bytes.map(|size| bytes(size as f64)),
        one.kernel.as_ref().map(|kernel| format!("Linux {kernel}")),
        one.architecture.clone(),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match parts.is_empty() {
        true => one.name.clone(),
        false => format!("{} ({})", one.name, parts.join(", ")),
    }
}

/// What changes the answer, the gravest first, and what widens intervals.
pub fn caveats(analysis: &Analysis) -> String {
    let mut all = words::caveats(&analysis.warnings, &analysis.table);
    all.truncate(CAVEATS_MAX);
    all.extend(words::widening(&analysis.warnings));
    let items: String = all
        .iter()
        .map(|text| format!("<li>{}</li>\n", prose(text)))
        .collect();
    match items.is_empty() {
        true => items,
        false => format!("<ul class=\"caveats\">\n{items}</ul>\n"),
    }
}
