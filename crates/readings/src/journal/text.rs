//! A journal as text: one row per line, each with a checksum.

use std::borrow::Cow;
use std::thread::{Builder, ScopedJoinHandle};

use serde::Deserialize;

use crate::journal::counts::{COUNT_MAX, first_above_limit};
use crate::{Journal, JournalRow};

/// The most bytes of a line without its end. Those of real runs have tens of kilobytes.
pub const JOURNAL_LINE_BYTES_MAX: usize = 64 << 20;
const TOO_LONG: &str = "it is longer than 64 MiB; it and what stands below it are not read";
/// For fewer lines than this, another thread is not worth starting.
const LINES_PER_THREAD_MIN: usize = 64;
/// What comes before and after the checksum at the end of a line.
const SUM_BEGINS: &[u8] = b",\"crc32\":\"";
const SUM_ENDS: &[u8] = b"\"}";
const SUM_DIGITS: usize = 8;
const SUM_BYTES: usize = SUM_BEGINS.len() + SUM_DIGITS + SUM_ENDS.len();
const TRIAL_BEGINS: &[u8] = b"{\"row\":\"trial\",";
/// The most damaged lines that are named one by one.
const NAMED_MAX: usize = 10;

/// Why a text is not a journal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalTextError {
    #[error("line {line}: expected a journal row: {why}")]
    Row {
        /// The line's number, from 1.
        line: usize,
        /// What the parser says.
        why: String,
    },
    /// The first row is not a run's header.
    #[error("expected the run's header in the first line")]
    Header,
}

impl JournalTextError {
    /// Whether the first line is damaged. Nothing can be salvaged without it: it says what was
    /// measured.
    pub fn is_of_first_line(&self) -> bool {
        matches!(self, Self::Header | Self::Row { line: 1, .. })
    }
}

/// A row that cannot be written to a journal, because it could not be read back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnwritableRow(String);

/// What could be read of a damaged journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Salvaged {
    /// The intact rows. Warnings before them say what was left out.
    pub journal: Journal,
    /// The number of all lines, including a last one that was cut off.
    pub lines: usize,
    /// The lines that were left out, each with its number, from 1, and the reason.
    pub left_out: Vec<(usize, String)>,
}

/// The kind of a row, known first: serde would buffer a tagged enum before it parses it.
#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(borrow)]
    row: Cow<'a, str>,
}

impl JournalRow {
    /// The row as a line of a journal, with its checksum and its end.
    ///
    /// # Errors
    /// When it could not be read back, such as a row with a figure that is not a number.
    pub fn to_line(&self) -> Result<Vec<u8>, UnwritableRow> {
        let unwritable = |e: serde_json::Error| UnwritableRow(e.to_string());
        let mut line = serde_json::to_vec(self).map_err(unwritable)?;
        Self::read(&line).map_err(unwritable)?;
        if line.len() + SUM_BYTES > JOURNAL_LINE_BYTES_MAX {
            return Err(UnwritableRow("it is longer than 64 MiB".to_owned()));
        }
        // Removes the closing brace, which follows the checksum.
        line.pop();
        let sum = crc32fast::hash(&line);
        line.extend_from_slice(SUM_BEGINS);
        line.extend_from_slice(format!("{sum:08x}").as_bytes());
        line.extend_from_slice(SUM_ENDS);
        line.push(b'\n');
        Ok(line)
    }

    /// Reads a line. One without a checksum is accepted: no program has summed it.
    fn parse(line: &[u8]) -> Result<Self, String> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if let Some((row, sum)) = summed(line) {
            let found = crc32fast::hash(row);
            if found != sum {
                return Err(format!(
                    "its checksum is {sum:08x}, but its bytes have {found:08x}: it is damaged or was \
                     changed"
                ));
            }
        }
        Self::read(line).map_err(|e| e.to_string())
    }

    fn read(line: &[u8]) -> serde_json::Result<Self> {
        let row = match is_trial(line)? {
            true => JournalRow::Trial(serde_json::from_slice(line)?),
            false => serde_json::from_slice(line)?,
        };
        if let Some((field, number)) = first_above_limit(line) {
            return Err(serde::de::Error::custom(format_args!(
                "`{field}` is {number}, expected at most {COUNT_MAX}: no load counts that many"
            )));
        }
        Ok(row)
    }
}

/// Whether a line is a trial's. Trials are most of a journal, and begin with their kind as this
/// program writes them; of other lines the kind is parsed.
fn is_trial(line: &[u8]) -> serde_json::Result<bool> {
    if line.starts_with(TRIAL_BEGINS) {
        return Ok(true);
    }
    let kind: Kind<'_> = serde_json::from_slice(line)?;
    Ok(kind.row == "trial")
}

