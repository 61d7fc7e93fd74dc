//! The first screen: question, result, machine, caveats. It can be shared without the rest.

use readings::Journal;
use readings::text::{counted, grouped, listed};
use verdict::{Analysis, Warning};

use crate::html::picture::svg::{escaped, prose};
use crate::html::table::summary_table::tables;
use crate::section::run::capitalised;
use crate::{MachineFacts, RunFacts};
use readings::text::compact::{bytes, utc};
use verdict::words;

/// The most caveats on the first screen.
const CAVEATS_MAX: usize = 3;

/// Title, question, a table for each condition, the machine, the caveats and what follows.
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
    out.push_str(&tables(analysis, header));
    if analysis.all_comparisons().next().is_none() {
        for text in words::uncompared(analysis) {
            out.push_str(&format!("<p>{}</p>\n", prose(&text)));
        }
    }
    out.push_str(&format!(
        "<p class=\"sub\">{}</p>\n",
        escaped(&measured_on(journal, analysis, facts))
    ));
    out.push_str(&caveats(analysis));
    if let Some(text) = words::closing(analysis) {
        out.push_str(&format!("<p class=\"closing\">{}</p>\n", prose(&text)));
    }
    format!("<section id=\"result\">\n{out}</section>\n")
}

/// When, on which machines, with which versions, and how often was measured.
fn measured_on(journal: &Journal, analysis: &Analysis, facts: &RunFacts) -> String {
    let header = &journal.header;
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

/// `vm (AMD EPYC, 2 CPUs, 23.5GB, Linux 6.18)`.
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

/// The warnings that change how to read the result, the most serious first.
fn caveats(analysis: &Analysis) -> String {
    let mut sorted: Vec<&Warning> = analysis.warnings.iter().collect();
    sorted.sort_by_key(|warning| gravity(warning));
    let shown = sorted.iter().take(CAVEATS_MAX);
    let shown: String = shown
        .map(|warning| {
            format!(
                "<li>{}</li>\n",
                prose(&capitalised(&words::warning(warning)))
            )
        })
        .collect();
    if shown.is_empty() {
        return String::new();
    }
    let rest = sorted.len().saturating_sub(CAVEATS_MAX);
    let more = match rest {
        0 => String::new(),
        rest => format!(
            "<li><a href=\"#warnings\">{}</a></li>\n",
            counted(rest, "more warning")
        ),
    };
    format!("<ul class=\"caveats\">\n{shown}{more}</ul>\n")
}

/// The rank of a warning among the caveats.
fn gravity(warning: &Warning) -> u8 {
    match warning {
        Warning::BiasedBaseline { .. } => 0,
        Warning::RateNotKept { .. } => 1,
        Warning::OtherPrograms { .. } => 2,
        Warning::TlsDiffers { .. } | Warning::CongestionDiffers { .. } => 3,
        Warning::Settings { .. } => 4,
        Warning::AtLeast { .. } => 5,
        Warning::Errors { .. } => 6,
        Warning::Unsettled { .. } | Warning::SliceLength { .. } => 7,
        Warning::Recorded { .. } => 8,
        Warning::DependentBlocks { .. } => 9,
        Warning::ClientPauses { .. } => 10,
        Warning::LostSyns { .. } | Warning::IdleConnections { .. } => 11,
        Warning::WideFloor { .. } => 12,
        Warning::UncountedCpu(_) | Warning::UncountedUpstreams { .. } => 13,
        Warning::Unresolved { .. } => 14,
        Warning::SteadyStateUnchecked { .. } => 15,
    }
}
