//! Normal values from a seed.

use fastrand::Rng;

/// Normal values with a fixed seed.
pub(crate) struct Normal(Rng);

impl Normal {
    pub(crate) fn with_seed(seed: u64) -> Self {
        Self(Rng::with_seed(seed))
    }

    pub(crate) fn next(&mut self) -> f64 {
        standard_normal(&mut self.0)
    }
}

/// A standard normal value, by Box and Muller.
pub(crate) fn standard_normal(random: &mut Rng) -> f64 {
    // 1 - u is in (0, 1], where the logarithm is finite.
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}

/// A chi-square value with this many degrees of freedom, which are above zero.
///
/// Source: G. Marsaglia, W. W. Tsang, A simple method for generating gamma variables, ACM Transactions
/// on Mathematical Software 26 (2000).
pub(crate) fn chi_square(random: &mut Rng, degrees: f64) -> f64 {
    let shape = degrees / 2.0;
    // Below a shape of 1 one of a shape larger by 1 is scaled down.
    let (shape, scale) = match shape < 1.0 {
        true => (shape + 1.0, (1.0 - random.f64()).powf(1.0 / shape)),
        false => (shape, 1.0),
    };
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = standard_normal(random);
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && (1.0 - random.f64()).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return 2.0 * d * v * scale;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chi_square_values_have_their_mean_and_variance() {
        let mut random = Rng::with_seed(5);
        for degrees in [0.7, 2.0, 9.0] {
            let values: Vec<f64> = (0..20_000)
                .map(|_| chi_square(&mut random, degrees))
                .collect();
            let mean = values.iter().sum::<f64>() / 2e4;
            let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 2e4;
            assert!((mean / degrees - 1.0).abs() < 0.06, "{mean} of {degrees}");
            assert!((variance / degrees / 2.0 - 1.0).abs() < 0.15, "{variance}");
        }
    }
}