/// The bytes that a line's checksum covers, and the checksum; `None` if the line has none.
fn summed(line: &[u8]) -> Option<(&[u8], u32)> {
    let rest = line.strip_suffix(SUM_ENDS)?;
    let (rest, digits) = rest.split_at_checked(rest.len().checked_sub(SUM_DIGITS)?)?;
    let row = rest.strip_suffix(SUM_BEGINS)?;
    let digits = str::from_utf8(digits).ok()?;
    Some((row, u32::from_str_radix(digits, 16).ok()?))
}

/// The row of each line, or why it is not one. A long journal takes nearly all of its time for the
/// histograms of its trials. Lines do not depend on each other, so several threads parse them.
fn parse_lines(lines: &[&[u8]]) -> Vec<Result<JournalRow, String>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = lines.len().div_ceil(threads).max(LINES_PER_THREAD_MIN);
    let parse = |lines: &[&[u8]]| -> Vec<Result<JournalRow, String>> {
        lines.iter().map(|line| JournalRow::parse(line)).collect()
    };
    if lines.len() <= share {
        return parse(lines);
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = lines
            .chunks(share)
            .map(|part| {
                let started = Builder::new().spawn_scoped(scope, move || parse(part));
                // Without another thread, this one parses.
                started.map_err(|_| part)
            })
            .collect();
        let join = |thread: Result<ScopedJoinHandle<'_, _>, &[&[u8]]>| match thread {
            Ok(thread) => thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(part) => parse(part),
        };
        threads.into_iter().flat_map(join).collect()
    })
}

/// The row of each line up to a text's last line feed, and how many bytes that is. What stands
/// behind is a line that was cut off, or one that is longer than a line may be.
fn rows_of(text: &[u8]) -> (Vec<Result<JournalRow, String>>, usize) {
    let mut whole_bytes = 0;
    let mut lines = Vec::new();
    for end in memchr::memchr_iter(b'\n', text) {
        lines.push(&text[whole_bytes..=end]);
        whole_bytes = end + 1;
    }
    let mut rows = parse_lines(&lines);
    if text.len() - whole_bytes > JOURNAL_LINE_BYTES_MAX {
        rows.push(Err(TOO_LONG.to_owned()));
        return (rows, text.len());
    }
    (rows, whole_bytes)
}

impl Journal {
    /// Reads the lines of a journal, of which the text may end at one that is longer than
    /// [`JOURNAL_LINE_BYTES_MAX`]. A run that was killed may leave half a line at the end, which is
    /// ignored.
    ///
    /// # Errors
    /// When a line is not a row or does not match its checksum, or the first row is not a header.
    pub fn parse(text: &[u8]) -> Result<Self, JournalTextError> {
        let (rows, whole_bytes) = rows_of(text);
        let numbered = rows.into_iter().zip(1..);
        let mut rows =
            numbered.map(|(row, line)| row.map_err(|why| JournalTextError::Row { line, why }));
        // Before damage further below: without a header, nothing can be salvaged.
        let Some(JournalRow::Run(header)) = rows.next().transpose()? else {
            return Err(JournalTextError::Header);
        };
        Ok(Self {
            header,
            rows: rows.collect::<Result<_, _>>()?,
            whole_bytes: whole_bytes as u64,
        })
    }

