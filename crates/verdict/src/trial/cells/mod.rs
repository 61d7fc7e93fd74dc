//! The trials of a run, judged, and which of them figures rest on.

pub(crate) mod cell;
pub(crate) mod judged;

use std::collections::{BTreeMap, BTreeSet};

use readings::{Condition, GateMetric, LOAD_KEY, RunHeader, Trial};

use crate::Metric;
use crate::trial::loops::Loop;
pub(crate) use cell::Cell;

/// One subject's trials under one condition: by block, its attempts, see [`Cells::attempts`].
pub(crate) type Attempts<'c, 'a> = BTreeMap<u32, Vec<&'c Cell<'a>>>;

/// The trials of a run, judged and found by condition, subject and block.
pub(crate) struct Cells<'a> {
    /// Every row of the journal.
    rows: Vec<Cell<'a>>,
    /// The rows that count, see [`latest`](cell::latest), in the order in which they were first seen.
    counted: Vec<usize>,
    by_subject: BTreeMap<SubjectKey<'a>, BTreeMap<u32, BlockRows>>,
    by_condition: BTreeMap<&'a Condition, Vec<usize>>,
    /// The attempt at each block that figures of all subjects are taken from, see [`Cells::judged`].
    attempt_for_all: BTreeMap<(&'a Condition, u32, Loop), u32>,
    /// Conditions as declared, then those that only the trials name.
    pub conditions: Vec<Condition>,
    /// Subjects as declared, then those that only the trials name.
    pub subjects: Vec<String>,
    baseline: String,
    /// Factors that act on the open loop only.
    pub open_loop_factors: Vec<String>,
    /// The metrics that the run asks for, to be compared or bounded.
    asked: Vec<GateMetric>,
    /// How many pairs of condition and subject a complete block has rows for.
    declared: usize,
    /// Of several loads the first compared one.
    main_load: Option<String>,
}

type SubjectKey<'a> = (&'a Condition, &'a str, bool);

struct BlockRows {
    attempts: Vec<usize>,
    /// Where in `counted` the row that counts is.
    place: usize,
}

impl<'a> Cells<'a> {
    /// The trials of the compared loads.
    pub fn of(header: &RunHeader, trials: impl IntoIterator<Item = &'a Trial>) -> Self {
        let trials = trials.into_iter();
        let compared = trials.filter(|trial| !header.is_background(&trial.condition));
        Self::of_all(header, compared)
    }

    /// The trials of the background loads.
    pub fn of_background(header: &RunHeader, trials: impl IntoIterator<Item = &'a Trial>) -> Self {
        let header = &RunHeader {
            conditions: Vec::new(),
            ..header.clone()
        };
        let trials = trials.into_iter();
        let background = trials.filter(|trial| header.is_background(&trial.condition));
        Self::of_all(header, background)
    }

    fn of_all(header: &RunHeader, trials: impl Iterator<Item = &'a Trial>) -> Self {
        let mut cells = Cells {
            rows: Vec::new(),
            counted: Vec::new(),
            by_subject: BTreeMap::new(),
            by_condition: BTreeMap::new(),
            attempt_for_all: BTreeMap::new(),
            conditions: header.conditions.clone(),
            subjects: header.subjects.clone(),
            baseline: header.baseline.clone(),
            open_loop_factors: header.open_loop_factors.clone(),
            asked: (header.primary.iter().copied())
                .chain(header.gates.iter().map(|gate| gate.metric))
                .collect(),
            declared: header.conditions.len() * header.subjects.len(),
            main_load: header.main_load().map(str::to_owned),
        };
        let mut conditions: BTreeSet<&Condition> = header.conditions.iter().collect();
        for trial in trials {
            if conditions.insert(&trial.condition) {
                cells.conditions.push(trial.condition.clone());
            }
            if !cells.subjects.contains(&trial.subject) {
                cells.subjects.push(trial.subject.clone());
            }
            let cell = Cell::judge(trial, header.max_error);
            cells.add(cell);
        }
        cells.choose_attempts();
        cells
    }

    /// Whether a metric is in the run's result: some only are where it asks for them.
    pub fn shows(&self, metric: Metric) -> bool {
        let is_asked = |gate| self.asked.contains(&gate);
        !metric.is_on_demand() || metric.gate().is_some_and(is_asked)
    }

