//! Sentences on connections around events.

use readings::text::compact::bytes;
use readings::text::{condition, counted, grouped, listed, rate, time};

use super::Survival;

/// ``nginx`, reload of proxy: 100 cuts of 200 connections (close 1001: 98, reset: 2); open again after
/// 12.0 ms (p99 90.0 ms), at most 150 connections/s; 3 of 2,000 messages failed; at most 20MB in 5
/// processes`.
pub fn survival(one: &Survival) -> String {
    let mut text = format!("`{}`", one.subject);
    if !one.condition.is_empty() {
        text += &format!(" ({})", condition(&one.condition));
    }
    if !one.events.is_empty() {
        text += &format!(", {}", listed(&one.events));
    }
    let connections = counted(one.connections as usize, "connection");
    let in_blocks = match one.blocks {
        1 => String::new(),
        blocks => format!(" in {blocks} blocks"),
    };
    if one.cut == 0 {
        text += &format!(": none of {connections} is cut{in_blocks}");
    } else {
        let cuts = counted(one.cut as usize, "cut");
        let ends = one.ends.iter();
        let ends: Vec<String> = ends
            .map(|end| format!("{}: {}", end.how, grouped(end.count)))
            .collect();
        text += &format!(": {cuts}{in_blocks} of {connections} ({})", ends.join(", "));
    }
    if one.reconnect.count() > 0 {
        let of = |q| time(one.reconnect.quantile_us(q));
        text += &format!("; open again after {} (p99 {})", of(0.5), of(0.99));
        if one.storm_per_s > 0.0 {
            text += &format!(", at most {} connections/s", rate(one.storm_per_s));
        }
    }
    let failed = grouped(one.failed);
    text += &format!("; {failed} of {} messages failed", grouped(one.messages));
    if let (Some(memory), Some(processes)) = (one.memory_bytes_max, one.processes_max) {
        text += &format!(
            "; servers took at most {} in {}",
            bytes(memory as f64),
            match processes {
                1 => "1 process".to_owned(),
                many => format!("{many} processes"),
            }
        );
    }
    text
}
