//! Servers that hold the messages of a stream back: several then arrive together that were due one
//! after the other.

pub mod words;

#[cfg(test)]
mod tests;

use readings::{
    Condition, Histogram, LastingReading, LoadReading, ServerSettings, SettingsReading,
};
use serde::Serialize;

use crate::trial::cells::Cells;
use crate::trial::loops::Loop;

/// Messages are held back where at least this share of them came together with the one before, ...
const MERGED_SHARE: f64 = 0.1;
/// ... and the baseline's share is at most this part of it.
const OF_BASELINE: f64 = 0.5;
/// The first message is held back too if it comes after at least this part of the stream.
const STREAM_SHARE: f64 = 0.5;

/// A setting is named as the cause where the first message is late by at least this part of what a
/// buffer holds, whose messages come together: a server without CPU time merges messages too, but
/// passes on the first at once.
const BUFFER_SHARE: f64 = 0.5;

/// A subject that holds messages back, in all blocks in which it and the baseline were measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeldBack {
    pub condition: Condition,
    pub subject: String,
    pub baseline: String,
    /// The share of messages that came together with the one before.
    pub merged_share: f64,
    pub baseline_merged_share: f64,
    /// Median time to the first message, us.
    pub first_us: f64,
    pub baseline_first_us: f64,
    /// Median time between two messages of the baseline: the sender's pace, us.
    pub pace_us: f64,
    /// Messages of a stream, where streams end.
    pub messages: Option<u64>,
    /// Whether the first message comes about when the stream ends.
    pub is_whole_stream: bool,
    /// The server whose setting causes it, where its recipe tells one.
    pub cause: Option<Cause>,
}

/// A setting by which a server holds back what it passes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    pub server: String,
    /// In the words of the server's own configuration: `proxy_buffering on`.
    pub setting: String,
}

impl HeldBack {
    /// Whether the first message waits as long as a buffer takes to be full, or the stream to end.
    fn is_buffered(&self) -> bool {
        let late_us = self.first_us - self.baseline_first_us;
        // Of a buffer of n messages, n - 1 come together with the one before, and the first of them
        // waits for n - 1 paces.
        let others = self.merged_share / (1.0 - self.merged_share).max(f64::EPSILON);
        self.is_whole_stream || late_us >= (BUFFER_SHARE * others).max(1.0) * self.pace_us
    }
}

/// The subjects that hold messages back: by condition, then by subject, as declared.
pub(crate) fn held_back(
    baseline: &str,
    cells: &Cells<'_>,
    settings: &[&SettingsReading],
) -> Vec<HeldBack> {
    let mut found = Vec::new();
    for condition in &cells.conditions {
        let direct = Streams::of(cells, condition, baseline);
        for subject in cells.subjects.iter().filter(|one| *one != baseline) {
            let own = Streams::of(cells, condition, subject);
            let Some(mut one) = compared(&own, &direct) else {
                continue;
            };
            one.condition.clone_from(condition);
            (one.subject, one.baseline) = (subject.clone(), baseline.to_owned());
            if one.is_buffered() {
                one.cause = cause(settings, condition, subject);
            }
            found.push(one);
        }
    }
    found
}

/// What the streams of a subject were like, over blocks.
struct Streams {
    /// The share of merged messages, by block.
    merged: Vec<(u32, f64)>,
    first: Histogram,
    gap: Histogram,
    /// From the request to the end of the stream.
    whole: Histogram,
    messages: u64,
    merged_messages: u64,
}

impl Streams {
    fn of(cells: &Cells<'_>, condition: &Condition, subject: &str) -> Self {
        let mut all = Self {
            merged: Vec::new(),
            first: Histogram::new(),
            gap: Histogram::new(),
            whole: Histogram::new(),
            messages: 0,
            merged_messages: 0,
        };
        for (block, cell) in cells.judged(Loop::Closed, condition, subject, false) {
            let load = cell.throughput();
            // A client without CPU time finds messages together that came one by one.
            if let Some((load, lasting)) = load.and_then(streams_of)
                && !load.client.saturated
            {
                all.merged.push((block, share(lasting)));
                all.first.merge(&lasting.first_message);
                all.gap.merge(&lasting.gap);
                all.whole.merge(&load.response);
                all.messages += lasting.messages;
                all.merged_messages += lasting.merged;
            }
        }
        all
    }

    fn share(&self) -> f64 {
        self.merged_messages as f64 / self.messages.max(1) as f64
    }
}

fn streams_of(load: &LoadReading) -> Option<(&LoadReading, &LastingReading)> {
    let lasting = load.lasting.as_deref()?;
    (lasting.messages > 0).then_some((load, lasting))
}

fn share(lasting: &LastingReading) -> f64 {
    lasting.merged as f64 / lasting.messages.max(1) as f64
}

fn compared(own: &Streams, direct: &Streams) -> Option<HeldBack> {
    let is_held = |(block, share): &(u32, f64)| {
        let of_baseline = direct.merged.iter().find(|(other, _)| other == block);
        of_baseline.map(|(_, other)| *share >= MERGED_SHARE && *other <= OF_BASELINE * share)
    };
    let mut judged = own.merged.iter().filter_map(is_held).peekable();
    judged.peek()?;
    if !judged.all(|is_held| is_held) {
        return None;
    }
    let p50 = |times: &Histogram| times.quantile_us(0.5);
    let (first_us, pace_us) = (p50(&own.first), p50(&direct.gap));
    let (whole_us, baseline_first_us) = (p50(&direct.whole), p50(&direct.first));
    let ends = direct.whole.count() > 0 && pace_us > 0.0;
    Some(HeldBack {
        condition: Condition::new(),
        subject: String::new(),
        baseline: String::new(),
        merged_share: own.share(),
        baseline_merged_share: direct.share(),
        first_us,
        baseline_first_us,
        pace_us,
        // From the first to the last.
        messages: ends.then(|| ((whole_us - baseline_first_us) / pace_us).round() as u64 + 1),
        is_whole_stream: ends && first_us >= STREAM_SHARE * whole_us,
        cause: None,
    })
}

/// The first server of the path that tells of such a setting.
fn cause(settings: &[&SettingsReading], condition: &Condition, subject: &str) -> Option<Cause> {
    let mut under = settings.iter().filter(|one| one.condition == *condition);
    let of_subject = under.find_map(|one| one.subjects.iter().find(|it| it.subject == subject))?;
    of_subject.servers.iter().find_map(|server| {
        let setting = server.settings.get(ServerSettings::BUFFERING)?;
        (setting != ServerSettings::OFF && !ServerSettings::is_unknown(setting)).then(|| Cause {
            server: server.server.clone(),
            setting: setting.clone(),
        })
    })
}
