//! Merges what several hosts measured, each as a part of the same load, into one reading.

use crate::load::quic::add_congestion;
use crate::sums::add_count;
use crate::{
    ClientReading, Fairness, HostReading, LoadReading, Offered, StageReading, StatusCount,
    TlsReading, Wrong,
};

/// How many samples of wrong answers are kept.
const WRONG_MAX: usize = 8;

impl LoadReading {
    /// The reading of a load that several hosts made together: sums of counts, merged histograms
    /// and, in [`LoadReading::hosts`], what each host contributed. `None` without parts.
    ///
    /// Left out are batches, times without an answer, the pauses of the clients, and rows, which the
    /// caller merges while they come.
    pub fn merged(parts: Vec<(String, LoadReading)>) -> Option<LoadReading> {
        let hosts = parts
            .iter()
            .map(|(host, part)| part.as_host(host))
            .collect();
        let fairness = merged_fairness(&parts);
        let mut parts = parts.into_iter().map(|(_, part)| part);
        let mut sum = parts.next()?;
        for part in parts {
            sum.add(part);
        }
        sum.summarise_parts();
        Some(LoadReading {
            hosts,
            fairness,
            // A batch counts by the quantiles of its own part.
            batches: Vec::new(),
            rows: Vec::new(),
            rows_left_out: 0,
            silences: Vec::new(),
            pauses: None,
            ..sum
        })
    }

    /// What a host contributed that made this load, or this part of one.
    pub fn as_host(&self, host: &str) -> HostReading {
        HostReading {
            host: host.to_owned(),
            connections: self.connections,
            requests: self.requests,
            errors: self.errors.total(),
            response_us: self.response.quantiles(),
            schedule_lag_us: self.schedule_lag.quantiles(),
            saturated: self.client.saturated,
            start_late_us: 0.0,
            lost: None,
        }
    }

    /// The quantiles of stages and of single requests, once their histograms are merged.
    fn summarise_parts(&mut self) {
        for stage in &mut self.stages {
            stage.latency_us = stage.response.quantiles();
        }
        for request in &mut self.per_request {
            request.latency_us = request.response.quantiles();
        }
        self.keep_quantiles_only();
    }

    fn add(&mut self, part: LoadReading) {
        add_count(&mut self.connections, part.connections);
        add_count(&mut self.requests, part.requests);
        add_count(&mut self.bytes_read, part.bytes_read);
        self.errors.add(&part.errors);
        self.errors_all.add(&part.errors_all);
        add_count(&mut self.requests_all, part.requests_all);
        add_count(&mut self.connects, part.connects);
        add_count(&mut self.resent, part.resent);
        self.used_up = self.used_up.take().or(part.used_up);
        add_count(&mut self.connections_open_min, part.connections_open_min);
        add_statuses(&mut self.statuses, &part.statuses);
        self.response.merge(&part.response);
        self.service.merge(&part.service);
        self.connect.merge(&part.connect);
        self.first_byte.merge(&part.first_byte);
        self.transfer.merge(&part.transfer);
        self.schedule_lag.merge(&part.schedule_lag);
        self.receive_lag.merge(&part.receive_lag);
        add_client(&mut self.client, part.client);
        for (slice, other) in self.slices.iter_mut().zip(&part.slices) {
            add_count(&mut slice.requests, other.requests);
            add_count(&mut slice.errors, other.errors);
            slice.client_cpu_s += other.client_cpu_s;
            slice.client_waited_s += other.client_waited_s;
            slice.edges += other.edges;
            slice.add_answered(other);
            slice.duration_s = slice.duration_s.max(other.duration_s);
        }
        self.duration_s = self.slices.iter().map(|slice| slice.duration_s).sum();
        add_wrong(&mut self.wrong, part.wrong);
        add_offered(&mut self.offered, part.offered);
        for (stage, other) in self.stages.iter_mut().zip(part.stages) {
            stage.add(other);
        }
        for (request, other) in self.per_request.iter_mut().zip(part.per_request) {
            add_count(&mut request.requests, other.requests);
            add_count(&mut request.errors, other.errors);
            request.response.merge(&other.response);
        }
        self.peaks.merge(&part.peaks);
        match (&mut self.tls, part.tls) {
            (Some(tls), Some(other)) => tls.add(other),
            (none, other) => *none = none.take().or(other),
        }
        add_congestion(&mut self.tcp_congestion, part.tcp_congestion.as_deref());
        match (&mut self.quic, part.quic) {
            (Some(quic), Some(other)) => quic.add(&other),
            (none, other) => *none = none.take().or(other),
        }
        match (&mut self.idle, part.idle) {
            (Some(idle), Some(other)) => idle.add(&other),
            (none, other) => *none = none.take().or(other),
        }
        match (&mut self.users, part.users) {
            (Some(users), Some(other)) => users.add(&other),
            (none, other) => *none = none.take().or(other),
        }
        match (&mut self.ages, part.ages) {
            (Some(ages), Some(other)) => ages.add(&other),
            (none, other) => *none = none.take().or(other),
        }
        match (&mut self.lasting, part.lasting) {
            (Some(lasting), Some(other)) => lasting.add(&other),
            (none, other) => *none = none.take().or(other),
        }
    }
}

