//! Objectives, and whether a load meets one.

use std::fmt;

use readings::{Histogram, LoadReading, Pacing};

use crate::metric::of_trial::enough;
use crate::trial::overload::overload;
use crate::{LateClient, late_at};
use readings::text::{fraction, number, rate};

/// At least this share of the offered rate has to be answered, unless the objective says
/// otherwise: a queue that grows without end has no latency of its own.
pub(super) const ACHIEVED_SHARE: f64 = 0.99;
/// At most this share of the requests may fail, unless the objective says otherwise.
pub(super) const ERROR_SHARE: f64 = 0.001;

/// What a rate has to keep.
///
/// Read from text such as `p99<50ms` or `p99.9 < 200us and errors < 0.1%`: limits joined by `and`
/// or a comma. A limit is a quantity, `<`, `<=`, `>` or `>=`, and a value. Quantities are `p50`,
/// `p99.9` and other percentiles, `mean`, `max` (of the response latency, with `us`, `ms` or `s`),
/// `errors` (share of all requests) and `achieved` (good answers over requests offered), in `%`.
/// Unless a text limits them, errors must be below 0.1% and at least 99% must be achieved.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// Those of the objective's text, then the conditions.
    pub(super) limits: Vec<Limit>,
    /// How many of them stand in the objective's text.
    pub(super) stated: usize,
    pub(super) offered: Offer,
}

/// What a search offers more of, until the objective is not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offer {
    /// Requests per second; limits on latency are those of the response time.
    #[default]
    Requests,
    /// Users who arrive per second; limits on latency are those of their requests.
    Users,
    /// Streams that are open at once; limits on latency are those of the lag of their messages.
    Streams,
}

/// One limit of an objective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    pub quantity: Quantity,
    /// On which side of the value it has to be.
    pub direction: Direction,
    /// The value, in microseconds or as a fraction.
    pub value: f64,
}

/// What a limit is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// A quantile of the response latency, between 0 and 1, in microseconds.
    Quantile(f64),
    /// The mean response latency, in microseconds.
    Mean,
    /// The largest response latency, in microseconds.
    Max,
    /// Failed requests over all requests, as a fraction.
    Errors,
    /// Good answers over requests offered, as a fraction.
    Achieved,
}

/// On which side of its value a quantity has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
}

/// What a trial at one rate measured, as far as objectives ask for it.
pub trait Measured {
    /// A quantity's value; the reason where it cannot be had.
    ///
    /// # Errors
    /// When the measurement does not allow a judgement, as with too few requests for a quantile.
    fn value(&self, quantity: Quantity) -> Result<f64, CannotJudge>;
}

/// What a trial says on an objective.
#[derive(Clone, Debug, PartialEq)]
pub enum Judgement {
    /// Every limit was kept.
    Met,
    /// Limits that were not kept, each with the value that was measured.
    Missed(Vec<(Limit, f64)>),
    /// Nothing can be said, and why.
    Unusable(CannotJudge),
}

/// Why a trial says nothing on an objective.
#[derive(Clone, Debug, PartialEq)]
pub enum CannotJudge {
    /// A closed loop offers no rate.
    ClosedLoop,
    /// The client was too busy to offer the rate on time.
    ClientBusy,
    LateClient(LateClient),
    /// No good answer came.
    NoAnswer,
    /// Messages came of which it is not known when they were due.
    NoLag,
    /// Too few requests stand behind a quantile.
    TooFewRequests {
        quantile: f64,
        requests: u64,
        needed: u64,
    },
}

impl Objective {
    /// The limits, those that were not said at the end.
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// The same of streams that are open at once.
    #[must_use]
    pub fn of_streams(self) -> Self {
        Self {
            offered: Offer::Streams,
            ..self
        }
    }

    /// The same of users who arrive.
    #[must_use]
    pub fn of_users(self) -> Self {
        Self {
            offered: Offer::Users,
            ..self
        }
    }

    /// What is offered.
    pub fn offered(&self) -> Offer {
        self.offered
    }

    /// The limits beside the text of the objective: on errors and on what is achieved, given as
    /// options or implied.
    pub fn conditions(&self) -> String {
        written(&self.limits[self.stated..])
    }

