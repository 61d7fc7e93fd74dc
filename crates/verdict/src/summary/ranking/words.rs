//! The answer to the question of a run, in a sentence or two.

use readings::text::{condition, counted, fraction, listed, once};

use crate::comparison::words::notes::notes;
use crate::comparison::words::{change_of, difference, how_sure};
use crate::metric::words::{TIMES_FROM, shown_change, value};
use crate::summary::ranking::{Ranking, of_answer, primary};
use crate::{Analysis, Comparison, Metric, Ranked, Verdict};
use readings::at_condition as at;

/// The most names in a sentence.
const NAMED_MAX: usize = 4;
/// What is said of two subjects beside the first metric.
const BESIDE: [Metric; 3] = [
    Metric::LatencyUsP50,
    Metric::LatencyUsP99,
    Metric::ServerCpuUsPerRequest,
];

/// A metric in a head or in a list.
pub fn short(metric: Metric) -> &'static str {
    match metric {
        Metric::LatencyUsP50 => "p50",
        Metric::LatencyUsP99 => "p99",
        Metric::ServerCpuUsPerRequest => "CPU time per request",
        Metric::ServerCpuUsPerRequestAtRate => "CPU time per request at that rate",
        Metric::ServerInstructionsPerRequest => "instructions per request",
        Metric::ServerUserInstructionsPerRequest => "user instructions per request",
        Metric::ServerRssBytesMax => "memory",
        Metric::FirstServerStartUs => "start",
        Metric::FirstServerRestBytes => "memory at rest",
        Metric::ReloadUs => "reload in effect after",
        Metric::MemoryAfterBytes => "memory after",
        Metric::AcceptedShare => "of the limit",
        other => other.words(),
    }
}

/// The rate of an open loop, such as `at 2,000/s`.
pub fn rate_of(ranking: &Ranking) -> Option<String> {
    let per_s = ranking.rate_per_s?;
    Some(format!("at {}", value(Metric::RequestsPerS, per_s)))
}

/// Subjects that have no place by the first metric, each reason once.
pub fn unplaced(analysis: &Analysis) -> Vec<String> {
    let Some(metric) = primary(analysis) else {
        return Vec::new();
    };
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    let without = analysis.comparisons.iter();
    for c in without.filter(|c| c.metric == metric && c.ratio.is_none()) {
        let why = notes(&c.notes);
        let why = why.unwrap_or_else(|| "no figures".to_owned());
        let name = format!("{}{}", c.subject, at(&c.condition));
        match found.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) => names.push(name),
            None => found.push((why, vec![name])),
        }
    }
    let said = found.into_iter().map(|(why, names)| {
        let names = match names.len() > NAMED_MAX {
            true => format!("{} and {} more", names[0], names.len() - 1),
            false => listed(&names),
        };
        format!("Not ranked: {names}: {why}.")
    });
    said.collect()
}

/// The answer: of two subjects what the one costs or gains, of more who is first, who is last, and
/// who cannot be told apart. `None` without a ranking.
pub fn answer(analysis: &Analysis) -> Option<String> {
    let metric = primary(analysis)?;
    let all = of_answer(analysis).into_iter();
    let all: Vec<&Ranking> = all.filter(|one| one.metric == metric).collect();
    let rows = all.iter().flat_map(|one| &one.rows);
    let names = once(rows.filter(|row| !row.is_baseline).map(|row| &row.subject));
    match (names.as_slice(), all.as_slice()) {
        ([subject], [_]) => of_two(analysis, metric, subject),
        ([subject], _) => of_two_under_several(analysis, metric, subject),
        (_, [one]) => Some(of_several(analysis, one)),
        _ => Some(of_several_under_several(metric, &all)),
    }
}

fn of_two(analysis: &Analysis, metric: Metric, subject: &str) -> Option<String> {
    let find = |metric: Metric| {
        let mut all = analysis.all_comparisons();
        all.find(|c| c.metric == metric && c.subject == subject && c.ratio.is_some())
    };
    let c = find(metric)?;
    let mut text = match (c.verdict, how_sure(c)) {
        (Verdict::Faster | Verdict::Slower, Some(sure)) => format!("{}, {sure}.", difference(c)),
        (Verdict::Faster | Verdict::Slower, None) => format!("{}.", difference(c)),
        (Verdict::Same, _) => format!(
            "{subject} and {} do not differ in {} by more than {}: {}.",
            c.baseline,
            metric.words(),
            fraction(c.matters),
            change_of(c)
        ),
        (Verdict::Inconclusive | Verdict::Invalid, _) => format!(
            "{subject} and {} are not told apart in {}: {}.",
            c.baseline,
            metric.words(),
            change_of(c)
        ),
    };
    let beside = BESIDE.into_iter().filter(|beside| *beside != metric);
    let beside: Vec<String> = beside
        .filter_map(|metric| Some(format!("{}: {}", short(metric), in_short(find(metric)?))))
        .collect();
    if !beside.is_empty() {
        text.push_str(&format!(" {}.", beside.join("; ")));
    }
    Some(text)
}

