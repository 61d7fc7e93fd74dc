//! What a child prints: lines of its output, and the last ones of its standard error.

use std::io::{self, BufRead, BufReader, Read};
use std::process::ChildStderr;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::frame_queue::{ANSWER_BYTES_MAX, ANSWERS_MAX};

/// The most lines in a message.
const TAIL_LINES: usize = 8;
/// The longest such line.
const TAIL_LINE_BYTES_MAX: u64 = 4096;

/// The last lines of a child's standard error.
#[derive(Clone, Debug, Default)]
pub(crate) struct StderrTail(Arc<Mutex<(Vec<String>, bool)>>);

impl StderrTail {
    /// Reads on a thread of its own. If that cannot be started, this is what is shown.
    pub(crate) fn of(output: ChildStderr) -> Self {
        let words = Self::default();
        let kept = words.clone();
        let started = net::os::start_thread("which reads errors of a program", move || {
            let mut output = BufReader::new(output);
            let mut line = Vec::new();
            // A longer line is read in parts.
            while let Ok(1..) = (&mut output)
                .take(TAIL_LINE_BYTES_MAX)
                .read_until(b'\n', &mut line)
            {
                let text = String::from_utf8_lossy(&line).trim().to_owned();
                line.clear();
                if let Ok(mut kept) = kept.0.lock()
                    && !text.is_empty()
                {
                    kept.0.push(text);
                    if kept.0.len() > TAIL_LINES {
                        kept.0.remove(0);
                    }
                }
            }
            if let Ok(mut kept) = kept.0.lock() {
                kept.1 = true;
            }
        });
        if let Err(error) = started
            && let Ok(mut kept) = words.0.lock()
        {
            *kept = (vec![error.to_string()], true);
        }
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

/// Reads a child's lines on a thread of its own. After an error nothing more comes; that the thread
/// cannot be started is one.
pub fn read_answers(output: impl Read + Send + 'static) -> Receiver<io::Result<String>> {
    lines_within(output, ANSWER_BYTES_MAX)
}

fn lines_within(
    output: impl Read + Send + 'static,
    bytes_max: usize,
) -> Receiver<io::Result<String>> {
    let (sender, receiver) = mpsc::sync_channel(ANSWERS_MAX);
    let lines = sender.clone();
    let started = net::os::start_thread("which reads what a program prints", move || {
        let mut output = BufReader::new(output);
        while let Some(line) = next_line(&mut output, bytes_max).transpose() {
            let is_last = line.is_err();
            if lines.send(line).is_err() || is_last {
                break;
            }
        }
    });
    if let Err(error) = started {
        // There is room for it.
        let _ = sender.try_send(Err(error.into()));
    }
    receiver
}

/// The next line, without its end; `None` at the end of the input.
fn next_line(input: &mut impl BufRead, bytes_max: usize) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    // One byte more, so that a longer line is noticed.
    let limit = bytes_max as u64 + 1;
    if input.take(limit).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.pop_if(|last| *last == b'\n').is_none() && line.len() > bytes_max {
        return Err(io::Error::other(format!(
            "a line of its output is longer than {bytes_max} bytes"
        )));
    }
    line.pop_if(|last| *last == b'\r');
    String::from_utf8(line).map(Some).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_prints_is_bounded_in_bytes() {
        let text = b"one\r\ntwo\n\nlast".as_slice();
        let lines: Vec<_> = lines_within(text, 4).iter().map(Result::unwrap).collect();
        assert_eq!(lines, ["one", "two", "", "last"]);
        // Without the limit it would be read until memory is used up.
        let endless = lines_within(io::repeat(b'x'), 1000);
        let error = endless.recv().unwrap().unwrap_err().to_string();
        assert!(error.contains("longer than 1000 bytes"), "{error}");
        assert!(endless.recv().is_err());
    }
}