    /// Of trials that were measured one after the other, so that no two slices are neighbours.
    pub fn not_in_turns(mut self) -> Self {
        for cell in &mut self.rows {
            cell.in_turns = false;
        }
        self
    }

    /// Chooses, for each loop of each block, the attempt with the most usable subjects, the last of
    /// several such.
    fn choose_attempts(&mut self) {
        let mut usable: BTreeMap<(&'a Condition, u32, Loop), BTreeMap<u32, usize>> =
            BTreeMap::new();
        for cell in &self.rows {
            for of in [Loop::Closed, Loop::Open] {
                let key = (&cell.trial.condition, cell.trial.block, of);
                let attempts = usable.entry(key).or_default();
                *attempts.entry(cell.trial.attempt).or_default() += usize::from(cell.is_usable(of));
            }
        }
        let chosen = usable.into_iter().filter_map(|(key, attempts)| {
            let most = attempts
                .into_iter()
                .max_by_key(|(attempt, n)| (*n, *attempt));
            Some((key, most?.0))
        });
        self.attempt_for_all = chosen.collect();
    }

    fn add(&mut self, cell: Cell<'a>) {
        let (trial, at) = (cell.trial, self.rows.len());
        let key = (
            &trial.condition,
            trial.subject.as_str(),
            trial.baseline_copy,
        );
        let blocks = self.by_subject.entry(key).or_default();
        match blocks.get_mut(&trial.block) {
            Some(rows) => {
                let counted = &mut self.counted[rows.place];
                if cell.worth() >= self.rows[*counted].worth() {
                    *counted = at;
                }
                rows.attempts.push(at);
            }
            None => {
                let place = self.counted.len();
                self.counted.push(at);
                let attempts = vec![at];
                blocks.insert(trial.block, BlockRows { attempts, place });
                let of_condition = self.by_condition.entry(&trial.condition).or_default();
                of_condition.push(place);
            }
        }
        self.rows.push(cell);
    }

    /// The rows that count.
    pub fn counted(&self) -> impl Iterator<Item = &Cell<'a>> {
        self.counted.iter().map(|at| &self.rows[*at])
    }

