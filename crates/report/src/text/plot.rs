//! Pictures made of characters.

use readings::text::compact::time;
use readings::text::rate;

/// Rows of a picture, without its lower axis.
const HEIGHT: usize = 14;
/// Columns left of the picture, for the labels.
const LABELS: usize = 9;
/// The narrowest and the widest picture.
const WIDTHS: (usize, usize) = (30, 90);

/// A field of characters over a range of values, in whatever unit its caller has chosen.
pub(crate) struct Plot {
    width: usize,
    x: (f64, f64),
    y: (f64, f64),
    cells: Vec<Vec<char>>,
}

impl Plot {
    /// An empty picture for text that is `width` columns wide; empty ranges are widened.
    pub fn new(width: usize, x: (f64, f64), y: (f64, f64)) -> Self {
        let width = width.saturating_sub(LABELS + 3).clamp(WIDTHS.0, WIDTHS.1);
        let widened = |(low, high): (f64, f64)| {
            if high - low > 1e-9 {
                (low, high)
            } else {
                (low - 0.5, high + 0.5)
            }
        };
        Self {
            width,
            x: widened(x),
            y: widened(y),
            cells: vec![vec![' '; width]; HEIGHT],
        }
    }

    fn column(&self, x: f64) -> usize {
        place(x, self.x, self.width)
    }

    fn row(&self, y: f64) -> usize {
        HEIGHT - 1 - place(y, self.y, HEIGHT)
    }

    /// A mark; it stands over what was there.
    pub fn mark(&mut self, x: f64, y: f64, mark: char) {
        let (column, row) = (self.column(x), self.row(y));
        self.cells[row][column] = mark;
    }

    /// What the trials of a mark spread over; where something else stands, that stays.
    pub fn spread(&mut self, x: f64, from: f64, to: f64) {
        let (column, first, last) = (self.column(x), self.row(to), self.row(from));
        for row in &mut self.cells[first..=last] {
            if matches!(row[column], ' ' | '-') {
                row[column] = '|';
            }
        }
    }

    /// A line over the whole width.
    pub fn level(&mut self, y: f64) {
        if (self.y.0..=self.y.1).contains(&y) {
            let row = self.row(y);
            self.cells[row].fill('-');
        }
    }

    /// The picture with labels at values of both axes; labels that would meet are left out.
    pub fn finish(self, left: &[(f64, String)], below: &[(f64, String)]) -> String {
        let mut labels: Vec<String> = vec![String::new(); HEIGHT];
        for (y, label) in left {
            if (self.y.0..=self.y.1).contains(y) {
                labels[self.row(*y)].clone_from(label);
            }
        }
        let mut out = String::new();
        for (label, cells) in labels.iter().zip(&self.cells) {
            let tick = if label.is_empty() { '|' } else { '+' };
            let line: String = cells.iter().collect();
            out.push_str(format!("{label:>LABELS$} {tick}{line}").trim_end());
            out.push('\n');
        }
        let mut ticks = vec!['-'; self.width];
        let mut numbers = String::new();
        for (x, label) in below {
            if !(self.x.0..=self.x.1).contains(x) {
                continue;
            }
            let column = self.column(*x);
            let size = label.chars().count();
            // Under its tick, and within the picture.
            let from = (LABELS + 2 + column)
                .saturating_sub(size / 2)
                .min((LABELS + 2 + self.width).saturating_sub(size));
            let used = numbers.chars().count();
            if used > 0 && from < used + 2 {
                continue;
            }
            ticks[column] = '+';
            numbers.push_str(&" ".repeat(from.saturating_sub(used)));
            numbers.push_str(label);
        }
        let ticks: String = ticks.into_iter().collect();
        out.push_str(&format!("{:LABELS$} +{ticks}\n{numbers}\n", ""));
        out
    }
}

/// Which of `cells` places a value falls to; values outside stand at the edge.
fn place(value: f64, (low, high): (f64, f64), cells: usize) -> usize {
    let share = (value.clamp(low, high) - low) / (high - low);
    (share * (cells - 1) as f64).round() as usize
}

const LABELLED: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];

/// Labels for a scale of log10 microseconds: as many as there is room for.
pub(crate) fn time_labels(low: f64, high: f64) -> Vec<(f64, String)> {
    let at = LABELLED.map(|share| low + share * (high - low));
    at.map(|value| (value, time(10f64.powf(value)))).into()
}

/// Labels for rates from 0.
pub(crate) fn rate_labels(most: f64) -> Vec<(f64, String)> {
    let label = |value| {
        if value > 0.0 {
            rate(value)
        } else {
            "0".to_owned()
        }
    };
    LABELLED
        .map(|share| (share * most, label(share * most)))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::Text as _;

    #[test]
    fn values_stand_where_they_belong() {
        let mut plot = Plot::new(43, (0.0, 100.0), (0.0, 13.0));
        plot.level(5.0);
        plot.spread(50.0, 2.0, 8.0);
        plot.mark(50.0, 4.0, 'o');
        plot.mark(100.0, 99.0, 'x');
        let label = |v: f64| (v, format!("{v}"));
        let text = plot.finish(
            &[label(0.0), label(13.0)],
            &[label(0.0), label(50.0), label(52.0), label(100.0)],
        );
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), HEIGHT + 2);
        assert_eq!(lines[0], format!("       13 +{}x", " ".repeat(30)));
        assert_eq!(lines[5], format!("{}|{}|", " ".repeat(10), " ".repeat(15)));
        assert_eq!(
            &lines[8][11..],
            format!("{}|{}", "-".repeat(15), "-".repeat(15))
        );
        assert_eq!(lines[9].find('o'), Some(11 + 15));
        assert!(lines[13].starts_with("        0 +"), "{text}");
        assert_eq!(lines[14].matches('+').count(), 4, "{text}");
        lines[15].ends("100");
        lines[15].lacks("52");
    }

    #[test]
    fn one_point_is_a_picture_too() {
        let mut plot = Plot::new(10, (5.0, 5.0), (1.0, 1.0));
        plot.mark(5.0, 1.0, 'o');
        assert_eq!(plot.finish(&[], &[]).matches('o').count(), 1);
    }
}