    /// Whether a trial kept the objective.
    pub fn judge(&self, trial: &impl Measured) -> Judgement {
        let mut missed = Vec::new();
        let mut unusable = None;
        for limit in &self.limits {
            match trial.value(limit.quantity) {
                Ok(value) if limit.is_kept(value) => {}
                Ok(value) => missed.push((*limit, value)),
                Err(reason) => unusable = unusable.or(Some(reason)),
            }
        }
        match (missed.is_empty(), unusable) {
            (true, Some(reason)) => Judgement::Unusable(reason),
            (true, None) => Judgement::Met,
            // What was missed stands, whatever else could not be told.
            (false, _) => Judgement::Missed(missed),
        }
    }

    /// Judges an open loop; of streams, a closed one.
    ///
    /// Response times run from when a request was due, so the client's own lateness is in them. An
    /// objective that is kept all the same is kept. One that is missed counts as missed only if
    /// the client's lateness does not explain it; with a busy client nothing is known then.
    pub fn judge_load(&self, load: &LoadReading) -> Judgement {
        if self.offered == Offer::Streams {
            return match self.judge(&OfStreams(load)) {
                Judgement::Missed(_) if load.client.saturated => {
                    Judgement::Unusable(CannotJudge::ClientBusy)
                }
                judgement => judgement,
            };
        }
        if load.pacing == Pacing::Closed {
            return Judgement::Unusable(CannotJudge::ClosedLoop);
        }
        let judgement = self.judge(&AsMeasured(load));
        if judgement == Judgement::Met {
            return judgement;
        }
        if load.client.saturated {
            let late = late_at(load, 0.5).map(CannotJudge::LateClient);
            return Judgement::Unusable(late.unwrap_or(CannotJudge::ClientBusy));
        }
        let Judgement::Missed(all) = judgement else {
            return judgement;
        };
        let explained = self.limits.iter().find_map(|limit| {
            let late = late_at(load, limit.quantity.share()?)?;
            let value = AsMeasured(load).value(limit.quantity).ok()?;
            // It came late to send, and as late to what was answered.
            let lag = load.schedule_lag.quantile_us(limit.quantity.share()?);
            (!limit.is_kept(value) && limit.is_kept(value - 2.0 * lag)).then_some(late)
        });
        match explained {
            // Another limit may have been missed without the client's doing.
            Some(late) if all.len() == 1 => Judgement::Unusable(CannotJudge::LateClient(late)),
            _ => Judgement::Missed(all),
        }
    }
}

/// A load whose response times are taken with the client's lateness in them.
struct AsMeasured<'a>(&'a LoadReading);

impl Measured for AsMeasured<'_> {
    fn value(&self, quantity: Quantity) -> Result<f64, CannotJudge> {
        of_load(self.0, quantity)
    }
}

/// A load of streams: its latency is the lag of their messages.
struct OfStreams<'a>(&'a LoadReading);

impl Measured for OfStreams<'_> {
    fn value(&self, quantity: Quantity) -> Result<f64, CannotJudge> {
        let (load, lag) = (self.0, times_of(self.0));
        let messages = load.messages();
        match quantity {
            Quantity::Errors | Quantity::Achieved => {}
            _ if lag.count() == 0 && messages > 0 => return Err(CannotJudge::NoLag),
            _ if lag.count() == 0 => return Err(CannotJudge::NoAnswer),
            _ => {}
        }
        match quantity {
            Quantity::Quantile(q) if !enough(lag.count(), q) => Err(CannotJudge::TooFewRequests {
                quantile: q,
                requests: lag.count(),
                needed: (100.0 / (1.0 - q)).round() as u64,
            }),
            Quantity::Quantile(q) => Ok(lag.quantile_us(q)),
            Quantity::Mean => Ok(lag.quantiles().mean),
            Quantity::Max => Ok(lag.quantile_us(1.0)),
            Quantity::Errors => {
                let opened = load.lasting.as_ref().map_or(0, |lasting| lasting.opened);
                let failed = load.errors_all.total();
                Ok(failed as f64 / opened.max(failed).max(1) as f64)
            }
            Quantity::Achieved => {
                let lost = load.lasting.as_ref().map_or(0, |lasting| lasting.lost);
                Ok(messages as f64 / (messages + lost).max(1) as f64)
            }
        }
    }
}

