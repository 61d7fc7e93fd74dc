//! What events did, in sentences: absolute differences, and what happened to one subject.

use crate::{Comparison, Metric, NoiseFloor, Note, Verdict};
use readings::text::{counted, number};

/// What a difference is measured in.
pub struct Unit {
    pub factor: f64,
    /// After a figure, and after a difference.
    value: &'static str,
    pub difference: &'static str,
    decimals_max: i32,
}

/// The unit of a figure of events.
pub fn unit(metric: Metric) -> Unit {
    match metric {
        Metric::FailedShare => Unit {
            factor: 100.0,
            value: "%",
            difference: " percentage points",
            decimals_max: 5,
        },
        Metric::FailuresPerEvent => Unit {
            factor: 1.0,
            value: "",
            difference: "",
            decimals_max: 3,
        },
        _ => Unit {
            factor: 1.0,
            value: " s",
            difference: " s",
            decimals_max: 3,
        },
    }
}

impl Unit {
    /// Two digits of the interval's width.
    fn decimals(&self, interval: Option<(f64, f64)>) -> usize {
        let width = interval.map_or(0.0, |(low, high)| (high - low) * self.factor);
        if width <= 0.0 {
            return 3;
        }
        // The range fits.
        (1.0 - width.log10().floor()).clamp(0.0, f64::from(self.decimals_max)) as usize
    }

    fn value(&self, value: f64, decimals: usize) -> String {
        format!("{}{}", self.number(value, decimals, false), self.value)
    }

    fn number(&self, value: f64, decimals: usize, signed: bool) -> String {
        number(value * self.factor, decimals, signed)
    }

    /// The smallest difference that matters: `0.1 percentage points`.
    pub fn matters(&self, matters: f64) -> String {
        let text = self.number(matters, self.decimals_max as usize, false);
        let text = text.trim_end_matches('0').trim_end_matches('.');
        format!("{text}{}", self.difference)
    }

    /// `+0.27 [+0.20, +0.34] percentage points`.
    fn signed(&self, difference: f64, interval: Option<(f64, f64)>) -> String {
        let decimals = self.decimals(interval);
        let ends = interval.map_or_else(String::new, |(low, high)| {
            format!(
                " [{}, {}]",
                self.number(low, decimals, true),
                self.number(high, decimals, true)
            )
        });
        let difference = self.number(difference, decimals, true);
        format!("{difference}{ends}{}", self.difference)
    }
}

/// The absolute difference of a comparison that is judged by it.
pub fn difference(c: &Comparison) -> Option<String> {
    Some(unit(c.metric).signed(c.difference?, c.difference_interval()))
}

/// The upper bound of a difference without an interval: if no request of the subject failed, its share
/// has an upper bound, and the baseline's share is at least 0.
pub fn upper_bound(c: &Comparison) -> Option<f64> {
    if c.difference.is_none() || c.difference_interval().is_some() {
        return None;
    }
    let sides = c.notes.iter().find_map(|note| match note {
        Note::Failures(sides) => Some(sides),
        _ => None,
    })?;
    let ours = sides.iter().find(|side| side.subject == c.subject)?;
    (ours.failed == 0).then_some(ours.at_most)
}

/// The difference with its upper bound: `0.000, at most +0.030 percentage points`.
pub fn difference_at_most(c: &Comparison) -> Option<String> {
    let (unit, most) = (unit(c.metric), upper_bound(c)?);
    let decimals = unit.decimals(Some((0.0, most)));
    Some(format!(
        "{}, at most {}{}",
        unit.number(c.difference?, decimals, true),
        unit.number(most, decimals, true),
        unit.difference
    ))
}

/// Whether a time was censored, of the subject and of the baseline: in some block it was not over when
/// the window ended.
pub fn are_censored(c: &Comparison) -> (bool, bool) {
    let is_open = |name: &str| {
        c.notes.iter().any(|note| match note {
            Note::FullRate(sides) => sides
                .iter()
                .any(|side| side.subject == name && side.never > 0),
            _ => false,
        })
    };
    (is_open(&c.subject), is_open(&c.baseline))
}

