//! What an agent at fault sends.

use std::io::Read;

use super::*;
use crate::client::pipe_command::piped;
use crate::protocol::pipe::{Kind, encode};

/// An agent behind a pipe that prints this.
fn agent_that_prints(output: impl Read + Send + 'static) -> Agent {
    let child = piped("sleep").arg("60").spawn().unwrap();
    let elsewhere = ("pod".to_owned(), StderrTail::default());
    let mut agent = Agent::of_child(child, Some(elsewhere)).unwrap();
    agent.incoming = FrameQueue::read(output, agent.liveness.clone()).unwrap();
    agent
}

fn frame(number: u32, answer: &Answer) -> Vec<u8> {
    let text = serde_json::to_vec(answer).unwrap();
    encode(Side::Agent, Kind::Message, number, &text)
}

/// Progress without end.
struct Endless(u32, io::Cursor<Vec<u8>>);

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.1.read(buffer)? {
            0 => {
                let progress = Answer::Progress {
                    segment: 0,
                    requests: 1,
                    errors: 0,
                };
                self.1 = io::Cursor::new(frame(self.0, &progress));
                self.0 += 1;
                self.1.read(buffer)
            }
            count => Ok(count),
        }
    }
}

#[test]
fn an_agent_that_reports_progress_for_ever_is_lost() {
    let mut agent = agent_that_prints(Endless(0, io::Cursor::default()));
    let mut timeout = ReplyTimeout::with(&Order::Clock, Duration::ZERO);
    timeout.total_limit = Duration::from_millis(1_200);
    let stop = AtomicBool::new(false);
    let end = Instant::now() + Duration::from_secs(20);
    let error = loop {
        assert!(Instant::now() < end, "it still waits");
        if let Err(error) = agent.next_answer(&stop, &mut timeout, WAIT) {
            break error.to_string();
        }
    };
    assert_eq!(
        error,
        "lost the agent: host `pod`: it has not come to an end after 1 s, longer than its order \
         can take"
    );
}

#[test]
fn a_clock_that_cannot_be_right_is_refused() {
    let wall_ns = clock::wall_ns();
    for (wall_ns, monotonic_ns) in [(wall_ns, i64::MAX), (wall_ns, -1), (i64::MIN, 5)] {
        let answer = Answer::Clock {
            wall_ns,
            monotonic_ns,
        };
        let mut agent = agent_that_prints(io::Cursor::new(frame(0, &answer)));
        let error = agent.clock().unwrap_err().to_string();
        assert!(
            error.starts_with("lost the agent: host `pod`: its clock cannot be right: "),
            "{error}"
        );
    }
    assert_eq!(ahead_ns(50, 20), Some(30));
}

#[test]
fn the_version_of_another_agent_is_shown_without_control_characters() {
    let hello = Answer::Hello {
        version: format!("9\x1b[31m\n{}", "1".repeat(10_000)),
        pid: 1,
        folder: String::new(),
        program: String::new(),
        network: String::new(),
    };
    let mut agent = agent_that_prints(io::Cursor::new(frame(0, &hello)));
    let stop = AtomicBool::new(false);
    let error = agent.greet(None, None, &stop).unwrap_err().to_string();
    assert!(
        error.contains("its weigh is version 9\\u{1b}[31m\\n1"),
        "{error}"
    );
    assert!(
        error.ends_with(concat!("; expected ", env!("CARGO_PKG_VERSION"))),
        "{error}"
    );
    assert!(error.len() < 5_000, "{}", error.len());
}

#[test]
fn a_long_reason_is_shortened() {
    let reason = "x".repeat(8 * REASON_BYTES_MAX);
    let hello = Answer::Done;
    let mut frames = frame(0, &hello);
    frames.extend(frame(1, &Answer::Failed { reason }));
    let mut agent = agent_that_prints(io::Cursor::new(frames));
    agent.ask(&Order::Clock).unwrap();
    let error = agent.ask(&Order::Clock).unwrap_err().to_string();
    assert!(error.len() < 2 * REASON_BYTES_MAX, "{}", error.len());
}