    /// The rows that count, with only one for each trial if several loads were made.
    pub fn counted_trials(&self) -> impl Iterator<Item = &Cell<'a>> {
        let is_first = |cell: &&Cell<'a>| match &self.main_load {
            Some(main) => cell.trial.condition.get(LOAD_KEY) == Some(main),
            None => true,
        };
        self.counted().filter(is_first)
    }

    /// Whether a key of a condition names one of several loads, and not a factor.
    pub fn names_loads(&self, key: &str) -> bool {
        self.main_load.is_some() && key == LOAD_KEY
    }

    /// How many blocks are complete, and how many were begun. A block is complete when every
    /// declared subject was tried under every declared condition, with whatever outcome. A subject
    /// that was never measured under a condition may be left out of it.
    pub fn blocks(&self) -> (u32, u32) {
        let mut rows: BTreeMap<u32, usize> = BTreeMap::new();
        let mut measured: BTreeMap<(&Condition, &str), bool> = BTreeMap::new();
        for cell in self.counted().filter(|cell| !cell.trial.baseline_copy) {
            let key = (&cell.trial.condition, cell.trial.subject.as_str());
            *measured.entry(key).or_default() |= cell.reading().is_some();
        }
        for cell in self.counted() {
            let key = (&cell.trial.condition, cell.trial.subject.as_str());
            let counts = !cell.trial.baseline_copy && measured.get(&key) == Some(&true);
            *rows.entry(cell.trial.block).or_default() += usize::from(counts);
        }
        let never = measured.values().filter(|measured| !**measured).count();
        let needed = self.declared.saturating_sub(never);
        let complete = rows.values().filter(|n| **n >= needed).count();
        (complete as u32, rows.len() as u32)
    }

    /// The trials of one subject under one condition that count, by block.
    pub fn of_subject(
        &self,
        condition: &Condition,
        subject: &str,
        baseline_copy: bool,
    ) -> BTreeMap<u32, &Cell<'a>> {
        let blocks = self.by_subject.get(&(condition, subject, baseline_copy));
        let blocks = blocks.into_iter().flatten();
        let counted = |rows: &BlockRows| &self.rows[self.counted[rows.place]];
        blocks
            .map(|(block, rows)| (*block, counted(rows)))
            .collect()
    }

    /// One subject's trials under one condition, for a load: those that all figures, tables and
    /// pictures of it rest on, one for each block. Whether its load can be used, each says itself.
    ///
    /// Figures of several subjects are compared, so those of a block are of one attempt: the one with
    /// the most usable subjects, the last of several such. Where the subject's load cannot be used in
    /// it, its last attempt counts in which both it and the baseline can be used, as in the
    /// comparisons; then its last usable one; then the row that counts.
    pub fn judged(
        &self,
        of: Loop,
        condition: &Condition,
        subject: &str,
        baseline_copy: bool,
    ) -> BTreeMap<u32, &Cell<'a>> {
        let mut trials = self.of_subject(condition, subject, baseline_copy);
        let baseline = self.attempts(of, condition, &self.baseline, false);
        for (block, attempts) in self.attempts(of, condition, subject, baseline_copy) {
            let theirs = baseline.get(&block);
            let beside_usable = |cell: &&Cell<'a>| {
                let mut others = theirs.into_iter().flatten();
                others.any(|other| other.trial.attempt == cell.trial.attempt && other.is_usable(of))
            };
            let usable = || attempts.iter().rev().filter(|cell| cell.is_usable(of));
            let chosen = self.attempt_for_all.get(&(condition, block, of));
            let first = attempts
                .last()
                .filter(|cell| Some(&cell.trial.attempt) == chosen);
            let best = first.filter(|cell| cell.is_usable(of));
            let best = best.or_else(|| usable().find(|cell| beside_usable(cell)));
            if let Some(row) = best.or_else(|| usable().next()).or(first) {
                trials.insert(block, row);
            }
        }
        trials
    }

    /// Every attempt of one subject under one condition; the one from which figures of all subjects
    /// are taken comes last, the others before it as they were made.
    pub fn attempts(
        &self,
        of: Loop,
        condition: &Condition,
        subject: &str,
        baseline_copy: bool,
    ) -> Attempts<'_, 'a> {
        let blocks = self.by_subject.get(&(condition, subject, baseline_copy));
        let blocks = blocks.into_iter().flatten();
        let all = |block: u32, rows: &BlockRows| {
            let mut cells: Vec<&Cell<'a>> =
                rows.attempts.iter().map(|at| &self.rows[*at]).collect();
            let chosen = self.attempt_for_all.get(&(condition, block, of));
            cells.sort_by_key(|cell| Some(&cell.trial.attempt) == chosen);
            cells
        };
        blocks
            .map(|(block, rows)| (*block, all(*block, rows)))
            .collect()
    }

    /// Every row of the journal, judged, with whether it is the one that counts.
    pub fn all(&self) -> impl Iterator<Item = (&Cell<'a>, bool)> {
        let counted: BTreeSet<usize> = self.counted.iter().copied().collect();
        let rows = self.rows.iter().enumerate();
        rows.map(move |(at, cell)| (cell, counted.contains(&at)))
    }

    /// Whether trials were made in exactly this condition.
    pub fn is_condition(&self, condition: &Condition) -> bool {
        self.by_condition.contains_key(condition)
    }

    /// The trials of a condition that count.
    pub fn of_condition(&self, condition: &Condition) -> impl Iterator<Item = &Cell<'a>> {
        let places = self.by_condition.get(condition);
        let places = places.into_iter().flatten();
        places.map(|place| &self.rows[self.counted[*place]])
    }

    /// Whether the subjects of a condition have different load drivers.
    pub fn drivers_differ(&self, condition: &Condition) -> bool {
        let mut labels = self
            .of_condition(condition)
            .filter_map(Cell::reading)
            .map(|reading| reading.driver.as_ref().map(|driver| driver.label()));
        let first = labels.next();
        labels.any(|label| Some(label) != first)
    }

    /// The trials' warnings, each with the number of trials that have it.
    pub fn trial_warnings(&self) -> Vec<(String, usize)> {
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        let mut found: Vec<(String, usize)> = Vec::new();
        let readings = self.counted().filter_map(Cell::reading);
        for text in readings.flat_map(|reading| &reading.warnings) {
            let at = *places.entry(text).or_insert_with(|| {
                found.push((text.clone(), 0));
                found.len() - 1
            });
            found[at].1 += 1;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{closed, done, header, in_closed, open, trial};
    use crate::{Flaw, latest, trial_flaws};
    use readings::Outcome;

    #[test]
    fn a_later_row_replaces_the_earlier_one() {
        let failed = Outcome::failed("no port", readings::FailureCause::Subject);
        let trials = [
            trial(1, "direct", false, failed.clone()),
            trial(1, "direct", true, failed.clone()),
            in_closed(1, "direct", closed(1000.0)),
        ];
        let rows = latest(&header(1), &trials);
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0], &trials[2]);
        assert_eq!(rows[1], &trials[1]);
    }

    #[test]
    fn the_last_valid_row_counts() {
        let mut wrong = closed(900.0);
        wrong.errors_all.status = 9_000;
        let row = |load| in_closed(1, "direct", load);
        let header = header(1);
        let trials = [
            row(closed(1000.0)),
            row(closed(1100.0)),
            row(wrong.clone()),
            trial(
                1,
                "direct",
                false,
                Outcome::failed("no port", readings::FailureCause::Subject),
            ),
        ];
        assert_eq!(latest(&header, &trials), [&trials[1]]);
        // What was measured, though wrong, says more than that nothing could be.
        assert_eq!(latest(&header, &trials[2..]), [&trials[2]]);
        assert_eq!(
            trial_flaws(&header, &trials[2])[0].load_loop,
            Some(Loop::Closed)
        );
    }

    #[test]
    fn a_trial_whose_rows_are_used_up_cannot_be_used() {
        let mut load = closed(1000.0);
        load.used_up = Some("account".into());
        let flaws = trial_flaws(&header(1), &in_closed(1, "direct", load));
        let used_up = Flaw::UsedUp {
            feed: "account".into(),
        };
        assert_eq!(flaws.first().map(|one| &one.flaw), Some(&used_up));
    }

    #[test]
    fn a_block_is_complete_without_a_subject_that_never_worked() {
        let failed = || Outcome::failed("no port", readings::FailureCause::Subject);
        let header = header(2);
        let mut trials = Vec::new();
        for (block, outcome) in [(1, failed()), (2, done(Some(closed(900.0)), None))] {
            for subject in &header.subjects[1..] {
                trials.push(trial(block, subject, false, outcome.clone()));
            }
            let good = done(Some(closed(1000.0)), None);
            trials.push(trial(block, &header.subjects[0], false, good));
        }
        let others = header.subjects.len() - 1;
        assert_eq!(Cells::of(&header, &trials).blocks(), (2, 2));
        // Left out of the second block.
        trials.drain(others + 1..2 * others + 1);
        assert_eq!(Cells::of(&header, &trials).blocks(), (2, 2));
        // One that worked is missing.
        trials[0].outcome = done(Some(closed(900.0)), None);
        assert_eq!(Cells::of(&header, &trials).blocks(), (1, 2));
    }

    #[test]
    fn wrong_answers_spoil_the_trial_and_lateness_only_its_own_load() {
        let mut late = open(1000.0, 300.0);
        late.client.saturated = true;
        let mut wrong = closed(1000.0);
        wrong.errors_all.status = 1000;
        let trials = [
            trial(1, "direct", false, done(Some(closed(1000.0)), Some(late))),
            trial(
                2,
                "direct",
                false,
                done(Some(wrong), Some(open(1000.0, 300.0))),
            ),
        ];
        let header = header(2);
        let cells = Cells::of(&header, &trials);
        let all: Vec<&Cell<'_>> = cells.counted().collect();
        assert!(all[0].throughput().is_some());
        assert!(all[0].latency().is_none());
        assert!(all[1].throughput().is_none());
        assert!(all[1].latency().is_none());
        assert_eq!(all[1].reasons.len(), 1);
        let wrong = &all[1].reasons[0];
        assert_eq!(wrong.load_loop, Some(Loop::Closed));
        assert!(matches!(
            wrong.flaw,
            Flaw::WrongAnswers { wrong: 1_000, .. }
        ));
    }
}
