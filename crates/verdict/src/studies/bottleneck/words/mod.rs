//! Bottlenecks, in sentences.

pub(crate) mod evidence;

use crate::{Bottleneck, Finding, Standing};
use readings::text::rate;

use crate::studies::bottleneck::words::evidence::evidence;
use readings::at_condition as at;

/// What limits a subject.
pub fn finding(finding: &Finding) -> String {
    let at = at(&finding.condition);
    let who = &finding.subject;
    let what = match &finding.server {
        Some(server) if finding.bottleneck == Bottleneck::Server => {
            format!("the server `{server}`")
        }
        _ => words(finding.bottleneck).to_owned(),
    };
    let found = match finding.standing {
        Standing::Confirmed => format!("{who}{at} is limited by {what}, confirmed"),
        Standing::Sensitive => match &finding.server {
            Some(server) => format!(
                "{who}{at} is sensitive to the CPU time of `{server}`, which need not be its limit"
            ),
            None => format!("{who}{at} is sensitive to {what}, which need not be its limit"),
        },
        Standing::Suspected => format!("{who}{at} is limited by {what}, suspected"),
        Standing::Unknown => format!("what limits {who}{at} is unknown"),
    };
    let at_least = match finding.at_least {
        true => format!(
            "; its throughput is at least the measured one ({} requests/s here)",
            rate(finding.unchanged_per_s)
        ),
        false => String::new(),
    };
    let not_tested = match finding.not_tested.is_empty() {
        true => String::new(),
        false => format!("; not tested here: {}", finding.not_tested.join(", ")),
    };
    let why = evidence(&finding.evidence, &finding.effects);
    format!("{found}: {why}{at_least}{not_tested}.")
}

fn words(bottleneck: Bottleneck) -> &'static str {
    match bottleneck {
        Bottleneck::Client => "the client",
        Bottleneck::Server => "the server",
        Bottleneck::SharedCpu => "a CPU that its servers share",
        Bottleneck::Concurrency => "concurrency",
        Bottleneck::AcceptQueue => "the accept queue",
        Bottleneck::Ports => "ports",
        Bottleneck::UpstreamConnections => "upstream connections",
        Bottleneck::Network => "the network",
        Bottleneck::OtherPrograms => "other programs on its CPUs",
        Bottleneck::Unknown => "something unknown",
    }
}
