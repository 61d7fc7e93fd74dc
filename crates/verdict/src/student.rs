//! Student's t distribution.
//!
//! The distribution function comes from the regularised incomplete beta function, evaluated by
//! its continued fraction with Lentz's method (Press et al., Numerical Recipes, section 6.4;
//! Abramowitz and Stegun 26.5.8 and 26.7.1). The quantile inverts it by
//! Newton's method.

/// The chance of a value at least as far from zero as `t`, under Student's t distribution with
/// `degrees` degrees of freedom: the two-sided p value.
pub fn t_two_sided_p(t: f64, degrees: f64) -> f64 {
    if t.is_infinite() {
        return 0.0;
    }
    regularised_beta(degrees / 2.0, 0.5, degrees / (degrees + t * t))
}

/// The value that a share `p` (between 0 and 1, both exclusive) of Student's t distribution with
/// `degrees` degrees of freedom lies below.
pub fn t_quantile(p: f64, degrees: f64) -> f64 {
    if p < 0.5 {
        return -t_quantile(1.0 - p, degrees);
    }
    let tail = 2.0 * (1.0 - p);
    let (mut low, mut high) = (0.0, 1.0);
    while t_two_sided_p(high, degrees) > tail && high < 1e12 {
        low = high;
        high *= 2.0;
    }
    // Newton's steps, kept inside what is known to hold the quantile.
    let mut t = 0.5 * (low + high);
    for _ in 0..200 {
        let excess = t_two_sided_p(t, degrees) - tail;
        if excess > 0.0 {
            low = t;
        } else {
            high = t;
        }
        let step = t + excess / (2.0 * density(t, degrees));
        let next = if low < step && step < high {
            step
        } else {
            0.5 * (low + high)
        };
        if (next - t).abs() <= 1e-13 * next {
            return next;
        }
        t = next;
    }
    t
}

/// The density of Student's t distribution.
fn density(t: f64, degrees: f64) -> f64 {
    let ln_constant = ln_gamma(0.5 * (degrees + 1.0))
        - ln_gamma(0.5 * degrees)
        - 0.5 * (degrees * std::f64::consts::PI).ln();
    (ln_constant - 0.5 * (degrees + 1.0) * (t * t / degrees).ln_1p()).exp()
}

/// The regularised incomplete beta function I_x(a, b).
fn regularised_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    // The fraction converges fast on this side of the mean only; the other side is its mirror.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, 1.0 - x) / b
    }
}

/// The continued fraction of the incomplete beta function, by Lentz's method.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let apart_from_zero = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / apart_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut h = d;
    for step in 1..=500 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / apart_from_zero(1.0 + even * d);
        c = apart_from_zero(1.0 + even / c);
        h *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / apart_from_zero(1.0 + odd * d);
        c = apart_from_zero(1.0 + odd / c);
        h *= d * c;
        if (d * c - 1.0).abs() < 1e-15 {
            break;
        }
    }
    h
}

/// ln Γ(x) for x > 0, by Lanczos' approximation with g = 7 and nine terms.
fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        let pi = std::f64::consts::PI;
        return (pi / (pi * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let t = x + 7.5;
    let mut sum = 0.999_999_999_999_809_9;
    for (i, term) in (1..).zip(TERMS) {
        sum += term / (x + f64::from(i));
    }
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of the usual printed tables.
    #[test]
    fn quantiles_are_those_of_the_tables() {
        let table = [
            (0.975, 1.0, 12.706_2),
            (0.975, 2.0, 4.302_65),
            (0.975, 3.0, 3.182_45),
            (0.975, 4.0, 2.776_45),
            (0.975, 9.0, 2.262_16),
            (0.95, 9.0, 1.833_11),
            (0.995, 9.0, 3.249_84),
            (0.975, 19.0, 2.093_02),
            (0.975, 29.0, 2.045_23),
            (0.95, 29.0, 1.699_13),
            (0.999_5, 5.0, 6.868_83),
            (0.975, 120.0, 1.979_93),
            (0.975, 1e6, 1.959_97),
        ];
        for (p, degrees, expected) in table {
            let got = t_quantile(p, degrees);
            assert!(
                (got / expected - 1.0).abs() < 5e-6,
                "t({p}, {degrees}) = {got}, the table says {expected}"
            );
        }
    }

    #[test]
    fn the_distribution_is_symmetric_and_the_quantile_inverts_it() {
        assert_eq!(t_two_sided_p(0.0, 9.0), 1.0);
        assert!((t_two_sided_p(-2.262_157, 9.0) - 0.05).abs() < 1e-6);
        for degrees in [1.0, 2.0, 7.0, 31.0, 400.0] {
            for p in [0.6, 0.8, 0.95, 0.99, 0.9999] {
                let t = t_quantile(p, degrees);
                assert!((t + t_quantile(1.0 - p, degrees)).abs() < 1e-6 * t);
                assert!((t_two_sided_p(t, degrees) - 2.0 * (1.0 - p)).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn one_degree_of_freedom_is_cauchy() {
        let cauchy = |p: f64| (std::f64::consts::PI * (p - 0.5)).tan();
        for p in [0.55, 0.75, 0.9, 0.999] {
            assert!((t_quantile(p, 1.0) / cauchy(p) - 1.0).abs() < 1e-8);
        }
    }
}
