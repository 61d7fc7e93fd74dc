//! What the index keeps of a run.

use std::collections::BTreeMap;

use readings::{Condition, Journal};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use verdict::{
    Analysis, Bound, Comparison, FEWEST_BLOCKS, Metric, NoiseFloor, Verdict, t_quantile,
    t_two_sided_p,
};

use crate::change::Point;
use crate::commits::{commits_of, is_built, words};
use crate::facts::{Facts, digest, experiment_facts, machine_facts, machine_words, take_names};

/// The version of the index's lines. Lines of another version are skipped until a rebuild.
pub(crate) const FORMAT: u32 = 1;
/// The smallest standard deviation of block ratios that is believed, as in `verdict`: smaller
/// differences come from rounding.
const FINEST: f64 = 5e-4;
/// Below this p value, the baseline differs from its copy, and the bias adds to the run's error.
const BIASED: f64 = 0.01;

/// What the index keeps of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEntry {
    pub format: u32,
    /// The run's folder, relative to the folder of runs.
    pub folder: String,
    /// The state of the journal that the entry was made from.
    pub journal: JournalStamp,
    pub started_unix_s: u64,
    pub experiment: String,
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    pub complete: bool,
    pub baseline: String,
    /// The smallest difference that matters, as a fraction.
    pub matters: f64,
    /// What two runs must share to be on one line.
    pub comparable: Comparable,
    /// Digest of the machine's facts and name. Absolute figures are compared only if it is equal.
    pub host: String,
    /// The machine in words.
    pub machine: String,
    /// The facts of the machine, from which a break says what differs.
    pub machine_facts: Facts,
    /// The first sentence of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentence: Option<String>,
    pub figures: Vec<Figure>,
}

/// Identifies the journal that an entry was made from. It changes when the journal grows or is
/// replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalStamp {
    pub bytes: u64,
    /// When the file was last changed, in nanoseconds since 1970.
    pub modified_unix_ns: u64,
}

/// What makes runs comparable. So does the baseline's commit, which figures have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Comparable {
    /// Digest of the experiment without the servers' settings.
    pub experiment: String,
    /// Digest of the servers' settings, without the names of revisions.
    pub settings: String,
    /// Digest of the machine's facts, without its name.
    pub machine: String,
    /// The version of `weigh`, and so of the method.
    pub method: String,
    /// The versions of servers and drivers, by recipe, without those that were built from a revision.
    pub versions: BTreeMap<String, String>,
}

/// A subject against the baseline of the same run, under one condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    pub condition: Condition,
    pub metric: String,
    pub subject: String,
    /// Mean over blocks of the log of subject over baseline.
    pub log_ratio: f64,
    /// The standard error that the interval of the verdict implies, which allows for dependent
    /// blocks, other programs and steps.
    pub standard_error: f64,
    /// The same from the spread of the blocks alone, their standard deviation over the root of
    /// their number.
    pub standard_error_of_blocks: f64,
    pub degrees: f64,
    pub blocks: usize,
    /// The baseline's copy over the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_floor: Option<FloorFigure>,
    /// Why the search for changes leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unused: Option<String>,
    /// Whether the client was the bottleneck for the baseline. The ratio is then the subject over
    /// what the client could carry.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub client_limited_baseline: bool,
    /// The commits that the subject's servers were built from, if they were built from a revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_commit: Option<String>,
    /// In the metric's unit.
    pub subject_value: Option<f64>,
    pub baseline_value: Option<f64>,
}

/// The noise floor of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FloorFigure {
    pub log_ratio: f64,
    /// From the spread of the blocks alone.
    pub standard_error: f64,
    pub degrees: f64,
    /// The ends of the report's interval, as log ratios, where it has both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<(f64, f64)>,
}

impl FloorFigure {
    /// The ends of the interval of the log ratio, as the run's report has them.
    pub fn interval(&self) -> (f64, f64) {
        let half = t_quantile(0.975, self.degrees) * self.standard_error;
        self.ends
            .unwrap_or((self.log_ratio - half, self.log_ratio + half))
    }
}

impl Figure {
    /// The figure as a point of its series. If the baseline differed from its copy, that bias is
    /// part of the error.
    pub fn point(&self) -> Point {
        let bias = self.noise_floor.filter(|floor| {
            t_two_sided_p(floor.log_ratio / floor.standard_error, floor.degrees) < BIASED
        });
        let bias = bias.map_or(0.0, |floor| floor.log_ratio);
        Point {
            value: self.log_ratio,
            standard_error: self.standard_error_of_blocks.hypot(bias),
            degrees: self.degrees,
        }
    }

    /// The ends of the 95% interval of the log ratio.
    pub fn interval(&self) -> (f64, f64) {
        let half = t_quantile(0.975, self.degrees) * self.standard_error;
        (self.log_ratio - half, self.log_ratio + half)
    }
}