impl StageReading {
    /// Adds what another host counted in the same stage.
    fn add(&mut self, part: StageReading) {
        add_count(&mut self.due, part.due);
        add_count(&mut self.requests, part.requests);
        add_count(&mut self.errors, part.errors);
        self.response.merge(&part.response);
        add_offered(&mut self.offered, part.offered);
    }
}

impl TlsReading {
    /// Adds the sessions of another thread or host.
    pub fn add(&mut self, part: TlsReading) {
        self.handshake.merge(&part.handshake);
        self.resumed_handshake.merge(&part.resumed_handshake);
        add_count(&mut self.handshakes, part.handshakes);
        add_count(&mut self.resumed, part.resumed);
        add_count(&mut self.wire_bytes_read, part.wire_bytes_read);
        add_count(&mut self.wire_bytes_sent, part.wire_bytes_sent);
        for own in part.negotiated {
            match self.negotiated.iter_mut().find(|one| one.is_like(&own)) {
                Some(known) => add_count(&mut known.sessions, own.sessions),
                None => self.negotiated.push(own),
            }
        }
        self.negotiated
            .sort_by_key(|one| std::cmp::Reverse(one.sessions));
    }
}

fn add_statuses(sum: &mut Vec<StatusCount>, part: &[StatusCount]) {
    for one in part {
        match sum.iter_mut().find(|known| known.status == one.status) {
            Some(known) => add_count(&mut known.count, one.count),
            None => sum.push(*one),
        }
    }
    sum.sort_by_key(|one| one.status);
}

fn add_client(sum: &mut ClientReading, part: ClientReading) {
    sum.cpu_s += part.cpu_s;
    sum.waited_s += part.waited_s;
    sum.saturated |= part.saturated;
    sum.threads.extend(part.threads);
    if !sum.io.split(", ").any(|known| known == part.io) {
        sum.io = format!("{}, {}", sum.io, part.io);
    }
    sum.cpus.extend(part.cpus);
}

fn add_wrong(sum: &mut Vec<Wrong>, part: Vec<Wrong>) {
    for one in part {
        if sum.len() < WRONG_MAX && !sum.contains(&one) {
            sum.push(one);
        }
    }
}

fn add_offered(sum: &mut Option<Offered>, part: Option<Offered>) {
    match (sum.as_mut(), part) {
        (Some(sum), Some(part)) => sum.add(&part),
        (None, Some(part)) => *sum = Some(part),
        (_, None) => {}
    }
}

