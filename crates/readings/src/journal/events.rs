//! What happened to servers during a load, and what clients noticed.

use serde::{Deserialize, Serialize};

/// The length of the rows of a load with events, ms.
pub const EVENT_ROW_MS: u64 = 100;

/// Events in an open loop's window: the failures around them, and how the servers came back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EventsReading {
    /// Requests of the whole load, also of what was cut off at its start and of those that were
    /// answered after the window's end.
    pub requests: u64,
    pub failed: u64,
    /// Time from the first event until the rate is full again: from then on to the window's end
    /// 95% of the requests of every second had a good answer within 0.3 s. 0 where it was full all
    /// the time, absent where it was not full at the window's end, and where `events` is empty.
    pub full_rate_after_s: Option<f64>,
    /// The longest time without any good answer, from the first event to the window's end.
    pub longest_silence_s: Option<f64>,
    /// When it began, since the measured window began.
    pub longest_silence_at_s: Option<f64>,
    /// The longest time that a good answer took which came after the first event; absent where none
    /// came.
    pub longest_response_s: Option<f64>,
    /// Time from the first event to the window's end.
    pub observed_s: f64,
    /// The memory of the server that the load addresses before the load, bytes, as
    /// [`rest_bytes`](crate::ServerStart::rest_bytes); absent where it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_before_bytes: Option<u64>,
    /// The same after the load, before events are undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_after_bytes: Option<u64>,
    /// Connections that the load opened beyond those that it holds: to replace others that ended.
    #[serde(default)]
    pub reopened: u64,
    /// What happened, in order; empty where nothing happened to this subject, as to a control.
    pub events: Vec<EventReading>,
}

impl EventsReading {
    /// Whether anything happened to this subject. If not, there is nothing to recover from, and no
    /// time since an event.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }
}

/// Something that happened to a server or a host, at times since the measured window began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EventReading {
    /// The server that it happened to; empty if it happened to a host.
    pub server: String,
    /// The host that it happened to as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// What was done, in the word of an experiment file: `kill`, `reload` and so on.
    pub what: String,
    /// When it had been done; of a reload and of a rolling restart, when it was ordered.
    pub at_s: f64,
    /// When it had been undone; absent where that came after the window's end, except for a server that
    /// was started again in the window.
    pub back_s: Option<f64>,
    /// Time from `at_s` until the load had left the server: until neither requests that it counted nor
    /// requests without a good answer in time made up half of its usual requests of half a second. Absent
    /// if it had not before the event was undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_after_s: Option<f64>,
    /// How long that was looked for; 0 where it cannot be said, as of reloads and of servers that do not
    /// count their requests.
    #[serde(default)]
    pub watched_for_s: f64,
    /// Time from `back_s` until the server had its share of the load again, judged by the requests that it
    /// counted, or else by its CPU time; absent if it did not within the window.
    pub in_rotation_after_s: Option<f64>,
    /// How long that was looked for; 0 where it is not known what is usual.
    pub looked_for_s: f64,
    /// The most connections that were open at a server while it was stopped: requests that had
    /// been sent to it and waited there.
    pub connections_max: Option<u64>,
    /// By how much it was begun or undone after its due time, whichever delay was longer; the wait for
    /// another event on the same server does not count. Absent for the later servers of a rolling
    /// restart, which have no due time, and in journals of before it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_s: Option<f64>,
    /// Of a reload: time from `at_s` until the new configuration was seen to be in effect; absent
    /// if that was not seen before the reload was undone or the window ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_effect_after_s: Option<f64>,
    /// The load while the event lasted; absent in journals of before it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub during: Option<DuringEvent>,
}

impl EventReading {
    /// The name of the server or the host.
    pub fn target(&self) -> &str {
        self.host.as_deref().unwrap_or(&self.server)
    }

    /// Whether this is a reload, which takes no server out of rotation.
    pub fn is_reload(&self) -> bool {
        self.what == RELOAD
    }

    /// Whether the event is one that servers are meant to pass without losing a request: a reload, or
    /// the restart of a server of a rolling restart.
    pub fn is_graceful(&self) -> bool {
        self.is_reload() || self.what == ROLLING
    }

    /// Whether it took a server's processes away for a time.
    pub fn is_loss(&self) -> bool {
        self.has_rotation() && self.what != QUOTA
    }

    /// Whether it can be said when the server was back in rotation.
    pub fn is_rotation_known(&self) -> bool {
        self.in_rotation_after_s.is_some() || self.looked_for_s > 0.0
    }

    /// Whether the event can take a server out of rotation.
    pub fn has_rotation(&self) -> bool {
        self.host.is_none() && !self.is_reload()
    }
}

const RELOAD: &str = "reload";
const QUOTA: &str = "quota";
/// The word for a rolling restart.
const ROLLING: &str = "rolling";

/// The load while an event lasted, from its interval rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DuringEvent {
    /// Start and end of these rows, since the measured window began.
    pub start_s: f64,
    pub end_s: f64,
    /// Good answers that came in these rows.
    pub requests: u64,
    /// Failures in these rows.
    pub errors: u64,
    /// The longest response time of the good answers.
    pub response_us_max: f64,
    /// The largest of the rows' 99th percentiles.
    pub row_p99_us_max: f64,
}
