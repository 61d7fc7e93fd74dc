//! From a journal to an analysis, in one call.

pub(crate) mod words;

pub(crate) mod by_request;
pub(crate) mod congestion;
pub(crate) mod levels;
pub(crate) mod place;
pub(crate) mod probes;
pub(crate) mod ranking;
pub(crate) mod settings;
pub(crate) mod stage;
pub(crate) mod table;
pub(crate) mod tls;
pub(crate) mod warnings;

use std::collections::{BTreeMap, BTreeSet};

use readings::{
    Condition, GateMetric, Journal, Outcome, Placement, RateChoice, RunHeader, Trial, WarmUpChoice,
    trials_by_load,
};
use serde::Serialize;

use crate::comparison::compare::comparisons;
use crate::comparison::draft::{Run, in_run};
use crate::comparison::interactions::interactions;
use crate::comparison::tiers::tiers;
use crate::studies::bottleneck::{Finding, bottlenecks};
use crate::studies::buffering::{HeldBack, held_back};
use crate::studies::curve::{self, LatencyCurves};
use crate::studies::gates::{self, GateResult};
use crate::studies::growth::{Growth, growths};
use crate::studies::shares::expiry::{Expiries, expiries};
use crate::studies::shares::limit::{Limiting, limits};
use crate::studies::shares::{Shares, shares};
use crate::studies::shift::shifts;
use crate::studies::survival::{Survival, survivals};
use crate::summary::by_request::RequestRow;
use crate::summary::congestion::CongestionSummary;
use crate::summary::levels::levels;
use crate::summary::probes::ProbesCost;
use crate::summary::ranking::{Ranking, rankings};
use crate::summary::settings::SideBySide;
use crate::summary::settings::upgrades::{Upgrade, upgrades};
use crate::summary::table::table;
use crate::summary::tls::TlsSummary;
use crate::trial::cells::Cells;
use crate::trial::cells::judged::{Distribution, Judgement, distributions, judgements};
use crate::trial::pauses::{self, BlockPauses};
use crate::{
    Comparison, Interaction, LevelComparison, NoiseFloor, Rules, Shift, Stage, SubjectRow, Tiers,
    TrialFlaw, Unresolved, Verdict, Warning,
};

