//! The gates of a run as JUnit XML, one test case each.
//!
//! The format follows the schemas of Jenkins and Surefire, which GitLab, GitHub actions and most CI
//! servers read.

use readings::RunHeader;
use readings::text::condition;
use verdict::{Analysis, GateOutcome, GateResult};

use crate::html::escaped;
use crate::study::gates::fails;
use verdict::words;

/// The gates as a test suite: a breached gate is a failure, one that could not be judged an error,
/// and an unsettled one is skipped, or a failure with `unsettled_fails`.
pub fn junit(header: &RunHeader, analysis: &Analysis, unsettled_fails: bool) -> String {
    let gates = &analysis.gates;
    let count = |is: &dyn Fn(&GateResult) -> bool| gates.iter().filter(|gate| is(gate)).count();
    let failures = count(&|gate| fails(gate, unsettled_fails));
    let errors = count(&|gate| gate.outcome == GateOutcome::NotJudged);
    let unsettled = count(&|gate| gate.outcome == GateOutcome::Unsettled);
    let skipped = if unsettled_fails { 0 } else { unsettled };
    let tests = gates.len();
    let cases: String = gates
        .iter()
        .map(|gate| case(header, gate, unsettled_fails))
        .collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"weigh\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\">\n\
         \x20 <testsuite name=\"{}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" \
         skipped=\"{skipped}\">\n{cases}  </testsuite>\n</testsuites>\n",
        escaped(&header.title)
    )
}

fn case(header: &RunHeader, gate: &GateResult, unsettled_fails: bool) -> String {
    let place = condition(&gate.condition);
    let place = match place.is_empty() {
        true => gate.subject.clone(),
        false => format!("{}, {place}", gate.subject),
    };
    let name = format!("{} ({place})", gate.name);
    let text = words::after_gate_outcome(gate);
    let told = |element: &str, kind: &str| {
        format!(
            "      <{element} message=\"{0}\" type=\"{kind}\">{0}</{element}>\n",
            escaped(&text)
        )
    };
    let inside = match gate.outcome {
        GateOutcome::Passed => format!("      <system-out>{}</system-out>\n", escaped(&text)),
        GateOutcome::Breached => told("failure", "breached"),
        GateOutcome::NotJudged => told("error", "not_judged"),
        GateOutcome::Unsettled if unsettled_fails => told("failure", "unsettled"),
        GateOutcome::Unsettled => format!(
            "      <skipped message=\"unsettled: {}\"/>\n",
            escaped(&text)
        ),
    };
    format!(
        "    <testcase classname=\"weigh.{}\" name=\"{}\" time=\"0\">\n{inside}    </testcase>\n",
        escaped(&header.experiment),
        escaped(&name)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::gates::tests::gated;
    use testing::Text as _;

    /// Whether every element is closed in its order, and each `<` and `&` is markup.
    fn check_well_formed(xml: &str) {
        let mut open: Vec<&str> = Vec::new();
        let (_, mut rest) = xml.split_once("?>\n").unwrap();
        while let Some(at) = rest.find('<') {
            let (text, behind) = rest.split_at(at);
            for part in text.split('&').skip(1) {
                let entity = part.split_once(';').unwrap().0;
                assert!(["amp", "lt", "gt", "quot", "#39"].contains(&entity));
            }
            let end = behind.find('>').unwrap();
            let tag = &behind[1..end];
            let name = tag.split([' ', '/']).find(|word| !word.is_empty()).unwrap();
            match (tag.starts_with('/'), tag.ends_with('/')) {
                (true, _) => assert_eq!(open.pop(), Some(name)),
                (false, false) => open.push(name),
                (false, true) => {}
            }
            assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
            rest = &behind[end + 1..];
        }
        assert!(open.is_empty(), "{open:?}");
    }

    #[test]
    fn each_gate_is_a_test_case_with_its_outcome() {
        let (journal, analysis) = gated();
        let xml = junit(&journal.header, &analysis, false);
        check_well_formed(&xml);
        xml.has_all([
            "<testsuites name=\"weigh\" tests=\"5\" failures=\"1\" errors=\"1\">",
            "<testsuite name=\"What a &lt;balancer&gt; costs\" tests=\"5\" failures=\"1\" errors=\"1\" skipped=\"1\">",
            "<testcase classname=\"weigh.proxy-cost\" name=\"speed (balance, connections=96)\" time=\"0\">\n      <failure message=\"speed (balance: throughput &gt; -3%): balance -31.0% [",
            "<error message=\"lighttpd: throughput &gt; -3%",
            "<skipped message=\"unsettled: tie | &lt;b&gt;",
            "<system-out>balance: p50 &lt; 10s",
        ]);
        let strict = junit(&journal.header, &analysis, true);
        check_well_formed(&strict);
        strict.has("failures=\"2\" errors=\"1\" skipped=\"0\"");
        strict.has("type=\"unsettled\"");
    }
}
