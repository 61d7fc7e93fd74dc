//! What happened to servers during a load, and what clients noticed.

use serde::{Deserialize, Serialize};

/// Events in an open loop's window: the failures around them, and how the servers came back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EventsReading {
    /// Requests of the whole load, also of what was cut off at its start and of those that were
    /// answered after the window's end.
    pub requests: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// Time from the first event until the rate is full again: from then on to the window's end
    /// 95% of the requests of every second had a good answer within 0.3 s. 0 where it was full all
    /// the time, absent where it was not full at the window's end.
    pub full_rate_after_s: Option<f64>,
    /// The longest time without any good answer, from the first event to the window's end; absent
    /// in journals of before it was recorded.
    #[serde(default)]
    pub longest_silence_s: Option<f64>,
    /// When it began, since the measured window began.
    #[serde(default)]
    pub longest_silence_at_s: Option<f64>,
    /// The longest time that a good answer took which came after the first event; absent where none
    /// came, and in journals of before it was recorded.
    #[serde(default)]
    pub longest_response_s: Option<f64>,
    /// Time from the first event to the window's end.
    pub observed_s: f64,
    /// What happened, in order.
    pub events: Vec<EventReading>,
}

/// Something that happened to a server, at times since the measured window began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EventReading {
    pub server: String,
    /// What was done: `kill`, `stop` or `cut`.
    pub what: String,
    /// When it had been done.
    pub at_s: f64,
    /// When it had been undone; absent where that came after the window's end.
    pub back_s: Option<f64>,
    /// Time from then until the server had its share of the load again, judged by its CPU time;
    /// absent if it did not within the window.
    pub in_rotation_after_s: Option<f64>,
    /// How long that was looked for.
    pub looked_for_s: f64,
    /// The most connections that were open at a server while it was stopped: requests that had
    /// been sent to it and waited there.
    pub connections_max: Option<u64>,
}
