//! Picks the next request.

mod numbered;

use std::net::SocketAddr;
use std::sync::Arc;

use net::{Io, PayloadId, TargetId};

use crate::http::h2::EncodedRequest;
use crate::http::h3;
use crate::job::Job;
use crate::job::target::{Choice, Target};
use crate::job::traffic::{Grpc, Traffic};
pub(super) use numbered::Numbered;

/// A target as the event loop knows it, and the choice between its requests.
pub(super) struct RequestPicker {
    pub(super) id: TargetId,
    /// The requests; of one that is filled in, its long body.
    pub(super) payloads: Vec<PayloadId>,
    /// With HTTP/2: the requests as header blocks.
    pub(super) encoded: Vec<EncodedRequest>,
    /// With HTTP/3: the requests as frames.
    pub(super) frames: Vec<h3::EncodedRequest>,
    /// Where requests follow from their number.
    pub(super) numbered: Option<Box<Numbered>>,
    /// Requests after which a connection is closed.
    pub(super) requests_per_connection: Option<u64>,
    /// Cumulative weights; empty for one request, or for requests in order.
    sums: Vec<u64>,
    next: usize,
    random: fastrand::Rng,
}

impl RequestPicker {
    pub(super) fn new<I: Io>(number: usize, job: &Job, thread: usize, io: &mut I) -> Self {
        let target = &job.targets[number];
        let sums = match target.choice {
            Choice::Weighted if target.requests.len() > 1 => cumulative_weights(target),
            Choice::InOrder | Choice::Weighted => Vec::new(),
        };
        let numbered = Numbered::new(number, job, thread, &sums);
        let shared = |request| numbered.as_ref()?.shared(request);
        let payloads = target.requests.iter().enumerate().map(|(number, request)| {
            let own = || Arc::from(request.bytes.as_slice());
            io.add_payload(shared(number).unwrap_or_else(own))
        });
        let payloads = payloads.collect();
        let id = io.add_tls_target(
            &target.address,
            &sources(job, thread),
            target.tls.as_ref().map(|_| number as u32),
        );
        // A short send that follows another would wait for the acknowledgement of that one. Sends
        // follow each other with streams, and where a long body is sent behind its head.
        let is_behind_head = |request| shared(request).is_some();
        let has_several = (0..target.requests.len()).any(is_behind_head);
        if (target.places().is_some() || has_several) && target.http3.is_none() {
            io.set_no_delay(id);
        }
        Self {
            id,
            payloads,
            encoded: encoded(target),
            frames: match target.http3 {
                None => Vec::new(),
                // `Job::validate` has refused what is no request.
                Some(_) => (target.requests.iter())
                    .filter_map(|request| h3::EncodedRequest::of(&request.bytes))
                    .collect(),
            },
            numbered,
            requests_per_connection: target
                .requests_per_connection
                .or(job.requests_per_connection),
            sums,
            // Each thread goes through all requests in order, from its own number on.
            next: job.number_of(thread) % target.requests.len(),
            random: fastrand::Rng::with_seed(
                job.seed ^ ((job.number_of(thread) as u64) << 40) ^ 0x5eed,
            ),
        }
    }

    /// Whether a request of HTTP/2 or HTTP/3 is HEAD.
    pub(super) fn is_head(&self, number: usize) -> bool {
        let http2 = self.encoded.get(number).map(|one| one.is_head);
        let http3 = self.frames.get(number).map(|one| one.is_head);
        http2.or(http3).unwrap_or(false)
    }

    /// Whether a further request may be sent, which is then drawn by [`Self::next`], by
    /// [`Numbered::next`], or by [`Self::skip`].
    #[inline]
    pub(super) fn claim(&mut self) -> bool {
        match &mut self.numbered {
            None => true,
            Some(numbered) => numbered.claim(),
        }
    }

    /// Whether [`Self::claim`] would succeed.
    pub(super) fn has_rows(&self) -> bool {
        self.numbered.as_ref().is_none_or(|one| one.has_rows())
    }

    /// The number of the next request, which is not sent.
    pub(super) fn skip(&mut self) -> usize {
        match &mut self.numbered {
            None => self.next(),
            Some(numbered) => numbered.skip(),
        }
    }

    /// The number of the next of fixed requests.
    #[inline]
    pub(super) fn next(&mut self) -> usize {
        if let Some(&total) = self.sums.last() {
            let at = self.random.u64(..total);
            return self.sums.partition_point(|&sum| sum <= at);
        }
        let next = self.next;
        self.next = (next + 1) % self.payloads.len();
        next
    }
}

/// The requests as header blocks; none with HTTP/1.1. [`Job::validate`] has seen that all can be
/// encoded.
fn encoded(target: &Target) -> Vec<EncodedRequest> {
    let requests = target.requests.iter().filter(|_| target.http2.is_some());
    requests
        .filter_map(|request| {
            let mut encoded = EncodedRequest::of(&target.wire(request), target.scheme())?;
            if let Traffic::Grpc(grpc) = &target.traffic {
                let later = (grpc.sent() - grpc.sent_first()) as usize;
                encoded.held_back = later * Grpc::message_bytes(request);
            }
            Some(encoded)
        })
        .collect()
}

/// The source addresses of a thread's connections, so that over all threads each has its turn.
pub(super) fn sources(job: &Job, thread: usize) -> Vec<SocketAddr> {
    let count = job.sources.len();
    let in_turn = (0..count).map(|turn| job.sources[(thread + turn * job.threads) % count]);
    in_turn.collect()
}

fn cumulative_weights(target: &Target) -> Vec<u64> {
    let mut sum = 0;
    target
        .requests
        .iter()
        .map(|request| {
            sum += u64::from(request.weight);
            sum
        })
        .collect()
}