/// All that a run's journal says.
#[derive(Clone, Debug, PartialEq)]
pub struct Analysis {
    /// Where in its looks the run stands.
    pub stage: Stage,
    /// The metrics that the run is about; empty: all.
    pub primary: Vec<GateMetric>,
    /// Every subject against the baseline: by condition, then metric, then subject, as declared.
    pub comparisons: Vec<Comparison>,
    /// The levels of factors against each other: of one subject, or of the factors whose reference
    /// level is declared.
    pub levels: Vec<LevelComparison>,
    /// The gates, judged; in the order of the header, then by condition and subject.
    pub gates: Vec<GateResult>,
    /// The subjects in tiers, where there are three or more; only in the analysis of a journal.
    pub tiers: Vec<Tiers>,
    /// The subjects by their figures, then the levels of factors; only in the analysis of a journal.
    pub rankings: Vec<Ranking>,
    /// Comparisons that were left out because too few answers stand behind their quantile.
    pub unresolved: Vec<Unresolved>,
    /// Whether what subjects cost depends on a factor; only in the analysis of a journal.
    pub interactions: Vec<Interaction>,
    /// How metrics change with the factors that the run declares for that; only in the analysis of a
    /// journal.
    pub growth: Vec<Growth>,
    /// The baseline against itself.
    pub noise_floor: Vec<NoiseFloor>,
    /// The latency of every subject against the baseline's, quantile by quantile.
    pub shifts: Vec<Shift>,
    pub pauses: Vec<BlockPauses>,
    pub table: Vec<SubjectRow>,
    /// Trials measured, invalid ones included.
    pub trials_done: usize,
    /// Trials that could not be measured.
    pub trials_failed: usize,
    /// Why trials failed, each reason once, most frequent first.
    pub failures: Vec<FailureCount>,
    /// Trials that were measured, but cannot be used or only in part.
    pub invalid: Vec<InvalidTrial>,
    /// What the reader should know.
    pub warnings: Vec<Warning>,
    /// What limits each subject.
    pub bottlenecks: Vec<Finding>,
    /// At which rate latency is compared and where that comes from.
    pub rates: Vec<RateChoice>,
    /// Warm-ups that the run made longer than declared.
    pub warm_ups: Vec<WarmUpChoice>,
    /// Latency against offered rate, one for each condition under which it was measured.
    pub curves: Vec<LatencyCurves>,
    /// Subjects that hold back the messages of streams.
    pub held_back: Vec<HeldBack>,
    /// How many requests each back end received, where there are several, or not each request reached
    /// one.
    pub shares: Vec<Shares>,
    /// How exactly servers keep the rate limits that they declare.
    pub limits: Vec<Limiting>,
    /// What caches ask their back ends when answers expire.
    pub expiries: Vec<Expiries>,
    /// What became of connections that last around events.
    pub survivals: Vec<Survival>,
    /// What sampling servers and machine cost.
    pub probes: Option<ProbesCost>,
    /// What the TLS sessions of subjects negotiated.
    pub tls: Vec<TlsSummary>,
    /// The congestion control of subjects' connections, where it is known.
    pub congestion: Vec<CongestionSummary>,
    /// Each request, where a load has several.
    pub by_request: Vec<RequestRow>,
    /// How the compared servers were set.
    pub settings: Vec<SideBySide>,
    /// What newer versions of a server cost; only in the analysis of a journal.
    pub upgrades: Vec<Upgrade>,
    /// The CPUs of client and servers; several where they were drawn for each block.
    pub placements: Vec<Placement>,
    /// The trials of the journal by load, judged: what all figures rest on. Only in the analysis of
    /// a journal; [`judged_trials`](crate::judged_trials) gives each with its trial.
    pub judgements: Vec<Judgement>,
    /// The answers of each subject; only in the analysis of a journal.
    pub distributions: Vec<Distribution>,
}

impl Analysis {
    /// The comparisons of subjects, then those of levels.
    pub fn all_comparisons(&self) -> impl Iterator<Item = &Comparison> {
        let levels = self.levels.iter().map(|level| &level.comparison);
        self.comparisons.iter().chain(levels)
    }
}

/// A reason for which trials failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailureCount {
    pub reason: String,
    pub count: usize,
    /// The subjects whose trials they were, as first seen.
    pub subjects: Vec<String>,
}

/// A trial that takes no part in the comparisons, or only one of its loads does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InvalidTrial {
    /// Number within the run.
    pub trial: u32,
    pub block: u32,
    pub subject: String,
    /// Whether it is the baseline's second copy.
    pub baseline_copy: bool,
    pub condition: Condition,
    /// Why, each with the load that it is about.
    #[serde(skip)]
    pub reasons: Vec<TrialFlaw>,
}

