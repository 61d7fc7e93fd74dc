//! The last lines of a child's standard error, for messages.

use std::io::{BufRead, BufReader, Read};
use std::process::ChildStderr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The most lines in a message.
const TAIL_LINES: usize = 8;
/// The longest such line.
const TAIL_LINE_BYTES_MAX: u64 = 4096;

/// The last lines of a child's standard error.
#[derive(Clone, Debug, Default)]
pub(crate) struct StderrTail(Arc<Mutex<(Vec<String>, bool)>>);

impl StderrTail {
    pub(crate) fn of(output: ChildStderr) -> Self {
        let words = Self::default();
        let kept = words.clone();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut line = Vec::new();
            // A longer line is read in parts.
            while let Ok(1..) = (&mut output)
                .take(TAIL_LINE_BYTES_MAX)
                .read_until(b'\n', &mut line)
            {
                let text = String::from_utf8_lossy(&line).trim().to_owned();
                line.clear();
                let line = text;
                if let Ok(mut kept) = kept.0.lock()
                    && !line.is_empty()
                {
                    kept.0.push(line);
                    if kept.0.len() > TAIL_LINES {
                        kept.0.remove(0);
                    }
                }
            }
            if let Ok(mut kept) = kept.0.lock() {
                kept.1 = true;
            }
        });
        words
    }

    /// The lines, as soon as the output has ended, or after 300 ms.
    pub(crate) fn shown(&self) -> String {
        let end = Instant::now() + Duration::from_millis(300);
        loop {
            let (lines, ended) = match self.0.lock() {
                Ok(kept) => (kept.0.join("; "), kept.1),
                Err(_) => return String::new(),
            };
            if ended || Instant::now() >= end {
                return lines;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
