//! The fit of the universal scalability law.

use super::{Parameters, Point};

/// Steps after which the Gauss-Newton method gives up; it takes about ten.
const STEPS: usize = 60;

/// The best figures under σ >= 0 and κ >= 0.
pub(super) fn fit(points: &[Point]) -> Parameters {
    fit_from(points, linear_start(points))
}

/// [`fit`], from figures that are near.
///
/// The constraints cut the plane of σ and κ along straight lines, so the best figures are either
/// free or on one of the lines. Where the free fit ends on a line, the lines are fitted too, and
/// the best of all counts.
pub(super) fn fit_from(points: &[Point], start: Parameters) -> Parameters {
    let mut best = gauss_newton(points, start, (true, true));
    if best.sigma > 0.0 && best.kappa > 0.0 {
        return best;
    }
    let mut error = squares(points, &best);
    for free in [(true, false), (false, true), (false, false)] {
        let fitted = gauss_newton(points, start, free);
        let fitted_error = squares(points, &fitted);
        if fitted_error < error {
            (best, error) = (fitted, fitted_error);
        }
    }
    best
}

/// The standard deviation of the points' logarithms around the curve.
pub(super) fn residual(points: &[Point], parameters: &Parameters) -> f64 {
    let degrees = (points.len() as f64 - 3.0).max(1.0);
    (squares(points, parameters) / degrees).sqrt()
}

fn squares(points: &[Point], parameters: &Parameters) -> f64 {
    points
        .iter()
        .map(|p| {
            (p.requests_per_s / parameters.at(p.concurrency))
                .ln()
                .powi(2)
        })
        .sum()
}

/// N / X = (1 + σ (N - 1) + κ N (N - 1)) / λ is linear in 1/λ, σ/λ and κ/λ. Each point is weighed
/// by X / N, which makes its noise about the same for all.
fn linear_start(points: &[Point]) -> Parameters {
    let mut normal = [[0.0; 3]; 3];
    let mut right = [0.0; 3];
    for p in points {
        let n = p.concurrency;
        let weight = p.requests_per_s / n;
        let row = [1.0, n - 1.0, n * (n - 1.0)].map(|x| x * weight);
        for (i, x) in row.iter().enumerate() {
            for (j, y) in row.iter().enumerate() {
                normal[i][j] += x * y;
            }
            right[i] += x;
        }
    }
    let per_one = points.iter().map(|p| p.requests_per_s / p.concurrency);
    let most = per_one.fold(0.0, f64::max);
    match solve(normal, right) {
        Some([a, b, c]) if a > 0.0 => Parameters {
            lambda_per_s: 1.0 / a,
            sigma: (b / a).max(0.0),
            kappa: (c / a).max(0.0),
        },
        _ => Parameters {
            lambda_per_s: most,
            sigma: 0.0,
            kappa: 0.0,
        },
    }
}

/// Least squares of the logarithms, with σ or κ held at zero where they are not free. A step that
/// would not improve is made shorter.
fn gauss_newton(points: &[Point], start: Parameters, free: (bool, bool)) -> Parameters {
    let mut now = Parameters {
        sigma: if free.0 { start.sigma } else { 0.0 },
        kappa: if free.1 { start.kappa } else { 0.0 },
        ..start
    };
    let mut error = squares(points, &now);
    for _ in 0..STEPS {
        let Some(step) = direction(points, &now, free) else {
            break;
        };
        let mut length = 1.0;
        let mut improved = false;
        while length > 1e-6 {
            let next = Parameters {
                lambda_per_s: now.lambda_per_s * (length * step[0]).exp(),
                sigma: (now.sigma + length * step[1]).max(0.0),
                kappa: (now.kappa + length * step[2]).max(0.0),
            };
            let next_error = squares(points, &next);
            if next_error < error {
                improved = next_error < error * (1.0 - 1e-12);
                (now, error) = (next, next_error);
                break;
            }
            length /= 2.0;
        }
        if !improved {
            break;
        }
    }
    now
}

/// The step that would be best were the curve straight: of ln λ, σ and κ.
fn direction(points: &[Point], now: &Parameters, free: (bool, bool)) -> Option<[f64; 3]> {
    let mut normal = [[0.0; 3]; 3];
    let mut right = [0.0; 3];
    for p in points {
        let n = p.concurrency;
        let load = now.load(n);
        let residual = (p.requests_per_s / now.at(n)).ln();
        let slope = [
            1.0,
            if free.0 { -(n - 1.0) / load } else { 0.0 },
            if free.1 { -n * (n - 1.0) / load } else { 0.0 },
        ];
        for (i, x) in slope.iter().enumerate() {
            for (j, y) in slope.iter().enumerate() {
                normal[i][j] += x * y;
            }
            right[i] += x * residual;
        }
    }
    // What is not free stands still.
    if !free.0 {
        normal[1][1] = 1.0;
    }
    if !free.1 {
        normal[2][2] = 1.0;
    }
    solve(normal, right)
}

/// Solves three equations by elimination with pivots, rows and columns scaled first; nothing where
/// they do not determine a solution.
fn solve(mut matrix: [[f64; 3]; 3], mut right: [f64; 3]) -> Option<[f64; 3]> {
    let mut scale = [0.0; 3];
    for i in 0..3 {
        scale[i] = matrix[i][i].sqrt();
        if scale[i] <= 0.0 || !scale[i].is_finite() {
            return None;
        }
    }
    for i in 0..3 {
        for j in 0..3 {
            matrix[i][j] /= scale[i] * scale[j];
        }
        right[i] /= scale[i];
    }
    for column in 0..3 {
        let pivot = (column..3).max_by(|a, b| {
            matrix[*a][column]
                .abs()
                .total_cmp(&matrix[*b][column].abs())
        })?;
        if matrix[pivot][column].abs() < 1e-13 {
            return None;
        }
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        for row in column + 1..3 {
            let factor = matrix[row][column] / matrix[column][column];
            let above = matrix[column];
            for (value, above) in matrix[row].iter_mut().zip(above).skip(column) {
                *value -= factor * above;
            }
            right[row] -= factor * right[column];
        }
    }
    let mut solution = [0.0; 3];
    for row in (0..3).rev() {
        let known: f64 = (row + 1..3).map(|j| matrix[row][j] * solution[j]).sum();
        solution[row] = (right[row] - known) / matrix[row][row];
    }
    for (value, scale) in solution.iter_mut().zip(scale) {
        *value /= scale;
    }
    Some(solution)
}
