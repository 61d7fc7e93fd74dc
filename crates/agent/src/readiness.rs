//! Asks a server whether it is ready.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use load::Fetcher;
use net::fetch::{Answer, exchange};

use super::wire::{AnswerSummary, AwaitServer};

/// Asks once; the error says what was found instead of the expected answer. `None` as soon as `stop`
/// is set. An answer in another protocol than HTTP is all body, and has no summary.
pub(super) fn ask(
    order: &AwaitServer,
    limit: Duration,
    stop: &AtomicBool,
) -> Option<Result<Option<AnswerSummary>, String>> {
    Some(answer_to(order, limit, stop)?.and_then(|answer| {
        let summary = (!order.raw).then(|| summary(&answer));
        fits(order, &answer).map(|()| summary)
    }))
}

/// Whether the answer has a text in a header field or in its body, in any letter case; false if no
/// answer comes.
pub(super) fn answer_has(
    order: &AwaitServer,
    text: &str,
    limit: Duration,
    stop: &AtomicBool,
) -> bool {
    let Some(Ok(answer)) = answer_to(order, limit, stop) else {
        return false;
    };
    let wanted = text.to_ascii_lowercase();
    let has = |text: String| text.to_ascii_lowercase().contains(&wanted);
    let field = |(name, value): &(String, Vec<u8>)| {
        has(format!("{name}: {}", String::from_utf8_lossy(value)))
    };
    answer.fields.iter().any(field) || has(String::from_utf8_lossy(&answer.body).into_owned())
}

/// Asks once. `None` as soon as `stop` is set.
fn answer_to(
    order: &AwaitServer,
    limit: Duration,
    stop: &AtomicBool,
) -> Option<Result<Answer, String>> {
    // The bound on reference bodies.
    const BYTES_MAX: usize = 64 << 20;
    let (sender, receiver) = mpsc::channel();
    let address = order.address.into();
    let request = order.request.clone().into_bytes();
    let wanted = order.contains.clone().unwrap_or_default().into_bytes();
    let raw = order.raw;
    let fetcher = match raw {
        true => None,
        false => match Fetcher::new(order.http, order.tls.as_ref(), request.clone()) {
            Ok(fetcher) => Some(fetcher),
            Err(error) => return Some(Err(error.to_string())),
        },
    };
    let mut preamble = Vec::new();
    if order.proxy_protocol {
        // With addresses: Varnish refuses a header that says UNKNOWN.
        net::proxy_protocol::encode_v1(order.address, order.address, &mut preamble);
    }
    std::thread::spawn(move || {
        sender.send(match fetcher {
            Some(fetcher) => fetcher.fetch(&address, &preamble, limit, BYTES_MAX),
            None => exchange(&address, &request, &wanted, limit, BYTES_MAX).map(|body| Answer {
                status: 0,
                fields: Vec::new(),
                body,
            }),
        })
    });
    while !stop.load(Ordering::Relaxed) {
        match receiver.recv_timeout(Duration::from_millis(20)) {
            Ok(answer) => return Some(answer.map_err(|error| error.to_string())),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
    None
}

fn summary(answer: &Answer) -> AnswerSummary {
    let coding = answer.field("content-encoding").unwrap_or_default();
    AnswerSummary {
        status: answer.status,
        body_bytes: answer.body.len() as u64,
        body_hash: fnv_1a(&answer.body),
        coding: String::from_utf8_lossy(coding).trim().to_ascii_lowercase(),
    }
}

/// The 64-bit FNV-1a hash, which is the same on every machine.
fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn fits(order: &AwaitServer, answer: &Answer) -> Result<(), String> {
    let status_fits = match order.status {
        _ if order.raw => true,
        Some(status) => answer.status == status,
        None => answer.status < 500,
    };
    if !status_fits {
        let expected = order.status.map_or("below 500".into(), |s| s.to_string());
        return Err(format!("status {} (expected {expected})", answer.status));
    }
    let text = String::from_utf8_lossy(&answer.body);
    match &order.contains {
        Some(wanted) if !text.contains(wanted.as_str()) => Err(if order.raw {
            format!("an answer without `{wanted}`, which begins: {text:.120}")
        } else {
            format!(
                "status {} without `{wanted}` in the body, which begins: {text:.120}",
                answer.status
            )
        }),
        _ => Ok(()),
    }
}