/// `2.5 times [2.1, 3.1]`, `not told apart (+4% [-1%, +9%])`, `the same (+1% [0%, +2%])`.
fn in_short(c: &Comparison) -> String {
    let change = change_of(c);
    match c.verdict {
        Verdict::Faster | Verdict::Slower => change,
        Verdict::Same => format!("the same ({change})"),
        Verdict::Inconclusive | Verdict::Invalid => format!("not told apart ({change})"),
    }
}

fn of_two_under_several(analysis: &Analysis, metric: Metric, subject: &str) -> Option<String> {
    let all = analysis.all_comparisons();
    let all = all.filter(|c| c.metric == metric && c.subject == subject && c.ratio.is_some());
    let mut all: Vec<&Comparison> = all.collect();
    all.sort_by(|a, b| a.ratio.unwrap_or(1.0).total_cmp(&b.ratio.unwrap_or(1.0)));
    let (least, most) = (all.first()?, all.last()?);
    let end = |c: &Comparison| {
        let change = shown_change(c.ratio.unwrap_or(1.0), None);
        format!("{change} ({})", condition(&c.condition))
    };
    let count = |wanted: &[Verdict]| all.iter().filter(|c| wanted.contains(&c.verdict)).count();
    let words = [
        (vec![Verdict::Faster], "better"),
        (vec![Verdict::Slower], "worse"),
        (vec![Verdict::Same], "the same"),
        (
            vec![Verdict::Inconclusive, Verdict::Invalid],
            "not told apart",
        ),
    ];
    let conditions = counted(all.len(), "condition");
    let verdicts = words
        .iter()
        .filter_map(|(verdicts, word)| match count(verdicts) {
            0 => None,
            n if n == all.len() => Some(format!("{word} under {}", each(all.len()))),
            n => Some(format!("{word} under {n} of {conditions}")),
        });
    Some(format!(
        "Against {}, {subject} has {} to {} {}: {}.",
        least.baseline,
        end(least),
        end(most),
        metric.words(),
        verdicts.collect::<Vec<_>>().join(", ")
    ))
}

/// `both conditions`, `all 4 conditions`.
fn each(conditions: usize) -> String {
    match conditions {
        2 => "both conditions".to_owned(),
        more => format!("all {}", counted(more, "condition")),
    }
}

fn of_several(analysis: &Analysis, ranking: &Ranking) -> String {
    let what = format!("{}{}", ranking.metric.words(), at(&ranking.condition));
    let (rows, n) = (&ranking.rows, ranking.rows.len());
    let may_be = |is_it: &dyn Fn(&Ranked) -> bool| -> Vec<String> {
        let rows = rows.iter().filter(|row| is_it(row));
        rows.map(|row| row.subject.clone()).collect()
    };
    let first = may_be(&|row| row.places.0 == 1);
    let last = may_be(&|row| row.places.1 == n);
    if first.len() == n && last.len() == n {
        return format!("No subject is told apart from another in {what}.");
    }
    let mut text = format!("{} first in {what}", candidates(&first));
    text.push_str(&format!(", {} last", candidates(&last)));
    if let ([first], [last]) = (first.as_slice(), last.as_slice()) {
        text.push_str(&between(analysis, ranking, first, last));
    }
    text.push('.');
    text + &not_told_apart(&ranking.open, n * (n - 1) / 2)
}

/// `nginx is`, `nginx or h2o is`, `one of 7 is`.
fn candidates(names: &[String]) -> String {
    match names {
        [one] => format!("{one} is"),
        some if some.len() <= NAMED_MAX => format!("{} is", some.join(" or ")),
        some => format!("one of {} is", some.len()),
    }
}

/// `, by a factor of 4.8 [4.1, 5.6]`.
fn between(analysis: &Analysis, ranking: &Ranking, first: &str, last: &str) -> String {
    let tiers = analysis.tiers.iter();
    let mut pairs = tiers
        .filter(|t| t.condition == ranking.condition && t.metric == ranking.metric)
        .flat_map(|tiers| &tiers.pairs);
    let pair = pairs.find(|pair| pair.first == first && pair.second == last);
    let Some((pair, ratio)) = pair.and_then(|pair| Some((pair, pair.ratio?))) else {
        return String::new();
    };
    let upwards = |ratio: f64| match ranking.metric.higher_is_better() {
        true => ratio,
        false => 1.0 / ratio,
    };
    let ends = pair.low.zip(pair.high).map(|(low, high)| {
        let (a, b) = (upwards(low), upwards(high));
        (a.min(b), a.max(b))
    });
    match shown_change(upwards(ratio), ends) {
        change if upwards(ratio) >= TIMES_FROM => {
            let factor = change.replacen(" times", "", 1);
            format!(", by a factor of {factor}")
        }
        change => format!(", by {}", change.trim_start_matches('+')),
    }
}