    /// Reads the intact rows of a damaged journal. Warnings, which come first, say what was left
    /// out.
    ///
    /// # Errors
    /// When the first line, the run's header, is damaged.
    pub fn salvage(text: &[u8]) -> Result<Salvaged, JournalTextError> {
        let (rows, whole_bytes) = rows_of(text);
        let lines = rows.len();
        let mut rows = rows.into_iter().zip(1..);
        let header = match rows.next() {
            Some((Ok(JournalRow::Run(header)), _)) => header,
            Some((Err(why), line)) => return Err(JournalTextError::Row { line, why }),
            _ => return Err(JournalTextError::Header),
        };
        let (mut whole, mut left_out) = (Vec::new(), Vec::new());
        for (row, line) in rows {
            match row {
                Ok(JournalRow::Run(_)) => left_out.push((line, "a second header".to_owned())),
                Ok(row) => whole.push(row),
                Err(why) => left_out.push((line, why)),
            }
        }
        if whole_bytes < text.len() {
            left_out.push((lines + 1, "it was cut off".to_owned()));
        }
        let named = left_out.iter().take(NAMED_MAX).map(|(line, why)| {
            format!("line {line} of the journal is damaged and was left out: {why}")
        });
        let more = left_out.len().saturating_sub(NAMED_MAX);
        let more = (more > 0).then(|| format!("{more} more lines of the journal were left out"));
        let warnings = named.chain(more).map(|text| JournalRow::Warning { text });
        let journal = Self {
            header,
            rows: warnings.chain(whole).collect(),
            whole_bytes: whole_bytes as u64,
        };
        Ok(Salvaged {
            journal,
            lines: lines + usize::from(whole_bytes < text.len()),
            left_out,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Condition, Histogram, LoadReading, Outcome, Pacing, RateChoice, Reading, Trial};

    const HEADER: &str = r#"{"row":"run","weigh_version":"1","experiment":"e","title":"t","seed":1,"baseline":"a","subjects":["a"],"conditions":[{}],"blocks":2,"matters":0.03,"matters_failures":0.001,"max_error":0.01,"started_unix_s":5,"published":[]}"#;

    fn trial(number: u32) -> JournalRow {
        let mut load = LoadReading::empty(Pacing::Closed);
        let mut response = Histogram::new();
        response.record_ns(1_234_567);
        (load.requests, load.duration_s, load.response) = (123_456, 10.25, response);
        JournalRow::Trial(Box::new(Trial {
            trial: number,
            block: 1,
            condition: Condition::new(),
            subject: "a".into(),
            baseline_copy: false,
            attempt: 1,
            outcome: Outcome::Done(Box::new(Reading {
                throughput: Some(load),
                ..Reading::default()
            })),
        }))
    }

    fn rows() -> Vec<JournalRow> {
        let rate = RateChoice {
            condition: Condition::from([("c".to_owned(), "1".to_owned())]),
            rate_per_s: 1250.5,
            slowest_per_s: None,
            of_users: false,
        };
        vec![
            JournalRow::parse(HEADER.as_bytes()).unwrap(),
            JournalRow::Rate(rate),
            trial(1),
            JournalRow::Warning {
                text: "one \u{e9} \n \"two\"".into(),
            },
            JournalRow::End { complete: true },
        ]
    }

    fn text(rows: &[JournalRow]) -> Vec<u8> {
        rows.iter().flat_map(|row| row.to_line().unwrap()).collect()
    }

    #[test]
    fn rows_with_and_without_a_checksum_are_read() {
        let rows = rows();
        let journal = Journal::parse(&text(&rows)).unwrap();
        assert_eq!(journal.rows, rows[1..]);
        let plain = rows
            .iter()
            .map(|row| serde_json::to_string(row).unwrap() + "\n");
        let plain: String = plain.collect();
        assert_eq!(Journal::parse(plain.as_bytes()).unwrap().rows, rows[1..]);
        let line = rows[0].to_line().unwrap();
        assert!(line.len() > HEADER.len() && line.ends_with(b"\"}\n"));
    }

    #[test]
    fn a_changed_byte_is_never_a_changed_figure() {
        let rows = rows();
        let whole = text(&rows);
        let rows = &rows[1..];
        let first_line = whole.iter().position(|byte| *byte == b'\n').unwrap();
        for at in 0..whole.len() {
            // At each position, a flipped bit, and then a character with a meaning.
            let others = [0, b'\n', b' ', b'9', b',', b'}', b'"', 0xff];
            let bytes = [whole[at] ^ (1 << (at % 8)), others[at / 3 % 8]];
            for byte in bytes.into_iter().filter(|byte| *byte != whole[at]) {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                let read = Journal::parse(&damaged);
                if let Ok(journal) = &read {
                    // Without its line feed, the last line counts as cut off.
                    let kept = rows.len() - usize::from(at == whole.len() - 1);
                    assert_eq!(journal.rows, rows[..kept], "{at} {byte}");
                }
                match Journal::salvage(&damaged) {
                    Err(e) => {
                        assert!(at <= first_line && e.is_of_first_line(), "{at} {byte}");
                        let refused = read.unwrap_err();
                        assert!(refused.is_of_first_line(), "{at} {byte}");
                    }
                    Ok(Salvaged {
                        journal, left_out, ..
                    }) => {
                        let is_whole = read.is_ok() && at < whole.len() - 1;
                        assert_eq!(left_out.is_empty(), is_whole, "{at} {byte}");
                        let warnings = left_out.len();
                        assert!(journal.rows.len() + 1 >= rows.len().min(3), "{at} {byte}");
                        let mut old = rows.iter();
                        for row in &journal.rows[warnings..] {
                            assert!(old.any(|one| one == row), "{at} {byte}: {row:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_missing_header_is_said_before_damage_below() {
        let mut headless = text(&rows()[1..]);
        let last = headless.len() - 3;
        headless[last] = b'!';
        let refused = Journal::parse(&headless).unwrap_err();
        assert!(refused.is_of_first_line(), "{refused}");
        assert_eq!(Journal::salvage(&headless).unwrap_err(), refused);
    }

    #[test]
    fn a_journal_cut_anywhere_has_the_rows_before() {
        let rows = rows();
        let whole = text(&rows);
        for kept in 0..whole.len() {
            let cut = &whole[..kept];
            let lines = cut.iter().filter(|byte| **byte == b'\n').count();
            match Journal::parse(cut) {
                Ok(journal) => assert_eq!(journal.rows, rows[1..lines], "{kept}"),
                Err(error) => assert_eq!((error, lines), (JournalTextError::Header, 0)),
            }
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_told_and_what_stands_above_it_is_salvaged() {
        let rows = rows();
        let mut whole = text(&rows);
        whole.resize(whole.len() + JOURNAL_LINE_BYTES_MAX, 0);
        // So long may be what a killed run left.
        assert_eq!(Journal::parse(&whole).unwrap().rows, rows[1..]);
        whole.push(0);
        let why = Journal::parse(&whole).unwrap_err().to_string();
        assert!(why.contains("line 6") && why.contains("64 MiB"), "{why}");
        let salvaged = Journal::salvage(&whole).unwrap();
        assert_eq!(salvaged.left_out, [(6, TOO_LONG.to_owned())]);
        assert_eq!(salvaged.lines, 6);
        assert_eq!(salvaged.journal.rows[1..], rows[1..]);
        let headless = vec![0; JOURNAL_LINE_BYTES_MAX + 1];
        assert!(Journal::parse(&headless).unwrap_err().is_of_first_line());
        // Nor is such a row written.
        let text = "x".repeat(JOURNAL_LINE_BYTES_MAX);
        let why = JournalRow::Warning { text }.to_line().unwrap_err();
        assert!(why.to_string().contains("64 MiB"), "{why}");
    }

    #[test]
    fn a_damaged_row_is_left_out_and_named() {
        let mut all = rows();
        all.splice(3..3, (2..20).map(trial));
        let mut damaged = text(&all);
        let end = damaged.len() - 4;
        damaged[end] ^= 1;
        let salvaged = Journal::salvage(&damaged).unwrap();
        let lines: Vec<usize> = salvaged.left_out.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [all.len()]);
        let warning = salvaged.journal.warnings()[0].to_owned();
        assert!(
            warning.starts_with("line 23 of the journal is damaged"),
            "{warning}"
        );
        assert_eq!(salvaged.journal.trials().count(), 19);
        assert!(!salvaged.journal.is_complete());
        let refused = Journal::salvage(b"{}\n").unwrap_err();
        assert!(matches!(refused, JournalTextError::Row { line: 1, .. }));
    }

    #[test]
    fn a_count_whose_sums_would_overflow_is_refused_with_its_field() {
        let row = serde_json::to_string(&trial(1)).unwrap();
        let with = |requests: u64| {
            let row = row.replace("123456,", &format!("{requests},"));
            Journal::parse(format!("{HEADER}\n{row}\n").as_bytes())
        };
        assert!(with(COUNT_MAX).is_ok());
        for requests in [COUNT_MAX + 1, u64::MAX] {
            let why = with(requests).unwrap_err().to_string();
            let expected = format!(
                "line 2: expected a journal row: `outcome.done.throughput.requests` is {requests}, \
                 expected at most {COUNT_MAX}: no load counts that many"
            );
            assert_eq!(why, expected);
        }
        // Nor is it written.
        let mut load = LoadReading::empty(Pacing::Closed);
        load.bytes_read = u64::MAX;
        let outcome = Outcome::Done(Box::new(Reading {
            latency: Some(load),
            ..Reading::default()
        }));
        let JournalRow::Trial(mut row) = trial(1) else {
            unreachable!()
        };
        row.outcome = outcome;
        let why = JournalRow::Trial(row).to_line().unwrap_err().to_string();
        assert!(why.contains("latency.bytes_read"), "{why}");
        // A seed is no count.
        let header = HEADER.replace("\"seed\":1", "\"seed\":18446744073709551615");
        assert!(Journal::parse(format!("{header}\n").as_bytes()).is_ok());
    }

    #[test]
    fn a_row_that_could_not_be_read_again_is_refused() {
        let rate = |rate_per_s: f64| {
            JournalRow::Rate(RateChoice {
                condition: Condition::new(),
                rate_per_s,
                slowest_per_s: None,
                of_users: false,
            })
        };
        assert!(rate(1.0).to_line().is_ok());
        // JSON has no such numbers: `null` would be written.
        for no_number in [f64::NAN, f64::INFINITY] {
            let why = rate(no_number).to_line().unwrap_err().to_string();
            assert!(why.contains("null"), "{why}");
        }
    }
}