/// The times that an objective limits: of streams the lag of their messages, otherwise of responses.
pub fn times_of(load: &LoadReading) -> &Histogram {
    match &load.lasting {
        Some(lasting) if lasting.messages > 0 => &lasting.lag,
        _ => &load.response,
    }
}

impl Measured for LoadReading {
    fn value(&self, quantity: Quantity) -> Result<f64, CannotJudge> {
        if let Quantity::Quantile(q) = quantity
            && let Some(late) = late_at(self, q)
        {
            return Err(CannotJudge::LateClient(late));
        }
        of_load(self, quantity)
    }
}

fn of_load(load: &LoadReading, quantity: Quantity) -> Result<f64, CannotJudge> {
    let counted = load.requests + load.errors.total();
    let of_latency = |value: &dyn Fn() -> f64| {
        if load.response.count() == 0 {
            return Err(CannotJudge::NoAnswer);
        }
        Ok(value())
    };
    match quantity {
        Quantity::Quantile(q) => {
            if load.response.count() > 0 && !enough(load.response.count(), q) {
                return Err(CannotJudge::TooFewRequests {
                    quantile: q,
                    requests: load.response.count(),
                    needed: (100.0 / (1.0 - q)).round() as u64,
                });
            }
            of_latency(&|| load.response.quantile_us(q))
        }
        Quantity::Mean => of_latency(&|| load.response.quantiles().mean),
        Quantity::Max => of_latency(&|| load.response.quantile_us(1.0)),
        Quantity::Errors if counted == 0 => Ok(1.0),
        Quantity::Errors => Ok(load.errors.total() as f64 / counted as f64),
        Quantity::Achieved => match load.offered_requests_per_s() {
            // Of an overload all are answered in the end.
            Some(rate_per_s) if rate_per_s > 0.0 => Ok(match overload(load) {
                Some(overload) => overload
                    .share()
                    .unwrap_or(load.requests_per_s() / rate_per_s),
                None => load.answered_per_s() / rate_per_s,
            }),
            _ => Err(CannotJudge::ClosedLoop),
        },
    }
}

impl Quantity {
    pub(super) fn is_latency(self) -> bool {
        matches!(self, Quantity::Quantile(_) | Quantity::Mean | Quantity::Max)
    }

    /// The quantile of the client's lag that goes with a latency; nothing for shares.
    fn share(self) -> Option<f64> {
        match self {
            Quantity::Quantile(q) => Some(q),
            Quantity::Mean => Some(0.5),
            Quantity::Max => Some(1.0),
            Quantity::Errors | Quantity::Achieved => None,
        }
    }

    /// A value of it with its unit, as in the text of an objective.
    pub fn write(self, value: f64) -> String {
        match self {
            _ if !self.is_latency() => fraction(value),
            _ if value >= 1e6 => format!("{} s", number_of(value / 1e6)),
            _ if value >= 1e3 => format!("{} ms", number_of(value / 1e3)),
            _ => format!("{} us", number_of(value)),
        }
    }
}

/// A number without needless zeros, at most three decimals.
fn number_of(value: f64) -> String {
    if value >= 1000.0 {
        return rate(value);
    }
    let text = number(value, 3, false);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Quantity::Quantile(q) => write!(f, "p{}", number_of(q * 100.0)),
            Quantity::Mean => f.write_str("mean"),
            Quantity::Max => f.write_str("max"),
            Quantity::Errors => f.write_str("errors"),
            Quantity::Achieved => f.write_str("achieved"),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.direction {
            Direction::Below => "<",
            Direction::AtMost => "<=",
            Direction::Above => ">",
            Direction::AtLeast => ">=",
        };
        write!(
            f,
            "{} {sign} {}",
            self.quantity,
            self.quantity.write(self.value)
        )
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits = written(&self.limits[..self.stated]);
        match self.offered {
            Offer::Requests | Offer::Users => f.write_str(&limits),
            Offer::Streams => write!(f, "{limits} of lag"),
        }
    }
}

fn written(limits: &[Limit]) -> String {
    let all: Vec<String> = limits.iter().map(Limit::to_string).collect();
    all.join(" and ")
}

impl Limit {
    fn is_kept(&self, value: f64) -> bool {
        match self.direction {
            Direction::Below => value < self.value,
            Direction::AtMost => value <= self.value,
            Direction::Above => value > self.value,
            Direction::AtLeast => value >= self.value,
        }
    }
}

#[cfg(test)]
mod tests;
