//! Messages at a known pace: `/events/N`, `/ws/paced/N`.

use std::io::Write as _;

use super::query::{each_value, number, positive_time_ns, time_ns, wrong};
use super::socket::{close, whole};
use super::{Step, message};
use net::grpc;
use net::grpc::echo::PacedRequest;
use net::ws::{CloseCode, Opcode, write_frame};

/// How events are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacedFormat {
    /// Server-sent events (HTML standard, 9.2).
    Sse,
    /// A line each.
    Lines,
    /// With nothing between them but the framing of HTTP.
    Chunks,
    /// Each is a text message of a WebSocket.
    Messages,
    /// Each is the payload of a message of a gRPC call.
    Call,
}

impl PacedFormat {
    pub(super) fn content_type(self) -> &'static str {
        match self {
            PacedFormat::Sse => "text/event-stream",
            PacedFormat::Lines => "application/x-ndjson",
            PacedFormat::Chunks | PacedFormat::Messages | PacedFormat::Call => {
                "application/octet-stream"
            }
        }
    }
}

/// What a request asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacedPlan {
    /// `None` for a stream without an end.
    count: Option<u64>,
    every_ns: u64,
    /// Bytes of an event's content.
    bytes: usize,
    /// Each event is due by up to this much later.
    jitter_ns: u64,
    seed: u64,
    /// For how long nothing is sent, and from which event on.
    stall: Option<(u64, u64)>,
    /// The event after which the answer breaks off.
    cut: Option<u64>,
    heartbeat_ns: Option<u64>,
    pub(super) format: PacedFormat,
}

const KEYS: &str = "every, bytes, jitter, seed, stall, cut, heartbeat or format";
const KEYS_OF_MESSAGES: &str = "every, bytes, jitter, seed, stall, cut or heartbeat";

impl PacedPlan {
    fn new(count: u64, every_ns: u64, bytes: usize, format: PacedFormat) -> Self {
        Self {
            count: (count > 0).then_some(count),
            every_ns,
            bytes,
            jitter_ns: 0,
            seed: 0,
            stall: None,
            cut: None,
            heartbeat_ns: None,
            format,
        }
    }

    /// What a gRPC call asks for.
    ///
    /// # Errors
    /// What is wrong, and what was expected.
    pub(super) fn of_call(request: PacedRequest) -> Result<Self, String> {
        let (most, bytes) = (message::BYTES_MAX, request.bytes);
        if u64::from(bytes) > most {
            return Err(wrong(
                "bytes",
                &bytes.to_string(),
                format!("at most {most}"),
            ));
        }
        let every_ns = request.every_us.saturating_mul(1_000);
        let format = PacedFormat::Call;
        Ok(Self::new(
            request.messages,
            every_ns,
            bytes as usize,
            format,
        ))
    }

