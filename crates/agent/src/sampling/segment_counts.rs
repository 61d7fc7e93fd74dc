//! What servers count themselves, read between the segments of a load: no request of the load is in
//! flight then, so that each segment has exactly its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use load::Segment;
use readings::{Arrivals, Received};

use crate::protocol::wire::{OtherServer, Spans};
use crate::sampling::server::counts_file::CountsFile;
use crate::sampling::server::watched::WatchedServers;

pub(crate) struct SegmentCounts {
    servers: Vec<(String, Arc<CountsFile>)>,
    /// Before the first segment, and after each: what each server had counted.
    seen: Mutex<Vec<Vec<Option<Received>>>>,
}

impl SegmentCounts {
    /// Of those servers that count, and of others that are not watched.
    pub(crate) fn of(servers: &WatchedServers, others: &[OtherServer]) -> Self {
        let servers = servers.iter();
        let counting = servers.filter_map(|(name, one)| Some((name.clone(), one.counts()?)));
        let others = others.iter().filter_map(|one| {
            let file = CountsFile::open(one.counts.as_deref()?)?;
            Some((one.server.clone(), Arc::new(file)))
        });
        Self {
            servers: counting.chain(others).collect(),
            seen: Mutex::default(),
        }
    }

    /// Reads them between two segments: some microseconds for each server.
    pub(crate) fn read(&self) {
        if !self.servers.is_empty() {
            let now = self.servers.iter().map(|(_, file)| file.read()).collect();
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.push(now);
        }
    }

    /// What each server received in the segments of each reading. Of a load that was stopped, in
    /// those that began.
    pub(crate) fn in_readings(
        &self,
        segments: &[Segment],
        readings: usize,
    ) -> Vec<BTreeMap<String, Received>> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = vec![BTreeMap::<String, Received>::new(); readings];
        for (segment, edges) in segments.iter().zip(seen.windows(2)) {
            let Some(sums) = segment.reading.and_then(|number| all.get_mut(number)) else {
                continue;
            };
            for (at, (name, _)) in self.servers.iter().enumerate() {
                if let (Some(before), Some(after)) = (edges[0][at], edges[1][at]) {
                    let sum = sums.entry(name.clone()).or_default();
                    sum.add(&after.since(&before));
                }
            }
        }
        all
    }

    /// When each server received the requests of a reading that was one measured window.
    pub(crate) fn arrivals_in(&self, spans: &Spans) -> BTreeMap<String, Arrivals> {
        let [window] = spans.windows.as_slice() else {
            return BTreeMap::new();
        };
        let servers = self.servers.iter();
        let found = servers.filter_map(|(name, file)| {
            let arrivals = file.arrivals(window.from_ns, window.to_ns)?;
            Some((name.clone(), arrivals))
        });
        found.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::fixtures::TemporaryFolder;
    use crate::sampling::server::watched::Watched;
    use load::Stop;
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    #[test]
    fn each_reading_has_what_came_in_its_segments() {
        let place = TemporaryFolder::new();
        let path = place.0.join("counts");
        let page = net::os::SharedCounts::open(Some(&path), Received::CELLS).unwrap();
        let watched = Watched::processes(Vec::new()).with_counts(Some(&path));
        let silent = Watched::processes(Vec::new()).with_counts(None);
        let servers = [("origin".to_owned(), watched), ("proxy".to_owned(), silent)];
        let lost = OtherServer {
            server: "lost".to_owned(),
            pid: i32::MAX,
            also: Vec::new(),
            group: None,
            counts: Some(path),
        };
        let counts = SegmentCounts::of(&servers.into(), &[lost]);
        let closed = || Segment::closed(Stop::After(Duration::from_secs(1)));
        let of = |reading| Segment {
            reading,
            ..closed()
        };
        let segments = [of(None), of(Some(0)), of(Some(1)), of(Some(0)), of(Some(1))];
        // The load was stopped in the last but one.
        for requests in [7, 20, 120, 1_120, 1_125] {
            page.all()[Received::REQUESTS].store(requests, Ordering::Relaxed);
            counts.read();
        }
        let found = counts.in_readings(&segments, 2);
        assert_eq!(found[0]["origin"].requests, 100 + 5);
        assert_eq!(found[1]["origin"].requests, 1_000);
        assert_eq!(found[0]["lost"], found[0]["origin"]);
        assert!(!found[0].contains_key("proxy"));
    }
}