/// The metric of this name, if it has a history. Figures of events have none because they are
/// differences, those of drivers because they are not about servers, and those that few runs ask for.
pub(crate) fn metric(name: &str) -> Option<Metric> {
    let followed = |m: &Metric| !m.is_of_events() && !m.is_of_driver() && !m.is_on_demand();
    Metric::ALL
        .into_iter()
        .filter(followed)
        .find(|m| m.name() == name)
}

/// The names of the metrics that have a history.
pub fn metric_names() -> Vec<&'static str> {
    let names = Metric::ALL.into_iter().map(Metric::name);
    names.filter(|name| metric(name).is_some()).collect()
}

impl RunEntry {
    /// Makes the entry of a run from its journal, and from its `experiment.toml` and `hosts.json`
    /// where these are there.
    pub fn of(
        folder: &str,
        stamp: JournalStamp,
        journal: &Journal,
        experiment: Option<&str>,
        hosts: Option<&Value>,
    ) -> Self {
        let analysis = verdict::analyse(journal);
        Self::analysed(folder, stamp, journal, &analysis, experiment, hosts)
    }

    /// The same, with what the journal was found to say.
    pub fn analysed(
        folder: &str,
        stamp: JournalStamp,
        journal: &Journal,
        analysis: &Analysis,
        experiment: Option<&str>,
        hosts: Option<&Value>,
    ) -> Self {
        let header = &journal.header;
        let facts = experiment.map(experiment_facts).unwrap_or_default();
        let (mut servers, mut asked): (Facts, Facts) = facts
            .into_iter()
            .partition(|(name, _)| name.starts_with("servers."));
        servers.retain(|name, _| !is_name_of_revision(hosts, name));
        // A folder may lack the file; the journal knows this much.
        asked.insert("baseline".into(), header.baseline.clone());
        asked.insert("conditions".into(), format!("{:?}", header.conditions));
        let mut machine = hosts.map(machine_facts).unwrap_or_default();
        let name = take_names(&mut machine);
        let digest_of_machine = digest(&machine);
        let mut figures = figures(analysis);
        for figure in &mut figures {
            let condition = &figure.condition;
            let commit = commits_of(journal, hosts, condition, &figure.subject);
            let baseline_commit = commits_of(journal, hosts, condition, &header.baseline);
            (figure.commit, figure.baseline_commit) = (commit, baseline_commit);
        }
        Self {
            format: FORMAT,
            folder: folder.to_owned(),
            journal: stamp,
            started_unix_s: header.started_unix_s,
            experiment: header.experiment.clone(),
            title: header.title.clone(),
            label: header.label.clone(),
            revision: header.revision.clone(),
            complete: journal.is_complete(),
            baseline: header.baseline.clone(),
            matters: header.matters,
            comparable: Comparable {
                experiment: digest(&asked),
                settings: digest(&servers),
                machine: digest_of_machine.clone(),
                method: header.weigh_version.clone(),
                versions: versions(journal, hosts),
            },
            host: format!("{digest_of_machine}/{name}"),
            machine: machine_words(&name, &machine),
            machine_facts: machine,
            sentence: first_sentence(journal, analysis),
            figures,
        }
    }

    /// The name of this version for people: label and commits of the subjects, or else the short
    /// revision.
    pub fn name_of_version(&self) -> Option<String> {
        let figures = self.figures.iter();
        let named = figures.filter_map(|f| Some((f.subject.as_str(), f.commit.as_deref()?)));
        self.version_with(words(named))
    }

    pub(crate) fn version_of(&self, figure: &Figure) -> Option<String> {
        self.version_with(figure.commit.clone())
    }

    fn version_with(&self, commit: Option<String>) -> Option<String> {
        let short = |revision: &String| {
            let (digits, rest) = revision.split_once('+').unwrap_or((revision, ""));
            let digits: String = digits.chars().take(10).collect();
            match rest {
                "" => digits,
                rest => format!("{digits}+{rest}"),
            }
        };
        let said = [self.label.clone(), commit];
        let said: Vec<String> = said.into_iter().flatten().collect();
        match said.is_empty() {
            true => self.revision.as_ref().map(short),
            false => Some(said.join(", ")),
        }
    }
}

/// Whether a setting names the revision that a server was built from, which stands for a commit.
fn is_name_of_revision(hosts: Option<&Value>, setting: &str) -> bool {
    let inside = setting.strip_prefix("servers.");
    let server = inside.and_then(|inside| inside.strip_suffix(".with.revision"));
    server.is_some_and(|server| is_built(hosts, server))
}

