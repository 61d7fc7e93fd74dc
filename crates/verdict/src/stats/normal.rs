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
