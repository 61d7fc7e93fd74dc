//! What was found on throughput over concurrency.

use crate::usl::{ClosedLoop, Estimate, LackOfFit, Level, NoFit, Scaling, Usl};
use readings::text::{counted, number, percent, rate};

/// What was found.
pub fn scaling(of: &Scaling) -> Vec<String> {
    let mut said = Vec::new();
    let known = |l: &&Level| l.requests_per_s.is_some();
    let best = of.levels.iter().filter(known).max_by(|a, b| {
        let value = |l: &Level| l.requests_per_s.map_or(0.0, |s| s.middle);
        value(a).total_cmp(&value(b))
    });
    if let Some((best, spread)) = best.and_then(|l| Some((l, l.requests_per_s?))) {
        said.push(format!(
            "The most was {}{} requests/s, at {}.",
            if best.at_least { "at least " } else { "" },
            rate(spread.middle),
            counted(best.connections as usize, "connection")
        ));
    }
    let limited: Vec<String> = of
        .levels
        .iter()
        .filter(|l| l.at_least)
        .map(|l| l.connections.to_string())
        .collect();
    if !limited.is_empty() {
        said.push(format!(
            "At {} connections the client was the limit: their throughput is a lower bound, and \
             is left out of the fit.",
            limited.join(", ")
        ));
    }
    match (&of.fit, &of.no_fit) {
        (Some(fit), _) => said.extend(of_fit(fit, of.lack_of_fit.as_ref())),
        (None, Some(why)) => match (&of.closed_loop, &of.closed_loop_lack_of_fit) {
            (Some(bounds), _) => {
                said.push(of_bounds(bounds));
                said.push(format!("No other law was fitted: {}.", no_fit(why)));
            }
            (None, Some(test)) => said.push(format!(
                "No law was fitted: {}, and so does that of a closed loop with a fixed \
                 answer time ({}). Between the measured points nothing is claimed.",
                no_fit(why),
                words_of(test)
            )),
            (None, None) => said.push(format!("No law was fitted: {}.", no_fit(why))),
        },
        (None, None) => {}
    }
    said
}

/// Why the universal scalability law was not fitted.
pub fn no_fit(why: &NoFit) -> String {
    match why {
        NoFit::Error(e) => e.to_string(),
        NoFit::Misses(test) => format!(
            "the universal scalability law misses the measured points by {}, more than their noise \
             explains ({})",
            percent(test.deviation * 100.0, 1, false),
            words_of(test)
        ),
    }
}

/// `F = 12.3 with 4 and 24 degrees of freedom, p = 0.001`.
fn words_of(test: &LackOfFit) -> String {
    let f = test.f.map_or("without noise".to_owned(), |f| {
        format!(
            "F = {} with {} and {} degrees of freedom",
            number(f, 1, false),
            test.degrees.0,
            test.degrees.1
        )
    });
    match test.p {
        p if p < 0.001 => format!("{f}, p < 0.001"),
        p => format!("{f}, p = {}", number(p, 3, false)),
    }
}

fn interval(e: &Estimate, write: &dyn Fn(f64) -> String) -> String {
    let high = e.high.map_or("no upper end".to_owned(), write);
    format!("{} [{}, {high}]", write(e.value), write(e.low))
}

fn of_bounds(bounds: &ClosedLoop) -> String {
    let response = interval(&bounds.response_us, &|us| {
        number(us / 1e3, if us < 1e4 { 3 } else { 1 }, false)
    });
    match (&bounds.most_per_s, &bounds.knee) {
        (Some(most), Some(knee)) => format!(
            "The points are those of a closed loop: each connection waits {response} ms for an \
             answer, up to {} connections; from there on {} requests/s are all, as far as was \
             measured ({} connections).",
            interval(knee, &|v| number(v, 0, false)),
            interval(most, &rate),
            number(bounds.measured.1, 0, false)
        ),
        _ => format!(
            "The points are those of a closed loop that nothing limits: each connection waits \
             {response} ms for an answer, up to {} connections.",
            number(bounds.measured.1, 0, false)
        ),
    }
}

