//! The sections of a run's result.

use readings::RunHeader;
use readings::text::condition;
use verdict::{
    Analysis, Comparison, InvalidTrial, LatencyCurves, NoiseFloor, WarningEffect, with_effect,
    words,
};

use super::columns::{Columns, Figures, legend};
use super::{Part, Section, by_request, curve_table, settings, tiers};

/// Every section after the verdicts, in the order of a report; those without content are left out.
///
/// `figures` is the table of figures, whose columns depend on the form.
pub(crate) fn sections(
    header: &RunHeader,
    analysis: &Analysis,
    figures: Option<(String, Figures)>,
) -> Vec<Section<'static>> {
    let upgrades = words::upgrades(&analysis.upgrades).into_iter();
    let mut all = vec![
        Section::list("upgrades", "Upgrades", upgrades),
        in_tiers(analysis),
    ];
    all.push(figures.and_then(|(title, figures)| figures_of(analysis, title, figures)));
    all.extend(analysis.curves.iter().map(against_rate));
    all.extend([
        Section::list(
            "interactions",
            "Interactions",
            words::interactions(&analysis.interactions).into_iter(),
        ),
        Section::list("shares", "Back ends", back_ends(analysis)),
        lasting(analysis),
        of_requests(analysis),
        Section::list(
            "growth",
            "Growth",
            analysis.growth.iter().map(words::growth),
        ),
        Section::list(
            "bottlenecks",
            "Bottlenecks",
            analysis.bottlenecks.iter().map(words::finding),
        ),
        Section::list(
            "noise",
            "Noise floor",
            analysis.noise_floor.iter().map(floor_after_title),
        ),
        side_by_side(analysis),
        published(header),
        warnings(analysis),
        Section::of(
            "invalid",
            "Invalid trials",
            vec![Part::Named(
                analysis.invalid.iter().map(invalid_trial).collect(),
            )],
        ),
        Section::of(
            "failed",
            "Failed trials",
            vec![Part::Named(failed_trials(analysis))],
        ),
    ]);
    all.into_iter().flatten().collect()
}

/// What back ends received: shares, rate limits, expiries.
pub(crate) fn back_ends(analysis: &Analysis) -> impl Iterator<Item = String> {
    let shares = analysis.shares.iter().map(words::shares);
    let limits = analysis.limits.iter().map(words::limiting);
    let expiries = analysis.expiries.iter().map(words::expiries);
    shares.chain(limits).chain(expiries)
}

/// What servers do to long-lived connections.
fn lasting(analysis: &Analysis) -> Option<Section<'static>> {
    let held_back = analysis.held_back.iter().map(words::held_back);
    let survivals = analysis.survivals.iter().map(words::survival);
    let all = held_back.chain(survivals);
    Section::list("lasting", "Long-lived connections", all)
}

/// Each request, where a load has several.
fn of_requests(analysis: &Analysis) -> Option<Section<'static>> {
    let table = by_request::table(&analysis.by_request);
    let table = Part::Table(table, "figures by request");
    let legend = words::by_request(&analysis.by_request).map(Part::Legend);
    let parts = [table].into_iter().chain(legend).collect();
    Section::of("requests", by_request::TITLE, parts)
}

/// What changes the reading and what widens intervals, then the rest.
fn warnings(analysis: &Analysis) -> Option<Section<'static>> {
    let with = |effect| words::warnings(with_effect(&analysis.warnings, effect));
    let mut told = with(WarningEffect::ChangesAnswer);
    told.extend(with(WarningEffect::WidensInterval));
    let rest = with(WarningEffect::ForCompleteness);
    let parts = vec![Part::List(told), Part::Folded("For completeness", rest)];
    Section::of("warnings", "Warnings", parts)
}

pub(crate) fn find<'s>(sections: &'s [Section<'s>], id: &str) -> Option<&'s Section<'s>> {
    sections.iter().find(|section| section.id == id)
}

fn in_tiers(analysis: &Analysis) -> Option<Section<'static>> {
    if analysis.tiers.is_empty() {
        return None;
    }
    let parts = vec![
        Part::List(analysis.tiers.iter().map(words::tiers).collect()),
        Part::Table(tiers::table(&analysis.tiers), "tiers").long(),
        Part::Legend(tiers::LEGEND.to_owned()).long(),
    ];
    Section::of("tiers", tiers::TITLE, parts)
}

