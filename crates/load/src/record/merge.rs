//! Merges the threads' recordings into a reading.

use std::collections::BTreeMap;

use readings::{
    ClientReading, Fairness, LoadReading, Peaks, StageReading, StatusCount, ThreadReading,
};

use crate::record::open_loop::OpenRecorder;
use crate::record::rows::ReadingRows;
use crate::record::{Recorder, RequestStats, StageStats};

/// Share of its CPU above which a thread's own work affects what it measures. What it wants counts:
/// time on the CPU and in the run queue.
const SATURATED: f64 = 0.8;

/// In a shorter time no CPU share is known: the work at the edges of the window takes as long.
const SHORTEST_S: f64 = 0.001;

/// The reading of all threads.
pub(crate) fn merge(
    parts: Vec<Recorder>,
    rows: ReadingRows,
    connections: u64,
    streams: Option<u32>,
    io: &str,
    cpus: &[u32],
) -> Option<LoadReading> {
    let threads: Vec<ThreadReading> = parts.iter().map(thread).collect();
    let saturated = parts.iter().any(is_saturated);
    let mut parts = parts.into_iter();
    let mut sum = parts.next()?;
    for part in parts {
        sum.merge(part);
    }
    let open_loop = sum.open_loop.as_deref();
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
        resent: sum.resent,
        used_up: sum.used_up.take(),
        streams,
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
        client: ClientReading {
            cpu_s: sum.slices.iter().map(|s| s.client_cpu_s).sum(),
            waited_s: sum.slices.iter().map(|s| s.client_waited_s).sum(),
            saturated,
            threads,
            io: io.to_string(),
            cpus: cpus.to_vec(),
        },
        fairness: Fairness::of(&sum.by_conn),
        stages: stages(&sum),
        per_request: sum.per_request.iter().map(RequestStats::reading).collect(),
        rows: rows.rows,
        rows_left_out: rows.left_out,
        silences: sum.gaps.silences(),
        response: sum.response,
        service: sum.service,
        connect: sum.connect,
        first_byte: sum.first_byte,
        transfer: sum.transfer,
        schedule_lag: sum.schedule_lag,
        receive_lag: sum.receive_lag,
        slices: sum.slices,
        batches: open_loop.map_or_else(Vec::new, |open| open.batches.reading()),
        wrong: sum.wrong,
        offered: open_loop.map(OpenRecorder::offered),
        peaks: open_loop.map_or_else(Peaks::default, |open| open.peaks.reading()),
        pauses: open_loop.and_then(|open| open.pauses.reading()),
        hosts: Vec::new(),
        tls: sum.tls.map(|tls| *tls),
        // The caller knows it.
        tcp_congestion: None,
        quic: sum.quic.map(|quic| *quic),
        accept_queues: Vec::new(),
        received: BTreeMap::new(),
        arrivals: BTreeMap::new(),
        rate_limit_per_s: None,
        request_body: None,
        lasting: match (sum.connections, sum.messages) {
            (Some(connections), _) => Some(Box::new(connections.reading)),
            (None, messages) => messages.map(|messages| Box::new(messages.reading())),
        },
        users: sum.users,
        ages: sum.ages,
        idle: None,
    })
}

fn stages(sum: &Recorder) -> Vec<StageReading> {
    let offered = sum.open_loop.iter().flat_map(|open| &open.offered);
    let mut readings: Vec<StageReading> = sum.stages.iter().map(StageStats::reading).collect();
    for (reading, offered) in readings.iter_mut().zip(offered) {
        reading.offered = Some(*offered);
    }
    readings
}

/// CPU time and waiting time of a thread over its measured time.
fn shares(part: &Recorder) -> (f64, f64) {
    let time: f64 = part.slices.iter().map(|s| s.duration_s).sum();
    // A load by count may be over at once.
    if time < SHORTEST_S {
        return (0.0, 0.0);
    }
    let cpu: f64 = part.slices.iter().map(|s| s.client_cpu_s).sum();
    let waited: f64 = part.slices.iter().map(|s| s.client_waited_s).sum();
    ((cpu / time).min(1.0), (waited / time).min(1.0))
}

/// A thread that polls waits for a CPU also when it has no work: there the schedule lag tells.
fn is_saturated(part: &Recorder) -> bool {
    let (cpu, waited) = shares(part);
    match part.polls {
        true => cpu > SATURATED,
        false => cpu + waited > SATURATED,
    }
}

fn thread(part: &Recorder) -> ThreadReading {
    let (cpu, waited) = shares(part);
    ThreadReading {
        cpu,
        waited,
        requests: part.requests,
    }
}
