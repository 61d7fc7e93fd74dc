//! What a thread notes down, and how threads' notes become readings.

use readings::{
    ClientReading, ErrorCounts, Histogram, LoadReading, Pacing, Slice, StatusCount, ThreadReading,
    Wrong,
};

/// Wrong answers kept for messages.
const WRONG_MAX: usize = 5;
/// Share of its core above which a thread's own work colours what it measures.
pub(crate) const SATURATED: f64 = 0.8;

/// One thread's notes for one reading. All its memory is allocated at the start.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) pacing: Pacing,
    pub(crate) lane: usize,
    pub(crate) errors_all: ErrorCounts,
    pub(crate) requests_all: u64,
    pub(crate) requests: u64,
    pub(crate) errors: ErrorCounts,
    pub(crate) bytes_read: u64,
    pub(crate) connects: u64,
    pub(crate) statuses: Vec<u64>,
    pub(crate) response: Histogram,
    pub(crate) service: Histogram,
    pub(crate) connect: Histogram,
    pub(crate) first_byte: Histogram,
    pub(crate) transfer: Histogram,
    pub(crate) schedule_lag: Histogram,
    /// One per stint, in order.
    pub(crate) slices: Vec<Slice>,
    /// Open connections at the end of each stint's window.
    pub(crate) open: Vec<u64>,
    pub(crate) wrong: Vec<Wrong>,
}

impl Recorder {
    pub(crate) fn new(pacing: Pacing, lane: usize) -> Self {
        Self {
            pacing,
            lane,
            errors_all: ErrorCounts::default(),
            requests_all: 0,
            requests: 0,
            errors: ErrorCounts::default(),
            bytes_read: 0,
            connects: 0,
            statuses: vec![0; 1000],
            response: Histogram::new(),
            service: Histogram::new(),
            connect: Histogram::new(),
            first_byte: Histogram::new(),
            transfer: Histogram::new(),
            schedule_lag: Histogram::new(),
            slices: Vec::new(),
            open: Vec::new(),
            wrong: Vec::new(),
        }
    }

    pub(crate) fn keep_wrong(&mut self, wrong: Wrong) {
        if self.wrong.len() < WRONG_MAX {
            self.wrong.push(wrong);
        }
    }
}

/// Puts the notes of all threads on one reading together.
pub(crate) fn merge(
    parts: Vec<Recorder>,
    connections: u64,
    io: &str,
    cpus: &[u32],
) -> Option<LoadReading> {
    let mut parts = parts.into_iter();
    let mut sum = parts.next()?;
    let thread = |part: &Recorder| {
        let time: f64 = part.slices.iter().map(|s| s.duration_s).sum();
        let cpu: f64 = part.slices.iter().map(|s| s.client_cpu_s).sum();
        ThreadReading {
            cpu: if time > 0.0 { cpu / time } else { 0.0 },
            requests: part.requests,
        }
    };
    let mut threads = vec![thread(&sum)];
    for part in parts {
        threads.push(thread(&part));
        sum.errors_all.add(&part.errors_all);
        sum.errors.add(&part.errors);
        sum.requests_all += part.requests_all;
        sum.requests += part.requests;
        sum.bytes_read += part.bytes_read;
        sum.connects += part.connects;
        for (a, b) in sum.statuses.iter_mut().zip(&part.statuses) {
            *a += b;
        }
        sum.response.merge(&part.response);
        sum.service.merge(&part.service);
        sum.connect.merge(&part.connect);
        sum.first_byte.merge(&part.first_byte);
        sum.transfer.merge(&part.transfer);
        sum.schedule_lag.merge(&part.schedule_lag);
        for (a, b) in sum.slices.iter_mut().zip(&part.slices) {
            a.requests += b.requests;
            a.errors += b.errors;
            a.client_cpu_s += b.client_cpu_s;
            a.duration_s = a.duration_s.max(b.duration_s);
        }
        for (a, b) in sum.open.iter_mut().zip(&part.open) {
            *a += b;
        }
        for wrong in part.wrong {
            sum.keep_wrong(wrong);
        }
    }
    Some(LoadReading {
        pacing: sum.pacing,
        connections,
        requests: sum.requests,
        duration_s: sum.slices.iter().map(|s| s.duration_s).sum(),
        bytes_read: sum.bytes_read,
        errors: sum.errors,
        errors_all: sum.errors_all,
        requests_all: sum.requests_all,
        connects: sum.connects,
        connections_open_min: sum.open.iter().copied().min().unwrap_or(0),
        statuses: sum
            .statuses
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(status, &count)| StatusCount {
                status: status as u16,
                count,
            })
            .collect(),
        response: sum.response,
        service: sum.service,
        connect: sum.connect,
        first_byte: sum.first_byte,
        transfer: sum.transfer,
        schedule_lag: sum.schedule_lag,
        client: ClientReading {
            cpu_s: sum.slices.iter().map(|s| s.client_cpu_s).sum(),
            saturated: threads.iter().any(|thread| thread.cpu > SATURATED),
            threads,
            io: io.to_string(),
            cpus: cpus.to_vec(),
        },
        slices: sum.slices,
        wrong: sum.wrong,
    })
}
