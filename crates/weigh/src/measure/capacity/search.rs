//! The search for the highest rate, and the curve around it.

use std::time::Duration;

use fastrand::Rng;
use readings::text::rate;
use readings::{Pacing, RATE_MAX_PER_S};
use report::time;
use verdict::capacity::{
    Capacity, Judgement, Objective, Offer, Outcome, RateStep, Search, SearchOptions, Step, times_of,
};

use super::lengths::StepLengths;
use super::steps::Steps;
use crate::cli::CapacityArgs;
use crate::failure::Failure;

/// The rates of the curve, as shares of the highest that held.
const SHARES: [f64; 5] = [0.2, 0.4, 0.6, 0.8, 0.9];
const ROUNDS: u32 = 3;
/// The lowest rate that is offered unasked, requests per second.
const LOWEST: f64 = 0.1;
/// How long the closed loop runs that tells where to begin.
const FIRST_LOOK: Duration = Duration::from_secs(1);

pub(super) struct Found {
    pub capacity: Capacity,
    pub steps: Vec<RateStep>,
    /// What ended the search early, after the steps that were made.
    pub failure: Option<Failure>,
}

/// The state of a search under way.
struct Under<'a> {
    objective: &'a Objective,
    steps: &'a Steps<'a>,
    search: Search,
    made: Vec<RateStep>,
    lengths: StepLengths<'a>,
    /// Messages per second of a stream in the last trial; 0 before the first.
    messages_per_stream_s: f64,
    /// What ended the search, once there were steps to keep.
    failure: Option<Failure>,
}

/// Searches until enough is known, a signal comes, or the steps run out. When the bounds stand,
/// the trials that refine the answer take turns with those of the curve: they lie apart in time
/// then, and resemble each other less.
pub(super) fn search(
    objective: &Objective,
    steps: &Steps<'_>,
    seed: u64,
) -> Result<Found, Failure> {
    let args = steps.args;
    let lengths = StepLengths::of(objective, args);
    let Range { min, max } = Range::of(objective, args)?;
    let start = match (args.start, objective.offered()) {
        (Some(number), Offer::Streams) => number.round(),
        (Some(rate), Offer::Requests | Offer::Users) => rate,
        (None, Offer::Requests | Offer::Users) => first_look(steps)?,
        (None, Offer::Streams) => f64::from(args.connections),
    };
    let options = SearchOptions {
        min_per_s: min,
        max_per_s: max,
        precision: args.precision,
        max_trials: args.max_steps,
        whole: objective.offered() == Offer::Streams,
        ..SearchOptions::around(start)
    };
    let options = SearchOptions {
        start_per_s: options.start_per_s.max(min).min(max),
        ..options
    };
    let mut under = Under {
        objective,
        steps,
        search: Search::new(options).map_err(Failure::words)?,
        made: Vec::new(),
        lengths,
        messages_per_stream_s: 0.0,
        failure: None,
    };
    let rounds = args.rounds.unwrap_or(ROUNDS);
    let mut random = Rng::with_seed(seed);
    if under.until_bounds()? {
        under.refine(rounds, min, &mut random)?;
    }
    Ok(Found {
        capacity: under.search.so_far(),
        steps: under.made,
        failure: under.failure,
    })
}

/// Checks what the options ask for, before anything is sent.
///
/// # Errors
/// When no rate is in their range, or no length that a step can have.
pub(super) fn check(objective: &Objective, args: &CapacityArgs) -> Result<(), Failure> {
    Range::of(objective, args).map(drop)
}

/// The most streams that a search opens.
const STREAMS_MAX: f64 = 100_000.0;

/// The rates, or the numbers of streams, that a search may offer.
struct Range {
    min: f64,
    max: f64,
}