    /// Reads the number of events, from the path behind `place`, and the query; `format` is what a
    /// query without one means.
    ///
    /// # Errors
    /// What is wrong, and what was expected.
    pub(super) fn parse(
        place: &str,
        count: &str,
        query: &str,
        format: PacedFormat,
    ) -> Result<Self, String> {
        let count = count.parse::<u64>().map_err(|_| {
            format!("{place}{count}: expected {place}N with a whole number, 0 for no end")
        })?;
        let has_formats = format != PacedFormat::Messages;
        let keys = match has_formats {
            true => KEYS,
            false => KEYS_OF_MESSAGES,
        };
        let mut plan = Self::new(count, 20_000_000, 100, format);
        each_value(query, keys, |key, value| {
            match key {
                "every" => plan.every_ns = time_ns(key, value)?,
                "bytes" => plan.bytes = number(key, value, message::BYTES_MAX)? as usize,
                "jitter" => plan.jitter_ns = time_ns(key, value)?,
                "seed" => plan.seed = number(key, value, u64::MAX)?,
                "stall" => plan.stall = Some(stall(key, value)?),
                "cut" => plan.cut = Some(number(key, value, u64::MAX)?),
                "heartbeat" => plan.heartbeat_ns = Some(positive_time_ns(key, value)?),
                "format" if has_formats => plan.format = self::format(key, value)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        match plan.heartbeat_ns {
            Some(_) if matches!(plan.format, PacedFormat::Lines | PacedFormat::Chunks) => {
                Err("heartbeat: expected format=sse with it; only that format has comments".into())
            }
            _ => Ok(plan),
        }
    }
}

fn stall(key: &str, value: &str) -> Result<(u64, u64), String> {
    let Some((time, event)) = value.split_once('@') else {
        return Err(wrong(key, value, "TIME@EVENT, such as 1s@30"));
    };
    Ok((time_ns(key, time)?, number(key, event, u64::MAX)?))
}

fn format(key: &str, value: &str) -> Result<PacedFormat, String> {
    match value {
        "sse" => Ok(PacedFormat::Sse),
        "lines" => Ok(PacedFormat::Lines),
        "chunks" => Ok(PacedFormat::Chunks),
        _ => Err(wrong(key, value, "sse, lines or chunks")),
    }
}

/// A stream of events. Times are ns of CLOCK_MONOTONIC.
#[derive(Debug)]
pub(crate) struct Paced {
    plan: PacedPlan,
    start_ns: u64,
    /// The number of the next event, and when it is due.
    next: u64,
    due_ns: u64,
    /// Nothing is sent until then.
    stalled_until_ns: u64,
    next_heartbeat_ns: u64,
    random: fastrand::Rng,
    /// A message, before its frame is written.
    content: Vec<u8>,
}

impl Paced {
    pub(super) fn new(plan: PacedPlan, arrived_ns: u64) -> Self {
        let mut events = Self {
            plan,
            start_ns: arrived_ns,
            next: 0,
            due_ns: arrived_ns,
            stalled_until_ns: 0,
            next_heartbeat_ns: u64::MAX,
            random: fastrand::Rng::with_seed(plan.seed),
            content: Vec::new(),
        };
        events.set_due();
        events.set_heartbeat(arrived_ns);
        events
    }

    /// Sets when the next event is due: not before the one before it, whatever the jitter.
    fn set_due(&mut self) {
        let jitter = match self.plan.jitter_ns {
            0 => 0,
            most => self.random.u64(0..=most),
        };
        let paced = self.next.saturating_mul(self.plan.every_ns);
        let due = self.start_ns.saturating_add(paced).saturating_add(jitter);
        self.due_ns = self.due_ns.max(due);
        if let Some((ns, _)) = self.plan.stall.filter(|(_, at)| *at == self.next) {
            self.stalled_until_ns = self.due_ns.saturating_add(ns);
        }
    }

    /// Sets the next heartbeat: the first that is due after `now_ns`.
    fn set_heartbeat(&mut self, now_ns: u64) {
        if let Some(every) = self.plan.heartbeat_ns {
            let passed = now_ns.saturating_sub(self.start_ns) / every;
            self.next_heartbeat_ns = self.start_ns + (passed + 1) * every;
        }
    }

    pub(super) fn step(&mut self, now_ns: u64, out: &mut Vec<u8>) -> Step {
        if self.plan.cut.is_some_and(|cut| self.next > cut) {
            return Step::Cut;
        }
        if self.plan.count == Some(self.next) {
            match self.plan.format {
                // Writing to a vector does not fail.
                PacedFormat::Sse => _ = write!(out, "event: end\ndata: {}\n\n", self.next),
                PacedFormat::Messages => close(out, CloseCode::NORMAL, ""),
                PacedFormat::Lines | PacedFormat::Chunks | PacedFormat::Call => {}
            }
            return Step::End;
        }
        let is_stalled = self.stalled_until_ns > self.due_ns;
        let send_ns = self.due_ns.max(self.stalled_until_ns);
        if now_ns >= send_ns {
            let due_ns = (!is_stalled).then_some(self.due_ns);
            self.write(out);
            self.next += 1;
            self.set_due();
            return Step::Message { due_ns };
        }
        // A stall begins when the event is due that waits for its end.
        if is_stalled && self.next_heartbeat_ns >= self.due_ns {
            self.set_heartbeat(self.stalled_until_ns);
        }
        if now_ns >= self.next_heartbeat_ns {
            match self.plan.format {
                PacedFormat::Messages => write_frame(out, whole(Opcode::Ping), b""),
                _ => out.extend_from_slice(b": heartbeat\n\n"),
            }
            self.set_heartbeat(now_ns);
            return Step::Remark;
        }
        Step::Until(send_ns.min(self.next_heartbeat_ns))
    }

    fn write(&mut self, out: &mut Vec<u8>) {
        let (number, due_ns, bytes) = (self.next, self.due_ns, self.plan.bytes);
        match self.plan.format {
            PacedFormat::Sse => {
                let _ = write!(out, "id: {number}\ndata: ");
                message::append(out, number, due_ns, bytes);
                out.extend_from_slice(b"\n\n");
            }
            PacedFormat::Lines => {
                message::append(out, number, due_ns, bytes);
                out.push(b'\n');
            }
            PacedFormat::Chunks => message::append(out, number, due_ns, bytes),
            PacedFormat::Messages => {
                self.content.clear();
                message::append(&mut self.content, number, due_ns, bytes);
                write_frame(out, whole(Opcode::Text), &self.content);
            }
            PacedFormat::Call => {
                self.content.clear();
                message::append(&mut self.content, number, due_ns, bytes);
                let (start, payload) = (out.len(), self.content.len() as u32);
                out.extend_from_slice(&grpc::prefix(0));
                let head = out.len();
                grpc::echo::begin_message(payload, out);
                let length = (out.len() - head) as u32 + payload;
                out[start..head].copy_from_slice(&grpc::prefix(length));
                out.extend_from_slice(&self.content);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(count: &str, query: &str) -> Paced {
        Paced::new(
            PacedPlan::parse("/events/", count, query, PacedFormat::Sse).unwrap(),
            1_000,
        )
    }

    /// All that is written, with the times at which it is, up to the end.
    fn run(paced: &mut Paced) -> (Vec<(u64, String)>, Step) {
        let (mut now_ns, mut written) = (1_000, Vec::new());
        loop {
            let mut out = Vec::new();
            let step = paced.step(now_ns, &mut out);
            if !out.is_empty() {
                written.push((now_ns, String::from_utf8(out).unwrap()));
            }
            match step {
                Step::Until(at) => now_ns = at,
                Step::Message { .. } | Step::Remark => {}
                Step::End | Step::Cut => return (written, step),
                Step::Idle => panic!("it has a pace"),
            }
        }
    }

    #[test]
    fn events_have_their_number_due_time_and_size() {
        let (written, end) = run(&mut events("3", "every=1us&bytes=20"));
        assert_eq!(end, Step::End);
        let expected = [
            (1_000, "id: 0\ndata: weigh 0 1000 abcdefg\n\n"),
            (2_000, "id: 1\ndata: weigh 1 2000 abcdefg\n\n"),
            (3_000, "id: 2\ndata: weigh 2 3000 abcdefg\n\n"),
            (4_000, "event: end\ndata: 3\n\n"),
        ];
        assert_eq!(written.len(), 4);
        for ((at, text), (due, expected)) in written.iter().zip(expected) {
            assert_eq!(text, expected);
            // The end follows the last event at once.
            assert_eq!(*at, due.min(3_000));
        }
        let (written, _) = run(&mut events("1", "format=lines&bytes=0"));
        assert_eq!(written[0].1, "weigh 0 1000 \n");
        let (written, _) = run(&mut events("1", "format=chunks&bytes=1000"));
        assert_eq!((written.len(), written[0].1.len()), (1, 1000));
    }

    #[test]
    fn a_stall_holds_events_back_and_keeps_their_due_times() {
        let (written, _) = run(&mut events(
            "6",
            "every=1us&stall=3us%402&format=lines&bytes=0",
        ));
        let times: Vec<u64> = written.iter().map(|(at, _)| *at).collect();
        assert_eq!(times, [1_000, 2_000, 6_000, 6_000, 6_000, 6_000]);
        assert_eq!(written[3].1, "weigh 3 4000 \n");
        let mut held = events("6", "every=1us&stall=3us@0");
        let step = held.step(5_000, &mut Vec::new());
        assert_eq!(step, Step::Message { due_ns: None });
    }

    #[test]
    fn jitter_is_seeded_and_keeps_the_order() {
        let query = "every=1us&jitter=5us&format=lines&bytes=0&seed=";
        let (one, _) = run(&mut events("50", &format!("{query}7")));
        let (same, _) = run(&mut events("50", &format!("{query}7")));
        let (other, _) = run(&mut events("50", &format!("{query}8")));
        assert_eq!(one, same);
        assert_ne!(one, other);
        assert!(one.is_sorted_by_key(|(at, _)| *at));
        assert!(one.iter().zip(1..).any(|((at, _), n)| *at != n * 1_000));
        for ((at, _), n) in one.iter().zip(1..) {
            assert!((n * 1_000..=n * 1_000 + 5_000).contains(at), "{n}: {at}");
        }
    }

    #[test]
    fn heartbeats_come_between_events_and_not_in_a_stall() {
        let query = "every=10us&heartbeat=4us&stall=20us@1";
        let (written, _) = run(&mut events("2", query));
        let beats = |text: &String| text.starts_with(": ");
        let times: Vec<u64> = written
            .iter()
            .filter(|(_, text)| beats(text))
            .map(|(at, _)| *at)
            .collect();
        assert_eq!(times, [5_000, 9_000]);
    }

    #[test]
    fn a_cut_comes_after_its_event() {
        let (written, end) = run(&mut events("0", "cut=2&every=0s&format=lines"));
        assert_eq!((written.len(), end), (3, Step::Cut));
    }

    #[test]
    fn mistakes_are_named() {
        for (count, query, expected) in [
            ("x", "", "expected /events/N"),
            ("-1", "", "expected /events/N"),
            ("5", "every", "expected KEY=VALUE"),
            ("5", "every=20", "every=20: expected a time"),
            ("5", "every=-1ms", "expected a time"),
            ("5", "bytes=2000000", "up to 1048576"),
            ("5", "pace=1ms", "pace: no such key; expected every"),
            ("5", "stall=1s", "expected TIME@EVENT"),
            ("5", "format=json", "expected sse, lines or chunks"),
            ("5", "heartbeat=1s&format=lines", "expected format=sse"),
            ("5", "heartbeat=0s", "a time above 0"),
        ] {
            let error = PacedPlan::parse("/events/", count, query, PacedFormat::Sse).unwrap_err();
            assert!(error.contains(expected), "{count}?{query}: {error}");
        }
    }
}
