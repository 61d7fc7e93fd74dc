//! How the requests of a target are divided over its connections, and these over the threads.

/// One thread's share of a target's requests. Request `k` belongs to connection
/// `k mod connections`, and connection `c` to thread `c mod threads`, so a thread has the same
/// fraction of the requests as of the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadShare {
    pub(crate) thread: u64,
    pub(crate) threads: u64,
    pub(crate) connections: u64,
}

impl ThreadShare {
    /// The thread's connections.
    pub(crate) fn own_connections(self) -> u64 {
        let extra = u64::from(self.thread < self.connections % self.threads);
        self.connections / self.threads + extra
    }

    /// How many of the first requests are the thread's.
    pub(crate) fn count(self, requests: u64) -> u64 {
        let rest = requests % self.connections;
        let of_rest = rest / self.threads + u64::from(self.thread < rest % self.threads);
        requests / self.connections * self.own_connections() + of_rest
    }

    /// The position, among the requests of all threads, of the thread's request with this number;
    /// `None` for a thread without connections.
    pub(crate) fn position(self, number: u64) -> Option<u64> {
        let rounds = number.checked_div(self.own_connections())?;
        let at = number % self.own_connections();
        Some(rounds * self.connections + self.thread + at * self.threads)
    }

    /// The thread's fraction of all requests, 0 to 1.
    pub(crate) fn fraction(self) -> f64 {
        self.own_connections() as f64 / self.connections as f64
    }
}

/// The numbers of a thread's requests, or of its users, from 0 over all threads and hosts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Numbers {
    /// As due requests are divided, so that no thread is ahead of the others.
    Shared(ThreadShare),
    /// Of so many threads each has every so many-th entry of a log.
    OfLog { turn: u64, threads: u64 },
}

impl Numbers {
    /// The number of the thread's so-many-th, from 0.
    #[inline]
    pub(crate) fn at(self, count: u64) -> u64 {
        match self {
            // A thread without connections sends nothing.
            Self::Shared(share) => share.position(count).unwrap_or(count),
            Self::OfLog { turn, threads } => turn + count * threads,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threads_share_of_requests_is_its_share_of_connections() {
        for (connections, threads) in [(3, 2), (4, 2), (1, 3), (401, 12), (7, 7), (2, 4)] {
            let mut owners = [None; 1000];
            for thread in 0..threads {
                let share = ThreadShare {
                    thread,
                    threads,
                    connections,
                };
                let positions = (0..1000).map_while(|number| share.position(number));
                for position in positions.take_while(|position| *position < 1000) {
                    assert_eq!(owners[position as usize], None, "{share:?}");
                    owners[position as usize] = Some(thread);
                }
                for requests in [0, 1, 2, 500, 999] {
                    let of_first = owners[..requests].iter().filter(|o| **o == Some(thread));
                    assert_eq!(of_first.count() as u64, share.count(requests as u64));
                }
                let all = owners.iter().filter(|o| **o == Some(thread)).count() as f64;
                assert!(
                    (all / 1000.0 - share.fraction()).abs() < 0.05,
                    "{share:?} {all}"
                );
            }
            assert!(owners.iter().all(Option::is_some));
        }
    }
}