/// Fairness from the moments of each part, as the figures of single connections are not known.
fn merged_fairness(parts: &[(String, LoadReading)]) -> Option<Fairness> {
    let (mut count, mut total, mut squares) = (0.0, 0.0, 0.0);
    let (mut min, mut max) = (u64::MAX, 0);
    for (_, part) in parts {
        let own = part.connections as f64 * f64::from(part.streams.unwrap_or(1));
        let fairness = part.fairness?;
        count += own;
        total += own * fairness.mean;
        squares += own * (fairness.stdev.powi(2) + fairness.mean.powi(2));
        min = min.min(fairness.min);
        max = max.max(fairness.max);
    }
    let mean = total / count;
    (total > 0.0).then(|| Fairness {
        min,
        mean,
        max,
        stdev: (squares / count - mean * mean).max(0.0).sqrt(),
        jain: total.powi(2) / (count * squares),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Histogram, Pacing, Peaks, RequestReading, Slice};

    fn part(answers: &[u64], ns: u64) -> LoadReading {
        let mut response = Histogram::new();
        let requests = answers.iter().sum();
        response.record_many_ns(ns, requests);
        LoadReading {
            connections: answers.len() as u64,
            requests,
            response,
            fairness: Fairness::of(answers),
            slices: vec![Slice {
                duration_s: 2.0,
                requests,
                ..Slice::default()
            }],
            statuses: vec![StatusCount {
                status: 200,
                count: requests,
            }],
            offered: Some(Offered {
                due: requests,
                answered_within: requests,
                backlog: [1; 5],
            }),
            peaks: Peaks::new(0.01, [ns as f64 / 1e3; 4]),
            ..LoadReading::empty(Pacing::Open { rate_per_s: 100.0 })
        }
    }

    #[test]
    fn counts_are_summed_and_histograms_merged_and_each_host_keeps_its_own() {
        let parts = vec![
            ("a".to_owned(), part(&[40, 50], 1_000_000)),
            ("b".to_owned(), part(&[110], 9_000_000)),
        ];
        let merged = LoadReading::merged(parts).unwrap();
        assert_eq!((merged.connections, merged.requests), (3, 200));
        assert_eq!(merged.requests_per_s(), 100.0);
        assert_eq!(merged.response.count(), 200);
        assert!((merged.response.quantiles().p50 / 9_000.0 - 1.0).abs() < 0.01);
        let statuses: Vec<u64> = merged.statuses.iter().map(|one| one.count).collect();
        assert_eq!(statuses, [200]);
        assert_eq!(merged.offered.unwrap().due, 200);
        assert_eq!(merged.offered.unwrap().backlog, [2; 5]);
        assert_eq!(merged.peaks.exceedances(5_000.0), 4);
        let whole = Fairness::of(&[40, 50, 110]).unwrap();
        let fairness = merged.fairness.unwrap();
        assert_eq!((fairness.min, fairness.max), (whole.min, whole.max));
        assert!((fairness.jain - whole.jain).abs() < 1e-12);
        assert!((fairness.stdev - whole.stdev).abs() < 1e-9);
        let hosts = merged
            .hosts
            .iter()
            .map(|one| (one.host.as_str(), one.requests));
        let hosts: Vec<_> = hosts.collect();
        assert_eq!(hosts, [("a", 90), ("b", 110)]);
    }

    #[test]
    fn sums_of_counts_do_not_wrap_around() {
        let mut much = part(&[1], 1_000_000);
        (much.requests, much.slices[0].requests) = (u64::MAX, u64::MAX);
        much.statuses[0].count = u64::MAX;
        much.offered = Some(Offered {
            due: u64::MAX,
            answered_within: u64::MAX,
            backlog: [u64::MAX; 5],
        });
        let parts = vec![("a".to_owned(), much.clone()), ("b".to_owned(), much)];
        let merged = LoadReading::merged(parts).unwrap();
        assert_eq!(merged.requests, u64::MAX);
        assert_eq!(merged.statuses[0].count, u64::MAX);
        assert_eq!(merged.offered.unwrap().due, u64::MAX);
    }

    #[test]
    fn stages_and_requests_are_merged_by_their_histograms() {
        let of_host = |requests: u64, ns: u64| {
            let part = part(&[requests], ns);
            let offered = part.offered;
            let stage = StageReading {
                duration_s: 2.0,
                from_per_s: 0.0,
                to_per_s: 100.0,
                due: requests,
                requests,
                errors: 1,
                latency_us: part.response.quantiles(),
                offered,
                response: part.response.clone(),
            };
            let request = RequestReading {
                name: "GET /".to_owned(),
                requests,
                errors: 2,
                latency_us: part.response.quantiles(),
                response: part.response.clone(),
            };
            LoadReading {
                stages: vec![stage],
                per_request: vec![request],
                ..part
            }
        };
        let parts = vec![
            ("a".to_owned(), of_host(60, 1_000_000)),
            ("b".to_owned(), of_host(40, 9_000_000)),
        ];
        let merged = LoadReading::merged(parts).unwrap();
        let (stage, request) = (&merged.stages[0], &merged.per_request[0]);
        assert_eq!((stage.due, stage.requests, stage.errors), (100, 100, 2));
        assert_eq!((stage.from_per_s, stage.to_per_s), (0.0, 100.0));
        assert_eq!(stage.offered.unwrap().due, 100);
        assert_eq!((request.requests, request.errors), (100, 4));
        for quantiles in [stage.latency_us, request.latency_us] {
            assert_eq!(quantiles.count, 100);
            assert!(
                (quantiles.p50 / 1_000.0 - 1.0).abs() < 0.01,
                "{quantiles:?}"
            );
            assert!(
                (quantiles.p75 / 9_000.0 - 1.0).abs() < 0.01,
                "{quantiles:?}"
            );
        }
        // The histograms have done their work.
        let json = serde_json::to_value(&merged).unwrap();
        assert!(json["stages"][0].get("response").is_none());
        assert_eq!(serde_json::from_value::<LoadReading>(json).unwrap(), merged);
    }

    #[test]
    fn peaks_of_different_lengths_meet_in_the_longer_buckets() {
        let mut fine = Peaks::new(0.01, [100.0, 0.0, 0.0, 900.0, 0.0]);
        fine.merge(&Peaks::new(0.02, [0.0, 0.0, 5_000.0]));
        assert_eq!(fine, Peaks::new(0.02, [100.0, 900.0, 5_000.0]));
    }
}
