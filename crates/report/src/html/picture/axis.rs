//! Scales, which map a value to a place in a picture, and their ticks.

use std::f64;

use readings::text::{number, percent, rate};

use readings::text::compact::time;

/// A linear scale; the caller chooses the unit, such as log ratios.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// Maps `low..high` to `from..to`; an empty range is widened.
    pub fn new(low: f64, high: f64, from: f64, to: f64) -> Self {
        let (low, high) = if high - low > 1e-9 {
            (low, high)
        } else {
            (low - 0.5, high + 0.5)
        };
        Self {
            low,
            high,
            from,
            to,
        }
    }

    /// The place of a value; values outside the range are put at its edge.
    pub fn place(&self, value: f64) -> f64 {
        let share = (value.clamp(self.low, self.high) - self.low) / (self.high - self.low);
        self.from + share * (self.to - self.from)
    }

    /// Whether a value lies in the range.
    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// A tick: the value on the scale and its label.
pub type Tick = (f64, String);

/// Ticks for a scale of log ratios: percentages of change, or multiples where the range is wide.
pub fn ratio_ticks(low: f64, high: f64) -> Vec<Tick> {
    if high - low > 1.5 {
        // Few labels: only decades if the range is wide.
        let factors: &[f64] = match high - low {
            span if span > 7.0 => &[1.0],
            span if span > 4.0 => &[1.0, 3.0],
            _ => &[1.0, 2.0, 5.0],
        };
        let decades =
            (low / f64::consts::LN_10).floor() as i32..=(high / f64::consts::LN_10) as i32;
        let every = 1 + (decades.end() - decades.start()) / 8;
        let wanted = decades.filter(|decade| decade % every == 0);
        let multiples = wanted.flat_map(|decade| {
            factors
                .iter()
                .map(move |factor| (factor * 10.0_f64.powi(decade), decade))
        });
        return multiples
            .filter(|(m, _)| (low..=high).contains(&m.ln()))
            .map(|(m, decade)| {
                let decimals = usize::try_from(-decade).unwrap_or(0);
                (m.ln(), format!("×{m:.decimals$}"))
            })
            .collect();
    }
    let (first, last) = (100.0 * low.exp_m1(), 100.0 * high.exp_m1());
    let step = nice_step(last - first, 5.0);
    let decimals = if step < 0.1 {
        2
    } else {
        usize::from(step < 1.0)
    };
    let mut ticks = Vec::new();
    let mut at = (first / step).ceil();
    while at * step <= last && ticks.len() < 20 {
        let value = at * step;
        ticks.push(((value / 100.0).ln_1p(), percent(value, decimals, true)));
        at += 1.0;
    }
    ticks
}

/// Ticks for a scale of differences in a unit that the caption names.
pub(crate) fn difference_ticks(low: f64, high: f64) -> Vec<Tick> {
    let step = nice_step(high - low, 5.0);
    let decimals = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    let first = (low / step).ceil() as i64;
    let ticks = (first..first + 20).map(|n| (n, n as f64 * step));
    ticks
        .take_while(|(_, value)| *value <= high)
        .map(|(n, value)| match n {
            0 => (0.0, "0".to_owned()),
            _ => (value, number(value, decimals, true)),
        })
        .collect()
}

/// Ticks for a scale of requests per second.
pub(crate) fn rate_ticks(low: f64, high: f64) -> Vec<Tick> {
    let step = nice_step(high - low, 6.0);
    let first = (low / step).ceil() as i64;
    let ticks = (first..first + 20).map(|n| n as f64 * step);
    ticks
        .take_while(|value| *value <= high)
        .map(|value| match value {
            0.0 => (value, "0".to_owned()),
            value => (value, rate(value)),
        })
        .collect()
}

/// Ticks for a scale of log10 microseconds.
pub(crate) fn time_ticks(low: f64, high: f64) -> Vec<Tick> {
    let factors: &[f64] = if high - low > 2.5 {
        &[1.0]
    } else if high - low > 0.7 {
        &[1.0, 2.0, 5.0]
    } else {
        &[1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0]
    };
    let mut ticks = Vec::new();
    for decade in (low.floor() as i32)..=(high.ceil() as i32) {
        for factor in factors {
            let us = factor * 10.0_f64.powi(decade);
            if (low..=high).contains(&us.log10()) {
                ticks.push((us.log10(), tidy_time(us)));
            }
        }
    }
    ticks
}

/// A round time without trailing zeros: `10ms`, not `10.0ms`.
fn tidy_time(us: f64) -> String {
    let text = time(us);
    let unit_at = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    let (figure, unit) = text.split_at(unit_at);
    let figure = if figure.contains('.') {
        figure.trim_end_matches('0').trim_end_matches('.')
    } else {
        figure
    };
    format!("{figure}{unit}")
}

/// Ticks for a scale of -log10(1 - quantile).
pub(crate) fn quantile_ticks(high: f64) -> Vec<Tick> {
    let mut ticks = vec![
        (0.0, "0%".to_owned()),
        (0.5_f64.log10().abs(), "50%".to_owned()),
    ];
    for nines in 1..=9 {
        if f64::from(nines) <= high {
            let decimals = (nines - 2).max(0) as usize;
            let share = 100.0 - 10.0_f64.powi(2 - nines);
            ticks.push((
                f64::from(nines),
                format!("{}%", number(share, decimals, false)),
            ));
        }
    }
    ticks
}

/// A step of 1, 2 or 5 times a power of ten that cuts `span` into about `pieces`.
fn nice_step(span: f64, pieces: f64) -> f64 {
    let rough = (span / pieces).max(1e-6);
    let power = 10.0_f64.powf(rough.log10().floor());
    let factor = match rough / power {
        f if f <= 1.0 => 1.0,
        f if f <= 2.0 => 2.0,
        f if f <= 5.0 => 5.0,
        _ => 10.0,
    };
    factor * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: Vec<Tick>) -> Vec<String> {
        ticks.into_iter().map(|t| t.1).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            labels(ratio_ticks(0.68_f64.ln(), 1.05_f64.ln())),
            ["-30%", "-20%", "-10%", "0%"]
        );
        assert_eq!(
            labels(ratio_ticks(0.15_f64.ln(), 3.0_f64.ln())),
            ["×0.2", "×0.5", "×1", "×2"]
        );
        assert_eq!(
            labels(difference_ticks(-0.14, 0.33)),
            ["-0.1", "0", "+0.1", "+0.2", "+0.3"]
        );
        assert_eq!(
            labels(difference_ticks(-3.0, 41.0)),
            ["0", "+10", "+20", "+30", "+40"]
        );
        assert_eq!(
            labels(time_ticks(2.0, 3.0)),
            ["100us", "200us", "500us", "1ms"]
        );
        assert_eq!(
            labels(rate_ticks(0.0, 2600.0)),
            ["0", "500", "1,000", "1,500", "2,000", "2,500"]
        );
        assert_eq!(
            labels(quantile_ticks(4.2)),
            ["0%", "50%", "90%", "99%", "99.9%", "99.99%"]
        );
    }

    #[test]
    fn values_outside_stand_at_the_edge() {
        let scale = Scale::new(0.0, 10.0, 100.0, 200.0);
        assert_eq!(scale.place(5.0), 150.0);
        assert_eq!(scale.place(99.0), 200.0);
        assert!(!scale.holds(99.0));
    }
}
