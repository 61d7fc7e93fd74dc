//! Exact intervals of shares, from counts.

use statrs::function::gamma::ln_gamma;

/// The interval of Clopper and Pearson (Biometrika 26, 1934) for the share behind `count` of `of`
/// independent requests: it has the true share with at least this confidence, whatever that is.
pub(super) fn interval(count: u64, of: u64, confidence: f64) -> (f64, f64) {
    if of == 0 {
        return (0.0, 1.0);
    }
    let tail = (1.0 - confidence) / 2.0;
    let (hit, missed) = (count as f64, of.saturating_sub(count) as f64);
    let lower = match count {
        0 => 0.0,
        _ => quantile(tail, hit, missed + 1.0),
    };
    let upper = match missed {
        0.0 => 1.0,
        _ => quantile(1.0 - tail, hit + 1.0, missed),
    };
    (lower, upper)
}

/// The value that a share `p` of the beta distribution lies below.
fn quantile(p: f64, a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if below(middle, a, b) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// The share of the beta distribution that lies below `x`. That of `statrs` ends its continued
/// fraction after 140 terms, which is too early for millions of requests.
fn below(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let log = a * x.ln() + b * (-x).ln_1p() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b);
    match x < (a + 1.0) / (a + b + 2.0) {
        true => log.exp() * fraction(x, a, b) / a,
        false => 1.0 - log.exp() * fraction(1.0 - x, b, a) / b,
    }
}

/// The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method. It needs
/// about as many terms as the root of the larger parameter.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const LEAST: f64 = 1e-300;
    let keep = |value: f64| if value.abs() < LEAST { LEAST } else { value };
    let (mut c, mut d) = (1.0, 1.0 / keep(1.0 - (a + b) * x / (a + 1.0)));
    let mut all = d;
    for term in 1..100_000 {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = all;
        for step in [even, odd] {
            d = 1.0 / keep(1.0 + step * d);
            c = keep(1.0 + step / c);
            all *= c * d;
        }
        if (all / before - 1.0).abs() < 1e-14 {
            break;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_the_tables() {
        // count, of, lower, upper at 95%.
        let table = [
            (0, 10, 0.0, 0.308_5),
            (1, 10, 0.002_53, 0.445_0),
            (5, 10, 0.187_1, 0.812_9),
            (10, 10, 0.691_5, 1.0),
            (20, 100, 0.126_7, 0.291_8),
        ];
        for (count, of, lower, upper) in table {
            let (low, high) = interval(count, of, 0.95);
            assert!((low - lower).abs() < 6e-5, "{count} of {of}: {low}");
            assert!((high - upper).abs() < 6e-5, "{count} of {of}: {high}");
        }
        assert_eq!(interval(0, 0, 0.95), (0.0, 1.0));
    }

    #[test]
    fn millions_of_requests_have_the_interval_of_a_normal_distribution() {
        for of in [100_000_u64, 4_000_000, 1_000_000_000] {
            let share: f64 = 0.25;
            let half = 1.959_964 * (share * (1.0 - share) / of as f64).sqrt();
            let (low, high) = interval(of / 4, of, 0.95);
            assert!(((share - low) / half - 1.0).abs() < 0.01, "{of}: {low}");
            assert!(((high - share) / half - 1.0).abs() < 0.01, "{of}: {high}");
        }
    }

    #[test]
    fn the_true_share_is_inside_at_least_as_often_as_promised() {
        // Exactly, by the chance of each count.
        for of in [1_u64, 5, 30] {
            let intervals: Vec<_> = (0..=of).map(|count| interval(count, of, 0.95)).collect();
            for hundredth in 1..100 {
                let share = f64::from(hundredth) / 100.0;
                let mut chance = (1.0 - share).powi(of as i32);
                let mut covered = 0.0;
                for (count, (low, high)) in intervals.iter().enumerate() {
                    if (*low..=*high).contains(&share) {
                        covered += chance;
                    }
                    let left = (of - count as u64) as f64;
                    chance *= left / (count as f64 + 1.0) * share / (1.0 - share);
                }
                assert!(covered >= 0.95 - 1e-9, "{share} of {of}: {covered}");
            }
        }
    }
}
