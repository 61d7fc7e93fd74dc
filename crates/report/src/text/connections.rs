//! Long-lived connections in a load's text: how many were cut, and how they came back.

use readings::text::compact::time;
use readings::text::{counted, grouped};
use readings::{LastingReading, LoadReading, TrafficKind};

/// The lines on WebSockets; none of other loads.
pub(super) fn lines(reading: &LoadReading) -> String {
    let Some(lasting) = &reading.lasting else {
        return String::new();
    };
    // Of others their messages are told.
    if lasting.traffic != TrafficKind::WebSocket || lasting.has_messages() {
        return String::new();
    }
    let mut out = format!(
        "  WebSockets: {} opened, at least {} open at the end of the measured time\n",
        grouped(lasting.opened),
        grouped(lasting.open_min)
    );
    if !lasting.ends.is_empty() {
        let ends = lasting.ends.iter();
        let ends: Vec<String> = ends
            .map(|end| format!("{} x {}", end.how, grouped(end.count)))
            .collect();
        out.push_str(&format!("  Ends: {}\n", ends.join(", ")));
    }
    out.push_str(&reconnections(lasting));
    let odd = [
        (lasting.repeated, "repeated"),
        (lasting.reordered, "out of order"),
        (lasting.lost, "lost"),
    ];
    for (count, what) in odd.into_iter().filter(|(count, _)| *count > 0) {
        let messages = counted(count as usize, "message");
        out.push_str(&format!("  {messages} {what}\n"));
    }
    out
}

fn reconnections(lasting: &LastingReading) -> String {
    let back = lasting.reconnect.quantiles();
    if back.count + lasting.reconnect_failed == 0 {
        return String::new();
    }
    let failed = match lasting.reconnect_failed {
        0 => String::new(),
        failed => format!(", after {} failed attempts", grouped(failed)),
    };
    let times = match back.count {
        0 => String::new(),
        _ => format!(
            ", p50 {}, max {} after the loss",
            time(back.p50),
            time(back.max)
        ),
    };
    format!(
        "  Reconnected: {} of {} cut{times}{failed}\n",
        grouped(back.count),
        grouped(lasting.cut())
    )
}
