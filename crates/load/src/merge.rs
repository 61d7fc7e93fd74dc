//! Merges the threads' recordings into a reading.

use readings::{ClientReading, Fairness, LoadReading, StatusCount, ThreadReading};

use crate::record::{Recorder, RequestStats, StageStats};
use crate::rows::ReadingRows;

/// Share of its CPU above which a thread's own work affects what it measures.
const SATURATED: f64 = 0.8;

/// In a shorter time no CPU share is known: the work at the edges of the window takes as long.
const SHORTEST_S: f64 = 0.001;

/// The reading of all threads.
pub(crate) fn merge(
    parts: Vec<Recorder>,
    rows: ReadingRows,
    connections: u64,
    io: &str,
    cpus: &[u32],
) -> Option<LoadReading> {
    let threads: Vec<ThreadReading> = parts.iter().map(thread).collect();
    let mut parts = parts.into_iter();
    let mut sum = parts.next()?;
    for part in parts {
        sum.merge(part);
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
        client: ClientReading {
            cpu_s: sum.slices.iter().map(|s| s.client_cpu_s).sum(),
            saturated: threads.iter().any(|thread| thread.cpu > SATURATED),
            threads,
            io: io.to_string(),
            cpus: cpus.to_vec(),
        },
        fairness: Fairness::of(&sum.by_conn),
        stages: sum.stages.iter().map(StageStats::reading).collect(),
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
        wrong: sum.wrong,
    })
}

fn thread(part: &Recorder) -> ThreadReading {
    let time: f64 = part.slices.iter().map(|s| s.duration_s).sum();
    let cpu: f64 = part.slices.iter().map(|s| s.client_cpu_s).sum();
    ThreadReading {
        // A load by count may be over at once.
        cpu: match time >= SHORTEST_S {
            true => (cpu / time).min(1.0),
            false => 0.0,
        },
        requests: part.requests,
    }
}