fn not_told_apart(open: &[(String, String)], of: usize) -> String {
    let names = once(open.iter().flat_map(|(first, second)| [first, second]));
    let all_of = names.len() * names.len().saturating_sub(1) / 2;
    match open {
        [] => " All are told apart.".to_owned(),
        some if some.len() == all_of && names.len() <= NAMED_MAX => {
            let names: Vec<String> = names.into_iter().cloned().collect();
            format!(" Not told apart: {}.", listed(&names))
        }
        some if some.len() <= 2 => {
            let pairs = some.iter().map(|(a, b)| format!("{a} and {b}"));
            format!(" Not told apart: {}.", pairs.collect::<Vec<_>>().join("; "))
        }
        some => format!(" Of {of} pairs, {} are not told apart.", some.len()),
    }
}

fn of_several_under_several(metric: Metric, all: &[&Ranking]) -> String {
    let conditions = counted(all.len(), "condition");
    let alone = |is_it: &dyn Fn(&Ranked, usize) -> bool| -> Vec<(String, usize)> {
        let mut found: Vec<(String, usize)> = Vec::new();
        for ranking in all {
            let n = ranking.rows.len();
            let Some(row) = ranking.rows.iter().find(|row| is_it(row, n)) else {
                continue;
            };
            match found.iter_mut().find(|(name, _)| *name == row.subject) {
                Some((_, count)) => *count += 1,
                None => found.push((row.subject.clone(), 1)),
            }
        }
        found.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        found
    };
    let told = |found: &[(String, usize)], word: &str| match found {
        [] => format!("no subject is surely {word}"),
        [(name, count), rest @ ..] => {
            let others: usize = rest.iter().map(|(_, count)| count).sum();
            let under = match *count == all.len() {
                true => format!("under {}", each(all.len())),
                false => format!("under {count} of {conditions}"),
            };
            let others = match (others, rest) {
                (0, _) => String::new(),
                (_, [(other, count)]) => format!(" ({other} under {count})"),
                (count, _) => format!(" (others under {count})"),
            };
            format!("{name} is {word} {under}{others}")
        }
    };
    let first = told(&alone(&|row, _| row.places == (1, 1)), "first");
    let last = told(&alone(&|row, n| row.places == (n, n)), "last");
    let mut text = format!("In {}, {first}; {last}", metric.words());
    let factors = all.iter().filter_map(|ranking| {
        let (first, last) = (ranking.rows.first()?.value, ranking.rows.last()?.value);
        let factor = (first / last).ln().abs().exp();
        factor.is_finite().then_some(factor)
    });
    let factors: Vec<f64> = factors.collect();
    let (least, most) = factors
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(a, b), f| (a.min(*f), b.max(*f)));
    if most > 0.0 {
        let factor = match (most / least) > 1.05 {
            true => format!("{least:.1} to {most:.1}"),
            false => format!("{most:.1}"),
        };
        text.push_str(&format!("; between them lies a factor of {factor}"));
    }
    text.push('.');
    let pairs: usize = all
        .iter()
        .map(|r| r.rows.len() * (r.rows.len() - 1) / 2)
        .sum();
    match all.iter().map(|ranking| ranking.open.len()).sum() {
        0 => text + " All are told apart.",
        1 => text + &format!(" Of {pairs} pairs, 1 is not told apart."),
        count => text + &format!(" Of {pairs} pairs, {count} are not told apart."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SubjectPair;
    use crate::analyse;
    use crate::comparison::tiers::words::place;
    use crate::summary::ranking::rankings;
    use testing::Text as _;
    use testing::journals::journal;
    use testing::made_up::MadeUp;

    fn made_up(subjects: &[&str], conditions: u32) -> Analysis {
        let made = MadeUp {
            subjects: subjects.iter().map(|one| (*one).to_owned()).collect(),
            conditions,
            ..MadeUp::of((subjects.len() as u32 + 1) * conditions * 6)
        };
        analyse(&readings::Journal::parse(&made.text()).unwrap())
    }

    #[test]
    fn of_two_subjects_it_is_said_what_the_one_costs() {
        let mut analysis = made_up(&["direct", "balance"], 1);
        let text = answer(&analysis).unwrap();
        text.begins("balance costs 1");
        text.has("of the throughput [");
        text.has(". p50: ");
        let c = &mut analysis.comparisons[0];
        c.verdict = Verdict::Inconclusive;
        let text = answer(&analysis).unwrap();
        text.begins("balance and direct are not told apart in throughput: -1");
        let several = answer(&made_up(&["direct", "balance"], 3)).unwrap();
        several.begins("Against direct, balance has -1");
        several.ends("throughput: worse under all 3 conditions.");
    }

    /// Tells apart the pairs of which this holds, and no others.
    fn tell_apart(analysis: &mut Analysis, is_apart: impl Fn(&SubjectPair) -> bool) {
        for pair in analysis.tiers.iter_mut().flat_map(|one| &mut one.pairs) {
            pair.told_apart = is_apart(pair);
        }
        analysis.rankings = rankings(
            &analysis.table,
            &analysis.comparisons,
            &[],
            &analysis.tiers,
            &[],
        );
    }

    #[test]
    fn of_several_it_is_said_who_is_first_and_last() {
        let mut analysis = made_up(&["direct", "a", "b", "c"], 1);
        tell_apart(&mut analysis, |_| true);
        let text = answer(&analysis).unwrap();
        text.begins("direct is first in throughput at connections=8, c is last, by ");
        text.ends(" All are told apart.");
        tell_apart(&mut analysis, |pair| pair.second == "c");
        assert_eq!(
            answer(&analysis).unwrap(),
            "direct or a or b is first in throughput at connections=8, c is last. Not told apart: \
             direct, a and b."
        );
        let rows = analysis.rankings[0].rows.iter();
        let places: Vec<String> = rows.map(|row| place(row.places)).collect();
        assert_eq!(places, ["1-3", "1-3", "1-3", "4"]);
        tell_apart(&mut analysis, |_| false);
        assert_eq!(
            answer(&analysis).unwrap(),
            "No subject is told apart from another in throughput at connections=8."
        );
        let mut several = made_up(&["direct", "a", "b", "c"], 3);
        tell_apart(&mut several, |_| true);
        let text = answer(&several).unwrap();
        let expected =
            "In throughput, direct is first under all 3 conditions; c is last under all 3";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn a_subject_without_a_figure_is_named_with_its_reason() {
        let said = unplaced(&analyse(&journal()));
        assert_eq!(said.len(), 1, "{said:?}");
        let expected = "Not ranked: lighttpd at connections=96: 6 of 6 blocks cannot be used; ";
        assert!(said[0].starts_with(expected), "{said:?}");
    }

    #[test]
    fn a_figure_is_the_tables_whatever_blocks_a_comparison_rests_on() {
        let mut analysis = made_up(&["direct", "a", "b", "c"], 1);
        // As where a comparison rests on other blocks than the table.
        for c in &mut analysis.comparisons {
            c.baseline_value = c.baseline_value.map(|value| 0.5 * value);
        }
        tell_apart(&mut analysis, |_| true);
        for ranking in &analysis.rankings {
            for row in &ranking.rows {
                let mut table = analysis.table.iter();
                let own = table.find(|one| one.subject == row.subject).unwrap();
                assert_eq!(Some(row.value), own.figure(ranking.metric), "{row:?}");
                let is_its =
                    |c: &&Comparison| (c.metric, &*c.subject) == (ranking.metric, &*row.subject);
                let Some(c) = analysis.comparisons.iter().find(is_its) else {
                    continue;
                };
                let end = row.ratio_at(row.low.unwrap()).unwrap();
                assert!((end / c.low.unwrap() - 1.0).abs() < 1e-9, "{row:?}");
            }
        }
    }

    #[test]
    fn a_quantile_of_which_the_lower_end_alone_is_known_is_ranked_by_it() {
        use crate::{Bound, QuantileBound, ResolvedBy, Unresolved};
        let bound = QuantileBound {
            at_most_us: None,
            at_least_us: Some(20_000.0),
            highest_us: 41_000.0,
            resolved_by: ResolvedBy {
                window_s: 60.0,
                blocks: 30,
            },
        };
        let unresolved = Unresolved {
            condition: readings::Condition::new(),
            metric: Metric::LatencyUsP99,
            subject: "varnish".into(),
            baseline: "nginx".into(),
            rate_per_s: Some(2_000.0),
            blocks: 10,
            quantiles: Some((Ok(500.0), Err(bound))),
        };
        let found = rankings(&[], &[], &[unresolved], &[], &[]);
        let rows = &found[0].rows;
        let shown: Vec<_> = rows
            .iter()
            .map(|row| (row.subject.as_str(), row.value, row.bound, row.low))
            .collect();
        let at_least = Some(Bound::AtLeast);
        assert_eq!(
            shown,
            [
                ("varnish", 500.0, None, None),
                ("nginx", 20_000.0, at_least, Some(20_000.0))
            ]
        );
        assert!(!found[0].has_order());
    }
}