/// Says what a run's journal shows, by the rules that its header declares.
///
/// Of rows for the same block, condition, subject and copy, the last valid one counts; where none
/// is valid, the last that was measured. Of several loads at the same time each compared one has
/// comparisons of its own; background loads are in the table only.
pub fn analyse(journal: &Journal) -> Analysis {
    let journal = &*journal.by_load();
    let header = &journal.header;
    let rules = Rules::of(header);
    let cells = Cells::of(header, journal.trials());
    let mut analysis = in_run(&rules, &cells, |run| {
        let mut analysis = analyse_cells(run);
        analysis.primary = header.primary.clone();
        analysis.gates = gates::judge(run, &header.gates);
        analysis.tiers = tiers(run, &analysis.comparisons);
        analysis
    });
    analysis.rankings = rankings(
        &analysis.table,
        &analysis.comparisons,
        &analysis.unresolved,
        &analysis.tiers,
        &header.primary,
    );
    let levels = levels(header, &rules, &cells);
    analysis.levels = levels.comparisons;
    analysis.rankings.extend(levels.rankings);
    analysis.interactions = interactions(&rules, &cells);
    analysis.growth = growths(header, &rules, &cells, &analysis.table);
    let background = Cells::of_background(header, journal.trials());
    analysis.table.extend(table(&background));
    analysis.judgements = judgements(journal.trials(), &[&cells, &background]);
    analysis.distributions = distributions(&cells);
    let recorded = journal
        .warnings()
        .into_iter()
        .map(|text| Warning::Recorded {
            text: text.to_owned(),
            trials: 1,
        });
    analysis.warnings.splice(0..0, recorded);
    // No latency is compared where something happened to servers.
    if analysis.table.iter().all(|row| row.events.is_none()) {
        analysis.rates = journal.rates().into_iter().cloned().collect();
    }
    analysis.warm_ups = journal.warm_ups().into_iter().cloned().collect();
    analysis.curves = curve::curves(header, &cells);
    for curves in &mut analysis.curves {
        curves.take_choice(&journal.curves());
    }
    analysis.held_back = held_back(&header.baseline, &cells, &journal.settings());
    analysis.shares = shares(&cells);
    analysis.limits = limits(&cells);
    analysis.expiries = expiries(&cells);
    analysis.survivals = survivals(&cells);
    analysis.bottlenecks = bottlenecks(&journal.bottlenecks());
    mark_lower_bounds(&mut analysis.table, &analysis.bottlenecks);
    analysis.settings = settings::side_by_side(&journal.settings());
    let differences = warnings::settings::warnings(&analysis.settings, &analysis.table);
    analysis.upgrades = upgrades(&analysis.settings, &analysis.tiers);
    settings::add_observed(&mut analysis.settings, &analysis.table);
    analysis.warnings.extend(differences);
    analysis.by_request = by_request::rows(&cells);
    analysis.congestion = congestion::summaries(&cells, &journal.settings());
    let differences = warnings::congestion::warnings(&analysis.congestion);
    analysis.warnings.extend(differences);
    analysis.placements = journal.placements().into_iter().cloned().collect();
    analysis
}

/// Says what trials show by the given rules.
pub fn analyse_with<'a>(
    rules: &Rules,
    header: &RunHeader,
    trials: impl IntoIterator<Item = &'a Trial>,
) -> Analysis {
    let cells = Cells::of(header, trials);
    let mut analysis = in_run(rules, &cells, |run| {
        let mut analysis = analyse_cells(run);
        analysis.primary = header.primary.clone();
        analysis.gates = gates::judge(run, &header.gates);
        analysis
    });
    analysis.levels = levels(header, rules, &cells).comparisons;
    analysis
}

/// All but what only the whole journal tells, and what neither the stopping rule nor simulations
/// need.
fn analyse_cells(run: &Run<'_, '_>) -> Analysis {
    let (rules, cells, floors) = (run.rules, run.cells, run.floors);
    let (comparisons, unresolved) = comparisons(run);
    let mut told = warnings::run::warnings(rules, cells, &comparisons, floors, &unresolved);
    let tls = tls::summaries(cells);
    told.extend(warnings::tls::warnings(&tls));
    let table = table(cells);
    told.extend(warnings::connections::warnings(&table));
    let failures = failures(cells);
    let trials_failed = failures.iter().map(|f| f.count).sum();
    Analysis {
        stage: Stage::of(rules, cells),
        primary: Vec::new(),
        comparisons,
        levels: Vec::new(),
        gates: Vec::new(),
        tiers: Vec::new(),
        rankings: Vec::new(),
        unresolved,
        interactions: Vec::new(),
        growth: Vec::new(),
        shifts: shifts(rules, cells),
        pauses: pauses::by_block(cells),
        table,
        trials_done: cells.counted_trials().count() - trials_failed,
        trials_failed,
        failures,
        invalid: invalid(cells),
        warnings: told,
        noise_floor: floors.to_vec(),
        bottlenecks: Vec::new(),
        rates: Vec::new(),
        warm_ups: Vec::new(),
        curves: Vec::new(),
        held_back: Vec::new(),
        shares: Vec::new(),
        limits: Vec::new(),
        expiries: Vec::new(),
        survivals: Vec::new(),
        probes: probes::cost(cells),
        tls,
        congestion: Vec::new(),
        by_request: Vec::new(),
        settings: Vec::new(),
        upgrades: Vec::new(),
        placements: Vec::new(),
        judgements: Vec::new(),
        distributions: Vec::new(),
    }
}