fn figures_of(analysis: &Analysis, title: String, figures: Figures) -> Option<Section<'static>> {
    let rates = analysis.rates.iter().map(words::rate_choice);
    let notes = rates
        .chain(analysis.warm_ups.iter().map(words::warm_up))
        .chain(analysis.tls.iter().map(words::tls))
        .chain(words::congestion(&analysis.congestion))
        .chain(analysis.probes.iter().map(words::probes));
    let legend = Part::Legend(legend(&figures));
    let subjects = Part::Table(figures.subjects, "figures");
    let servers = Part::Table(figures.servers, "servers");
    let notes = Part::Notes(notes.collect());
    Section::of("figures", title, vec![subjects, servers, legend, notes])
}

pub(crate) fn against_rate(curves: &LatencyCurves) -> Option<Section<'static>> {
    let mut parts = vec![Part::List(words::curves(curves))];
    let bounds = curve_table::bounds(curves);
    parts.extend(bounds.map(|bounds| Part::Table(bounds, "rates that pass the bounds")));
    let legend = words::curve_legend(curves);
    parts.push(Part::Points(curve_table::table(curves), legend));
    Section::of("curves", curve_table::TITLE, parts)
}

/// A noise floor's sentence without the words that the heading has.
fn floor_after_title(floor: &NoiseFloor) -> String {
    let text = words::noise_floor(floor);
    text.trim_start_matches("noise floor, ").to_owned()
}

/// How the compared servers were set.
fn side_by_side(analysis: &Analysis) -> Option<Section<'static>> {
    let tables = analysis.settings.iter().flat_map(|one| {
        let place = settings::place(&analysis.settings, one).map(Part::Lead);
        let table = Part::Table(settings::table(one), "settings");
        place.into_iter().chain([table]).map(Part::long)
    });
    Section::of("settings", settings::TITLE, tables.collect())
}

/// Figures that others published, for comparison.
fn published(header: &RunHeader) -> Option<Section<'static>> {
    let rows = header.published.iter().map(|figure| {
        vec![
            figure.what.clone(),
            figure.value.to_string(),
            figure.unit.clone(),
            figure.source.clone(),
        ]
    });
    let columns = Columns {
        head: ["what", "value", "unit", "source"]
            .map(str::to_owned)
            .to_vec(),
        numeric: vec![false, true, false, false],
        rows: rows.collect(),
    };
    let table = Part::Table(columns, "published by others").long();
    Section::of("published", "Published by others", vec![table])
}

/// Why trials failed, each reason once.
pub(crate) fn failed_trials(analysis: &Analysis) -> Vec<String> {
    let failures = analysis.failures.iter();
    failures
        .map(|f| format!("{} of {}: {}", f.count, f.subjects.join(", "), f.reason))
        .collect()
}

/// `trial 12 (balance, block 3, connections=96): throughput: …`.
pub(crate) fn invalid_trial(trial: &InvalidTrial) -> String {
    let mut place = format!("{}, block {}", trial.subject, trial.block);
    if trial.baseline_copy {
        place.push_str(", second copy");
    }
    let condition = condition(&trial.condition);
    if !condition.is_empty() {
        place.push_str(", ");
        place.push_str(&condition);
    }
    let reasons: Vec<String> = trial.reasons.iter().map(words::trial_flaw).collect();
    format!("trial {} ({place}): {}", trial.trial, reasons.join("; "))
}

/// The comparisons with throughput first, otherwise in the run's order.
pub(crate) fn by_metric(analysis: &Analysis) -> Vec<&Comparison> {
    let mut sorted: Vec<&Comparison> = analysis.all_comparisons().collect();
    sorted.sort_by_key(|c| c.metric);
    sorted
}

/// A comparison's sentence without its verdict's word in front, for where that stands already.
pub(crate) fn after_word(c: &Comparison) -> String {
    let sentence = words::comparison(c);
    let rest = sentence.strip_prefix(c.verdict.word());
    let rest = rest.and_then(|rest| rest.strip_prefix(": "));
    rest.map_or_else(|| sentence.clone(), str::to_owned)
}

/// Where in its looks the run stands, as the beginning of a sentence.
pub(crate) fn stage(analysis: &Analysis) -> String {
    capitalised(&words::stage(&analysis.stage))
}

/// A text with its first letter in upper case.
pub(crate) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}
