//! What a subject's TLS sessions negotiated.

use crate::TlsSummary;
use readings::text::{counted, grouped};

use crate::summary::place::words::place;
use readings::text::compact::time;

/// In one sentence: what was negotiated, and how long handshakes took.
pub fn tls(summary: &TlsSummary) -> String {
    let mut text = format!("{}: {}", place(&summary.at), summary.negotiated.words());
    if summary.others > 0 {
        text.push_str(&format!(
            "; {} negotiated something else",
            counted(summary.others as usize, "session")
        ));
    }
    let kinds = [
        ("full handshakes", &summary.handshake_us),
        ("resumed handshakes", &summary.resumed_handshake_us),
    ];
    for (what, took) in kinds {
        if took.count > 0 {
            text.push_str(&format!(
                "; {} {what} took {} in the median",
                grouped(took.count),
                time(took.p50)
            ));
        }
    }
    text
}