/// The versions of servers and drivers: from `hosts.json`, or else from the journal's settings.
/// Servers that were built from a revision are left out: figures have their commits.
pub(crate) fn versions(journal: &Journal, hosts: Option<&Value>) -> BTreeMap<String, String> {
    let mut of_recipes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let settings = journal.settings();
    let servers = settings.iter().flat_map(|s| &s.subjects);
    let servers = servers.flat_map(|s| &s.servers);
    for server in servers.filter(|s| !is_built(hosts, &s.server)) {
        let versions = of_recipes.entry(server.recipe.clone()).or_default();
        versions.extend(server.version.clone().filter(|one| !versions.contains(one)));
    }
    of_recipes.retain(|_, versions| !versions.is_empty());
    let mut found: BTreeMap<String, String> = of_recipes
        .into_iter()
        .map(|(recipe, versions)| (recipe, versions.join(" and ")))
        .collect();
    for group in ["versions", "drivers"] {
        let Some(all) = hosts.and_then(|h| h["local"][group].as_object()) else {
            continue;
        };
        for (name, version) in all {
            if let Some(version) = version.as_str() {
                found.insert(name.clone(), version.to_owned());
            }
        }
    }
    found
}

fn first_sentence(journal: &Journal, analysis: &Analysis) -> Option<String> {
    let document = report::json(&journal.header, analysis);
    let first = document["comparisons"].get(0)?["sentence"].as_str()?;
    Some(first.to_owned())
}

fn figures(analysis: &Analysis) -> Vec<Figure> {
    let followed = analysis.comparisons.iter();
    let followed = followed.filter(|c| metric(c.metric.name()).is_some());
    followed
        .filter_map(|c| figure(c, &analysis.noise_floor))
        .collect()
}

/// The figure of a comparison; `None` with fewer than three blocks.
pub(crate) fn figure(c: &Comparison, floors: &[NoiseFloor]) -> Option<Figure> {
    let ratios: Vec<f64> = c.by_block.iter().map(|block| block.ratio).collect();
    let (log_ratio, own, degrees) = mean_of(&ratios)?;
    let shown = c.interval().map_or(0.0, |(low, high)| {
        (high / low).ln() / 2.0 / t_quantile(0.5 + c.confidence / 2.0, degrees)
    });
    let standard_error = [own, shown].into_iter().fold(own, f64::max);
    let floor = floors
        .iter()
        .find(|f| f.metric == c.metric && f.condition == c.condition)
        .and_then(|f| {
            let ratios: Vec<f64> = f.by_block.iter().map(|block| block.ratio).collect();
            let (log_ratio, standard_error, degrees) = mean_of(&ratios)?;
            Some(FloorFigure {
                log_ratio: rounded(log_ratio),
                standard_error: rounded(standard_error),
                degrees,
                ends: ends(f.low, f.high),
            })
        });
    let is_at_least = c.bound == Some(Bound::AtLeast);
    let unused = if c.verdict == Verdict::Invalid {
        Some("invalid: too many of its trials cannot be used")
    } else if is_at_least || (c.bound.is_none() && both_limited(c)) {
        Some("the client was the bottleneck for the subject")
    } else {
        None
    };
    let value = |value: Option<f64>| value.map(rounded);
    Some(Figure {
        condition: c.condition.clone(),
        metric: c.metric.name().to_owned(),
        subject: c.subject.clone(),
        log_ratio: rounded(log_ratio),
        standard_error: rounded(standard_error),
        standard_error_of_blocks: rounded(own),
        degrees,
        blocks: ratios.len(),
        noise_floor: floor,
        unused: unused.map(str::to_owned),
        client_limited_baseline: c.bound == Some(Bound::AtMost),
        commit: None,
        baseline_commit: None,
        subject_value: value(c.subject_value),
        baseline_value: value(c.baseline_value),
    })
}

/// The number rounded to ten digits, so that it is the same when read back from the index.
fn rounded(number: f64) -> f64 {
    format!("{number:.9e}").parse().unwrap_or(number)
}

/// The logs of the ends of an interval that has both.
fn ends(low: Option<f64>, high: Option<f64>) -> Option<(f64, f64)> {
    let log = |end: f64| rounded(end.ln());
    low.map(log).zip(high.map(log))
}

/// Whether the client limited both sides. Such a comparison has neither a bound nor an interval.
fn both_limited(c: &Comparison) -> bool {
    c.metric == Metric::RequestsPerS && c.low.is_none() && c.high.is_none()
}

/// Mean of the log ratios, its standard error, and the degrees of freedom of the standard error.
fn mean_of(ratios: &[f64]) -> Option<(f64, f64, f64)> {
    let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    if logs.len() < FEWEST_BLOCKS || !logs.iter().all(|log| log.is_finite()) {
        return None;
    }
    let blocks = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / blocks;
    let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    let sd = (squares / (blocks - 1.0)).sqrt().max(FINEST);
    Some((mean, sd / blocks.sqrt(), blocks - 1.0))
}