/// The absolute difference of the baseline's second copy, where it is judged by it.
pub fn floor_difference(floor: &NoiseFloor) -> Option<String> {
    let interval = floor.difference_low.zip(floor.difference_high);
    Some(unit(floor.metric).signed(floor.difference?, interval))
}

/// The sentence of a comparison that is judged by its absolute difference, without notes; `place`
/// is where it holds. Nothing for others, and without figures.
pub fn comparison(c: &Comparison, place: &str) -> Option<String> {
    let (estimate, unit) = (c.difference?, unit(c.metric));
    let values = c.subject_value.zip(c.baseline_value)?;
    let interval = c.difference_interval();
    let decimals = unit.decimals(interval);
    let (ours, theirs) = (
        unit.value(values.0, decimals),
        unit.value(values.1, decimals),
    );
    let (subject, what) = (&c.subject, c.metric.words());
    let over = format!("over {}", counted(c.blocks, "block"));
    let about = format!("{subject} against {}, {what}{place}", c.baseline);
    let signed = unit.signed(estimate, interval);
    Some(match c.verdict {
        Verdict::Faster | Verdict::Slower => {
            let (verb, preposition, sign) = match estimate > 0.0 {
                true => ("adds", "to", 1.0),
                false => ("takes", "off", -1.0),
            };
            let size = unit.number(sign * estimate, decimals, false);
            let ends = interval.map_or_else(String::new, |(low, high)| {
                let (a, b) = (sign * low, sign * high);
                format!(
                    " [{}, {}]",
                    unit.number(a.min(b), decimals, false),
                    unit.number(a.max(b), decimals, false)
                )
            });
            format!(
                "{subject} {verb} {size}{} {preposition} the {what}{ends}{place}: {ours} against \
                 {theirs}, {over}",
                unit.difference
            )
        }
        Verdict::Same => {
            let matters = unit.matters(c.difference_matters.unwrap_or(0.0));
            format!(
                "{about}: no difference that matters (within {matters}): {ours} against {theirs}, \
                 {signed}, {over}"
            )
        }
        Verdict::Inconclusive => {
            format!("inconclusive: {about}: {ours} against {theirs}, {signed}, {over}")
        }
        Verdict::Invalid => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::words::tests::comparison as made;

    fn share(verdict: Verdict, figures: [f64; 5]) -> Comparison {
        let mut c = made(Metric::FailedShare, verdict, [1.0, 0.5, 2.0]);
        let [ours, theirs, low, high, matters] = figures;
        c.subject_value = Some(ours);
        c.baseline_value = Some(theirs);
        c.difference = Some(ours - theirs);
        c.difference_low = Some(low);
        c.difference_high = Some(high);
        c.difference_matters = Some(matters);
        c
    }

    #[test]
    fn none_against_none_shows_how_large_the_difference_may_be() {
        let c = share(Verdict::Same, [0.0, 0.0, -6.1e-5, 6.1e-5, 0.001]);
        assert_eq!(
            crate::words::comparison(&c),
            "balance against direct, share of failed requests: no difference that matters (within \
             0.1 percentage points): 0.000% against 0.000%, 0.000 [-0.006, +0.006] percentage \
             points, over 10 blocks."
        );
    }

    #[test]
    fn a_difference_of_shares_and_of_times_is_absolute() {
        let c = share(Verdict::Slower, [0.003, 0.0003, 0.0022, 0.0032, 0.001]);
        assert_eq!(
            crate::words::comparison(&c),
            "balance adds 0.27 percentage points to the share of failed requests [0.22, 0.32]: \
             0.30% against 0.03%, over 10 blocks."
        );
        let mut c = share(Verdict::Faster, [0.02, 1.02, -1.1, -0.9, 0.03]);
        c.metric = Metric::LongestSilenceS;
        assert_eq!(
            crate::words::comparison(&c),
            "balance takes 1.00 s off the longest silence [0.90, 1.10]: 0.02 s against 1.02 s, \
             over 10 blocks."
        );
    }
}