/// Whether a run may stop after these trials; blocks between the looks are not analysed.
pub fn may_stop(header: &RunHeader, trials: &[Trial]) -> bool {
    at_a_look(header, trials).is_some_and(|analysis| settled(&analysis))
}

/// The analysis of these trials where they end at one of the run's looks; `None` between the looks.
pub fn at_a_look(header: &RunHeader, trials: &[Trial]) -> Option<Analysis> {
    let rules = Rules::of(header);
    let block = trials.iter().map(|trial| trial.block).max().unwrap_or(0);
    rules.looks.look_at(block)?;
    let analysis = match trials_by_load(header, trials) {
        Some((header, trials)) => analyse_with(&rules, &header, &trials),
        None => analyse_with(&rules, header, trials),
    };
    analysis.stage.look.is_some().then_some(analysis)
}

/// Whether a run may stop here: it stands at one of its looks, and every comparison is settled.
///
/// Faster, slower and the same are settled. So is a comparison without a single usable block, since
/// more blocks promise nothing. Where the run declares its primary metrics, only these are waited for;
/// what servers cost is not, unless it is one of them. A run with nothing to compare does not stop early. A run with gates is settled when they are: it was asked for them.
pub fn settled(analysis: &Analysis) -> bool {
    let primary = &analysis.primary;
    let is_waited_for = |c: &&Comparison| match primary.is_empty() {
        true => !c.metric.is_cost(),
        false => c
            .metric
            .gate()
            .is_some_and(|metric| primary.contains(&metric)),
    };
    if !analysis.gates.is_empty() {
        return analysis.stage.look.is_some() && gates::are_settled(&analysis.gates);
    }
    analysis.stage.look.is_some()
        && analysis.all_comparisons().next().is_some()
        && analysis
            .all_comparisons()
            .filter(is_waited_for)
            .all(|c| match c.verdict {
                Verdict::Faster | Verdict::Slower | Verdict::Same => true,
                Verdict::Inconclusive => false,
                Verdict::Invalid => c.by_block.is_empty(),
            })
}

/// A throughput that the client limits is a lower bound.
fn mark_lower_bounds(table: &mut [SubjectRow], bottlenecks: &[Finding]) {
    let limited = bottlenecks.iter().filter(|finding| finding.at_least);
    let limited: BTreeSet<_> = limited
        .map(|finding| (&finding.condition, &finding.subject))
        .collect();
    for row in table {
        row.at_least |= limited.contains(&(&row.condition, &row.subject));
    }
}

fn failures(cells: &Cells<'_>) -> Vec<FailureCount> {
    let mut found: Vec<FailureCount> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for cell in cells.counted_trials() {
        let Outcome::Failed { reason, .. } = &cell.trial.outcome else {
            continue;
        };
        let at = *places.entry(reason).or_insert_with(|| {
            found.push(FailureCount {
                reason: reason.clone(),
                count: 0,
                subjects: Vec::new(),
            });
            found.len() - 1
        });
        let failure = &mut found[at];
        failure.count += 1;
        if !failure.subjects.contains(&cell.trial.subject) {
            failure.subjects.push(cell.trial.subject.clone());
        }
    }
    found.sort_by_key(|f| std::cmp::Reverse(f.count));
    found
}

fn invalid(cells: &Cells<'_>) -> Vec<InvalidTrial> {
    cells
        .counted()
        .filter(|c| !c.reasons.is_empty())
        .map(|c| InvalidTrial {
            trial: c.trial.trial,
            block: c.trial.block,
            subject: c.trial.subject.clone(),
            baseline_copy: c.trial.baseline_copy,
            condition: c.trial.condition.clone(),
            reasons: c.reasons.clone(),
        })
        .collect()
}

#[cfg(test)]
mod tests;
