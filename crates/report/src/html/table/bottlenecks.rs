//! The bottleneck of each subject, with the changes that showed it.

use readings::Change;
use readings::text::{change, counted};
use verdict::{Analysis, Effect, Finding};

use crate::html::picture::svg::{escaped, prose};
use crate::html::table::{folded, table};
use crate::section::columns::Columns;
use verdict::words;

/// Each finding in a sentence, and its evidence.
pub(crate) fn bottlenecks(analysis: &Analysis) -> String {
    if analysis.bottlenecks.is_empty() {
        return String::new();
    }
    let sentences = analysis
        .bottlenecks
        .iter()
        .map(|finding| format!("<li>{}</li>\n", prose(&words::finding(finding))));
    let mut out = format!("<ul>\n{}</ul>\n", sentences.collect::<String>());
    let mut told: Vec<&Finding> = Vec::new();
    for finding in &analysis.bottlenecks {
        let same = |one: &&Finding| {
            (&one.subject, &one.condition) == (&finding.subject, &finding.condition)
        };
        if !finding.effects.is_empty() && !told.iter().any(same) {
            told.push(finding);
        }
    }
    let evidence: String = told.iter().map(|finding| effects(finding)).collect();
    out.push_str(&folded("What each change did to the throughput", &evidence));
    out
}

fn effects(finding: &Finding) -> String {
    let rows = finding.effects.iter().map(|effect| {
        // Two standard errors on each side.
        let spread = (2.0 * effect.log_error).exp();
        let ends = (effect.ratio / spread, effect.ratio * spread);
        vec![
            words(effect).to_owned(),
            change(effect.ratio, Some(ends)),
            counted(effect.loads, "load"),
        ]
    });
    let place = readings::text::condition(&finding.condition);
    let title = match place.is_empty() {
        true => finding.subject.clone(),
        false => format!("{} at {place}", finding.subject),
    };
    let columns = Columns {
        head: ["change", "throughput (two standard errors)", "measured in"]
            .map(str::to_owned)
            .to_vec(),
        numeric: vec![false, true, true],
        rows: rows.collect(),
    };
    format!("<h3>{}</h3>\n{}", escaped(&title), table(&columns, &title))
}

fn words(effect: &Effect) -> &'static str {
    match effect.change {
        Change::None => "no change",
        Change::ClientThread => "one more client thread",
        Change::ClientApart => "a CPU of its own for the client",
        Change::TwiceTheConnections => "twice the connections",
        Change::HalfTheConnections => "half the connections",
        Change::HalfTheServerCpu => "half of the servers' CPU time",
        Change::TwiceTheLinkRate => "twice the rate of the links",
        Change::MorePorts => "more ports",
    }
}
