//! As much of a terminal as is needed to read what a program has drawn on it.

/// What a terminal shows after it has got some bytes.
#[derive(Debug, Default)]
pub struct Shown {
    /// The other screen as it was last, its lines.
    pub drawn: String,
    /// Whether the other screen is the one that is shown.
    pub other: bool,
    /// What was written while it was not.
    pub text: String,
    /// How often the other screen was cleared or taken.
    pub cleared: usize,
}

/// Follows the sequences that move the cursor, clear, and switch screens (ECMA-48 and xterm's
/// private modes); colours and the like are passed over.
pub fn shown(bytes: &str) -> Shown {
    let mut shown = Shown::default();
    let mut cells = vec![vec![' '; 300]; 100];
    let (mut line, mut column) = (0, 0);
    let mut rest = bytes.chars();
    while let Some(c) = rest.next() {
        if c != '\x1b' {
            match c {
                c if !shown.other => shown.text.push(c),
                '\r' => column = 0,
                '\n' => line += 1,
                c => {
                    cells[line][column] = c;
                    column += 1;
                }
            }
            continue;
        }
        match rest.next() {
            Some('[') => {}
            None => break,
            Some(other) => panic!("expected a CSI sequence, found ESC {other:?}"),
        }
        let mut sequence = String::new();
        // Up to and with the letter that ends it; a sequence may be cut off at the end.
        while !sequence.ends_with(|c: char| c.is_ascii_alphabetic()) {
            match rest.next() {
                Some(c) => sequence.push(c),
                None => break,
            }
        }
        let (words, end) = sequence.split_at(sequence.len().saturating_sub(1));
        let number = |at: usize| -> usize {
            words
                .split(';')
                .nth(at)
                .and_then(|n| n.parse().ok())
                .unwrap_or(1)
        };
        match (words, end) {
            (_, "H") => (line, column) = (number(0) - 1, number(1) - 1),
            ("2", "J") | ("?1049", "h") => {
                cells.iter_mut().for_each(|line| line.fill(' '));
                shown.cleared += 1;
                shown.other |= words == "?1049";
            }
            ("?1049", "l") => shown.other = false,
            (_, "m" | "h" | "l") => {}
            _ if rest.as_str().is_empty() => {}
            _ => panic!("unexpected sequence {sequence:?}"),
        }
    }
    let lines: Vec<String> = cells
        .iter()
        .map(|line| line.iter().collect::<String>().trim_end().to_owned())
        .collect();
    shown.drawn = lines.join("\n").trim_end().to_owned();
    shown
}
