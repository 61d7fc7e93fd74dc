//! Keys by Zipf's law, by rejection-inversion (Hörmann and Derflinger 1996): constant memory and
//! time, whatever the number of keys.
//!
//! The law's weights x^-s are integrated to H. A uniformly distributed area is turned into an x by
//! the inverse of H, and rounded to the key; the bit by which the integral over a key exceeds its
//! weight is rejected.

use super::EXPONENT_MAX;
use super::draw::Stream;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Zipf {
    keys: f64,
    exponent: f64,
    /// H where the area of the first key begins, and where that of the last one ends.
    first: f64,
    last: f64,
    /// A key whose x is at most so far below it is never rejected.
    sure: f64,
}

impl Zipf {
    /// Of at least one key, with an exponent from 0 to [`EXPONENT_MAX`].
    pub(super) fn new(keys: u64, exponent: f64) -> Self {
        let mut law = Self {
            keys: keys.max(1) as f64,
            exponent: match exponent.is_nan() {
                true => 0.0,
                false => exponent.clamp(0.0, EXPONENT_MAX),
            },
            first: 0.0,
            last: 0.0,
            sure: 0.0,
        };
        law.first = law.area(1.5) - 1.0;
        law.last = law.area(law.keys + 0.5);
        law.sure = 2.0 - law.area_ends(law.area(2.5) - law.weight(2.0));
        law
    }

    pub(super) fn key(&self, draws: &mut Stream) -> u64 {
        loop {
            let area = self.last + draws.fraction() * (self.first - self.last);
            let x = self.area_ends(area);
            let key = x.round().clamp(1.0, self.keys);
            if key - x <= self.sure || area >= self.area(key + 0.5) - self.weight(key) {
                return key as u64;
            }
        }
    }

    fn weight(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// H: the integral of the weights from 1.
    fn area(&self, x: f64) -> f64 {
        let log = x.ln();
        let power = (1.0 - self.exponent) * log;
        // (e^p - 1) / p, which is 1 at 0.
        let ratio = match power.abs() < 1e-8 {
            true => 1.0 + power / 2.0,
            false => power.exp_m1() / power,
        };
        ratio * log
    }

    /// The inverse of H.
    fn area_ends(&self, area: f64) -> f64 {
        let share = (area * (1.0 - self.exponent)).max(-1.0);
        // ln(1 + s) / s, which is 1 at 0.
        let ratio = match share.abs() < 1e-8 {
            true => 1.0 - share / 2.0,
            false => share.ln_1p() / share,
        };
        (ratio * area).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::super::draw::{Draws, Place};
    use super::*;

    /// Chi-square of so many keys against the exact probabilities, as standard deviations from its
    /// mean; rare keys are taken together.
    fn deviation(keys: u64, exponent: f64) -> f64 {
        const DRAWN: u64 = 200_000;
        let law = Zipf::new(keys, exponent);
        let mut counts = vec![0u64; keys as usize];
        for number in 0..DRAWN {
            let key = law.key(&mut Draws::of(11, number).place(Place::new(0)));
            counts[key as usize - 1] += 1;
        }
        let weights = (1..=keys).map(|key| (key as f64).powf(-exponent));
        let sum: f64 = weights.clone().sum();
        let (mut chi, mut cells) = (0.0, 0.0);
        let (mut expected, mut found) = (0.0, 0.0);
        let mut rest = 1.0;
        for (weight, count) in weights.zip(&counts) {
            expected += weight / sum * DRAWN as f64;
            rest -= weight / sum;
            found += *count as f64;
            if expected >= 20.0 && rest * DRAWN as f64 >= 20.0 || rest < 1e-9 {
                chi += (found - expected).powi(2) / expected;
                cells += 1.0;
                (expected, found) = (0.0, 0.0);
            }
        }
        let freedom: f64 = cells - 1.0;
        (chi - freedom) / (2.0 * freedom.max(1.0)).sqrt()
    }

    #[test]
    fn keys_are_distributed_as_the_law_says() {
        for exponent in [0.0, 0.5, 0.99, 1.0, 1.1, 2.0, 3.5] {
            for keys in [2, 3, 10, 1_000, 10_000] {
                let found = deviation(keys, exponent);
                assert!(found < 5.0, "{keys} keys, exponent {exponent}: {found}");
            }
        }
    }

    #[test]
    fn keys_stay_within_their_number() {
        for (keys, exponent) in [
            (1, 0.0),
            (1, 1.0),
            (1, 2.0),
            (u64::MAX, 0.0),
            (1 << 40, 20.0),
        ] {
            let law = Zipf::new(keys, exponent);
            for number in 0..1_000 {
                let key = law.key(&mut Draws::of(1, number).place(Place::new(0)));
                assert!((1..=keys).contains(&key), "{keys} {exponent}: {key}");
            }
        }
    }
}