impl Range {
    fn of(objective: &Objective, args: &CapacityArgs) -> Result<Self, Failure> {
        let longest = args.longest_step();
        let max = args.max.unwrap_or(match objective.offered() {
            Offer::Requests | Offer::Users => RATE_MAX_PER_S,
            Offer::Streams => STREAMS_MAX,
        });
        if let Some(min) = args.min.filter(|min| *min > max) {
            return Err(Failure::words(format!(
                "--min {} is above --max {}: no rate lies between them; swap them, or leave one out",
                rate(min),
                rate(max)
            )));
        }
        if objective.offered() == Offer::Streams {
            let (min, max) = (args.min.unwrap_or(1.0).ceil().max(1.0), max.floor());
            if min > max {
                return Err(Failure::words(
                    "--min and --max: expected a whole number of streams, at least 1, between them",
                ));
            }
            return Ok(Self { min, max });
        }
        let lengths = StepLengths::of(objective, args);
        let lowest = lengths.requests_for_quantile / longest.as_secs_f64();
        if lowest > max {
            let highest = match args.max {
                Some(_) => format!("--max {}", rate(max)),
                None => format!("--objective: the highest rate is {} requests/s", rate(max)),
            };
            return Err(Failure::words(format!(
                "{highest}: the objective's quantile needs {} requests in a step of at most {}, \
                 which is {} requests/s; allow longer steps (--step-max), or use a lower quantile",
                rate(lengths.requests_for_quantile),
                time(longest.as_secs_f64() * 1e6),
                rate(lowest),
            )));
        }
        let min = args.min.unwrap_or(LOWEST.min(max)).max(lowest);
        Ok(Self { min, max })
    }
}

/// Half of what a closed loop carries.
fn first_look(steps: &Steps<'_>) -> Result<f64, Failure> {
    let length = FIRST_LOOK.min(steps.args.step);
    let reading = steps.make(Pacing::Closed, steps.args.connections, length)?;
    let Some(reading) = reading else {
        // A signal came; nothing is offered any more.
        return Ok(1.0);
    };
    let users = reading.users.as_deref();
    let per_s = match users {
        None => reading.requests_per_s(),
        Some(users) => (users.rounds as f64 / reading.duration_s).max(LOWEST),
    };
    if per_s <= 0.0 || reading.requests == 0 {
        let flaws = verdict::load_flaws(&reading);
        let wrong: Vec<String> = flaws.iter().map(report::flaw).collect();
        let wrong = wrong.join("; ");
        return Err(Failure::failed(format!(
            "{}: no good answer came in a closed loop{}{wrong}",
            steps.args.url,
            if wrong.is_empty() { "" } else { ": " },
        )));
    }
    steps.print(&format!(
        "closed loop with {} connections: {} {}/s",
        steps.args.connections,
        rate(per_s),
        if users.is_some() { "users" } else { "requests" }
    ));
    Ok(digits(per_s / 2.0))
}

/// Four significant digits.
fn digits(per_s: f64) -> f64 {
    let scale = 10f64.powi(3 - per_s.log10().floor() as i32);
    (per_s * scale).round() / scale
}

