//! The trigamma function and its inverse, which `statrs` lacks.

/// The derivative of the digamma function, for `x` above zero: by its recurrence up to 10, and then by
/// its asymptotic series (M. Abramowitz, I. A. Stegun, Handbook of Mathematical Functions, 6.4.12).
pub(crate) fn trigamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 10.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    let series = 1.0 / 6.0 - y * (1.0 / 30.0 - y * (1.0 / 42.0 - y / 30.0));
    sum + 1.0 / x + y / 2.0 + y / x * series
}

/// The `x` above zero whose trigamma is `value`, which is above zero; by bisection of its logarithm,
/// since trigamma falls.
pub(crate) fn trigamma_inverse(value: f64) -> f64 {
    let (mut low, mut high) = (1e-8_f64.ln(), 1e8_f64.ln());
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if trigamma(middle.exp()) > value {
            low = middle;
        } else {
            high = middle;
        }
    }
    (0.5 * (low + high)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trigamma_is_that_of_the_tables_and_its_inverse_inverts_it() {
        let pi = std::f64::consts::PI;
        assert!((trigamma(1.0) - pi * pi / 6.0).abs() < 1e-10);
        assert!((trigamma(0.5) - pi * pi / 2.0).abs() < 1e-10);
        assert!((trigamma(20.0) - 0.051_270_8).abs() < 1e-6);
        for x in [0.01, 0.3, 1.0, 4.5, 300.0] {
            assert!(
                (trigamma_inverse(trigamma(x)) / x - 1.0).abs() < 1e-9,
                "{x}"
            );
        }
    }
}
