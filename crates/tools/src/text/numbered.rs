//! Line numbers that a page or a pager has put before the lines of a text.

/// So many lines in a row with numbers that count up are a listing.
const FEWEST: usize = 5;

/// How many bytes at the start of each line are a number of a listing; 0 for all others.
///
/// A number is one only in a run of lines that count up by one, so that a table's figures stay.
pub(crate) fn prefixes(lines: &[&str]) -> Vec<usize> {
    let mut prefixes = vec![0; lines.len()];
    let numbers: Vec<Option<(u64, usize)>> = lines.iter().map(|line| number(line)).collect();
    let mut from = 0;
    while from < lines.len() {
        let mut to = from + 1;
        while let (Some(Some((before, _))), Some(Some((now, _)))) =
            (numbers.get(to - 1), numbers.get(to))
            && before.checked_add(1) == Some(*now)
        {
            to += 1;
        }
        if to - from >= FEWEST {
            for at in from..to {
                prefixes[at] = numbers[at].map_or(0, |(_, length)| length);
            }
        }
        from = to;
    }
    prefixes
}

/// The number at a line's start, and how many bytes it takes with what ends it.
fn number(line: &str) -> Option<(u64, usize)> {
    let blank = line.len() - line.trim_start().len();
    let rest = &line[blank..];
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let number = rest[..digits].parse().ok()?;
    let ends = match rest[digits..].chars().next() {
        None => 0,
        Some(' ' | '\t' | ':' | '|' | '\r') => 1,
        Some(_) => return None,
    };
    Some((number, blank + digits + ends))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_that_count_up_are_taken_away() {
        let listing = ["  8 a", "  9", " 10 ", " 11\tb", " 12:c"];
        assert_eq!(prefixes(&listing), [4, 3, 4, 4, 4]);
        let table = ["  1 2", "  2 4", "  3 6", "  4 8", "no"];
        assert_eq!(prefixes(&table), [0; 5]);
        let figures = ["500", "500", "501", "1", "2", "3.5", "4"];
        assert_eq!(prefixes(&figures), [0; 7]);
        assert_eq!(prefixes(&["18446744073709551615 a", "0 b"]), [0, 0]);
        assert!(prefixes(&[]).is_empty());
    }
}