impl Under<'_> {
    /// Goes on until the bounds stand, or there will be none. Whether no signal came.
    fn until_bounds(&mut self) -> Result<bool, Failure> {
        while !self.search.bounds_stand() {
            let Step::Offer { rate_per_s } = self.search.next() else {
                break;
            };
            if !self.offer(rate_per_s, false)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The rates of the curve, each once per round in random order, and between them what the
    /// search still asks for.
    fn refine(&mut self, rounds: u32, min: f64, random: &mut Rng) -> Result<(), Failure> {
        let capacity = self.search.so_far();
        let most = capacity.lower_per_s.or(capacity.upper_per_s);
        let mut rates: Vec<f64> = most
            .into_iter()
            .flat_map(|most| SHARES.map(|share| digits(share * most)))
            .filter(|rate| *rate >= min)
            .collect();
        let mut of_curve: Vec<f64> = Vec::new();
        for _ in 0..rounds {
            random.shuffle(&mut rates);
            of_curve.extend(&rates);
        }
        let mut of_curve = of_curve.into_iter();
        loop {
            let beside = of_curve.next();
            if let Some(rate) = beside
                && !self.offer(rate, true)?
            {
                return Ok(());
            }
            match self.search.next() {
                Step::Offer { rate_per_s } => {
                    if !self.offer(rate_per_s, false)? {
                        return Ok(());
                    }
                }
                Step::Done(_) if beside.is_none() => return Ok(()),
                Step::Done(_) => {}
            }
        }
    }

    /// One trial, of the curve or of the search. Whether it was made to its end.
    ///
    /// # Errors
    /// When the first trial fails; the failure of a later one is kept.
    fn offer(&mut self, rate_per_s: f64, of_curve: bool) -> Result<bool, Failure> {
        let args = self.steps.args;
        let (pacing, connections, length) = match self.objective.offered() {
            Offer::Requests | Offer::Users => {
                let pacing = Pacing::Open { rate_per_s };
                (pacing, args.connections, self.lengths.at(rate_per_s))
            }
            Offer::Streams => {
                let streams = rate_per_s.round().max(1.0);
                let messages_per_s = self.messages_per_stream_s * streams;
                let length = self.lengths.of_streams(messages_per_s);
                (Pacing::Closed, streams as u32, length)
            }
        };
        let load = match self.steps.make(pacing, connections, length) {
            Ok(Some(load)) => {
                let messages_per_s = load.messages() as f64 / load.duration_s;
                self.messages_per_stream_s = messages_per_s / f64::from(connections);
                load
            }
            Ok(None) => return Ok(false),
            Err(failure) if self.made.is_empty() => return Err(failure),
            Err(failure) => {
                self.failure = Some(failure);
                return Ok(false);
            }
        };
        let judgement = self.objective.judge_load(&load);
        let outcome = Outcome::from(&judgement);
        match of_curve {
            true => self.search.record_beside(rate_per_s, outcome),
            false => self.search.record(rate_per_s, outcome),
        }
        let why = report::why_unmet(&judgement).join(", ");
        self.steps.print(&format!(
            "{:>4}  {:>9} {}  p50 {:>7}  p99 {:>7}  {}",
            self.made.len() + 1,
            rate(rate_per_s),
            report::offered(self.objective),
            time(times_of(&load).quantile_us(0.5)),
            time(times_of(&load).quantile_us(0.99)),
            match &judgement {
                Judgement::Met => "held".to_owned(),
                Judgement::Missed(_) => format!("did not hold: {why}"),
                Judgement::Unusable(_) => format!("says nothing: {why}"),
            }
        ));
        self.made.push(RateStep {
            rate_per_s,
            load,
            judgement,
        });
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};
    use testing::Text as _;

    use super::*;

    fn range(options: &[&str]) -> Result<Range, String> {
        let command = CapacityArgs::augment_args(Command::new("capacity").no_binary_name(true));
        let all = ["http://h/", "--objective", "p50<10ms"]
            .iter()
            .chain(options);
        let matches = command.try_get_matches_from(all).unwrap();
        let args = CapacityArgs::from_arg_matches(&matches).unwrap();
        let objective = args.objective.as_deref().unwrap().parse().unwrap();
        Range::of(&objective, &args).map_err(|e| match e {
            Failure::Words(text) => text,
            _ => "not about the options".to_owned(),
        })
    }

    #[test]
    fn a_range_without_a_rate_is_refused_for_its_own_reason() {
        let wrong = |options: &[&str]| range(options).err().unwrap();
        let text = wrong(&["--min", "100", "--max", "5"]);
        assert!(text.contains("--min 100 is above --max 5"), "{text}");
        assert!(!text.contains("quantile"), "{text}");
        // p50 needs 220 requests, in 30 s.
        let text = wrong(&["--max", "7"]);
        text.has("--max 7.00: the objective's quantile needs 220");
        let text = wrong(&["--min", "1", "--max", "7"]);
        text.has("needs 220 requests in a step of at most 30");
        let Range { min, max } = range(&["--min", "40", "--max", "40"]).unwrap();
        assert_eq!((min, max), (40.0, 40.0));
        assert_eq!(range(&[]).unwrap().max, RATE_MAX_PER_S);
    }

    #[test]
    fn the_longest_step_follows_a_step_above_its_default() {
        let lowest = |options: &[&str]| range(options).unwrap().min;
        assert_eq!(lowest(&[]), 220.0 / 30.0);
        assert_eq!(lowest(&["--step", "40s"]), 220.0 / 40.0);
        assert_eq!(lowest(&["--step", "1s", "--step-max", "2s"]), 110.0);
    }

    #[test]
    fn rates_are_those_that_anybody_would_write_down() {
        assert_eq!(digits(12_345.6), 12_350.0);
        assert_eq!(digits(0.123_45), 0.1235);
    }
}