fn of_fit(fit: &Usl, test: Option<&LackOfFit>) -> Vec<String> {
    let share = |v: f64| percent(v * 100.0, 2, false);
    let mut said = vec![format!(
        "The universal scalability law with one connection at {} requests/s, contention {} and \
         coherency {} fits the measured points to {}.",
        interval(&fit.lambda_per_s, &rate),
        interval(&fit.sigma, &share),
        interval(&fit.kappa, &share),
        percent(fit.residual * 100.0, 1, false),
    )];
    said.push(match test {
        Some(test) => format!(
            "It deviates from them by no more than their noise explains ({}).",
            words_of(test)
        ),
        None => {
            "Whether it fits was not tested: that takes two rounds or more, and more numbers of \
                 connections than it has figures."
                .to_owned()
        }
    });
    let last = number(fit.measured.1, 0, false);
    said.push(match &fit.peak {
        Some(peak) if peak.beyond_measured => format!(
            "Up to {last} connections more bring more; where that ends lies beyond what was \
             measured, and is not known."
        ),
        Some(_) if test.is_none() => format!(
            "Where the most is reached is not claimed of a law that was not tested; the table has \
             what was measured, up to {last} connections."
        ),
        Some(peak) => format!(
            "By the law the most is reached at {} connections; more bring less.",
            interval(&peak.concurrency, &|v| number(v, 0, false))
        ),
        None => format!(
            "Up to {last} connections nothing says that more would bring less; beyond them nothing \
             is known."
        ),
    });
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usl::LevelStep;
    use testing::Text as _;
    use testing::journals::load;

    /// Rounds at these throughputs, within 0.4%.
    fn steps(levels: &[u32], rounds: u32, per_s: impl Fn(f64) -> f64) -> Vec<LevelStep> {
        let rounds = 0..rounds;
        let all = rounds.flat_map(|round| levels.iter().map(move |n| (round, *n)));
        let step = |(round, connections): (u32, u32)| {
            let wobble = f64::from((round * 7 + connections * 3) % 5) / 2.0 - 1.0;
            let per_s = per_s(f64::from(connections)) * (1.0 + 0.004 * wobble);
            let mut load = load(per_s, 400.0, None);
            load.connections = u64::from(connections);
            load.connections_open_min = load.connections;
            LevelStep {
                connections,
                round,
                load,
            }
        };
        all.map(step).collect()
    }

    fn said(steps: &[LevelStep]) -> String {
        scaling(&Scaling::of(steps, 1)).join(" ")
    }

    /// The universal scalability law.
    fn law(n: f64) -> f64 {
        1000.0 * n / (1.0 + 0.05 * (n - 1.0) + 0.0005 * n * (n - 1.0))
    }

    /// A closed loop of 2 ms at a target that carries 5,000 requests/s.
    fn closed_loop(n: f64) -> f64 {
        (n * 500.0).min(5000.0)
    }

    const LEVELS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

    #[test]
    fn a_law_is_told_with_what_lies_beyond_it() {
        let near = said(&steps(&[1, 2, 4, 8, 16], 5, law));
        near.has("beyond what was measured, and is not known");
        let wide = said(&steps(&[1, 4, 16, 64, 256], 5, law));
        wide.has("more bring less");
    }

    #[test]
    fn a_closed_loop_has_no_peak_and_what_no_law_fits_claims_nothing() {
        let mut steps = steps(&LEVELS, 5, closed_loop);
        let text = said(&steps);
        text.has("The points are those of a closed loop");
        text.lacks("more bring less");
        // Less at 8 connections than at 4 and at 16, far beyond the noise.
        for step in steps.iter_mut().filter(|s| s.connections == 8) {
            step.load = load(1200.0 * (1.0 + 0.002 * f64::from(step.round)), 400.0, None);
        }
        let text = said(&steps);
        text.has("Between the measured points nothing is claimed");
    }

    #[test]
    fn what_was_not_tested_and_who_was_the_limit_are_told() {
        let text = said(&steps(&LEVELS, 1, closed_loop));
        text.has("Whether it fits was not tested");
        text.lacks("more bring less");
        let mut busy = steps(&[1, 2, 4, 8, 16], 5, law);
        for step in busy.iter_mut().filter(|s| s.connections == 16) {
            step.load.client.saturated = true;
        }
        let text = said(&busy);
        text.has("At 16 connections the client was the limit");
        text.has("The most was at least ");
        let few = said(&steps(&[1, 2, 4], 5, law));
        few.has("at least 4 different concurrencies, found 3");
    }
}
