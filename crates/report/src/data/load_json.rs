//! One load as JSON.

use readings::{LastingReading, Pacing, Quantiles, UsersReading};
use serde_json::{Map, Value, json as object};

use verdict::JudgedLoad;
use verdict::words::flaws;

/// One load as the JSON document of `weigh load --format json`.
///
/// `extra` (the URL, the program's version, …) comes first; the document's own fields win where
/// names meet. Times are in microseconds: `latency_us` runs from the time that a request was due,
/// `service_us` from the time that it was sent; they differ in an open loop only.
/// `latency_us_unresolved` names the quantiles that too few answers stand behind, and `problems`
/// says why the load cannot be used, if it cannot.
pub fn load_json(load: &JudgedLoad<'_>, extra: Map<String, Value>) -> Value {
    let reading = load.reading;
    let response = reading.response.quantiles();
    let own = object!({
        "requests": reading.requests,
        "duration_s": reading.duration_s,
        "requests_per_s": reading.requests_per_s(),
        "bytes_read": reading.bytes_read,
        "errors": reading.errors,
        "requests_all": reading.requests_all,
        "errors_all": reading.errors_all,
        "statuses": reading.statuses,
        "connections": reading.connections,
        "connections_open_min": reading.connections_open_min,
        "connects": reading.connects,
        "streams": reading.streams,
        "resent": reading.resent,
        "used_up": reading.used_up,
        "pacing": reading.pacing,
        "latency_us": response,
        "latency_us_unresolved": unresolved(&response),
        "service_us": reading.service.quantiles(),
        "connect_us": reading.connect.quantiles(),
        "tls": reading.tls.as_ref().map(|tls| object!({
            "handshakes": tls.handshakes,
            "resumed": tls.resumed,
            "handshake_us": tls.handshake.quantiles(),
            "resumed_handshake_us": tls.resumed_handshake.quantiles(),
            "negotiated": tls.negotiated,
            "wire_bytes_read": tls.wire_bytes_read,
            "wire_bytes_sent": tls.wire_bytes_sent,
        })),
        "quic": reading.quic.as_ref().map(|quic| object!({
            "packets_sent": quic.packets_sent,
            "packets_lost": quic.packets_lost,
            "bytes_lost": quic.bytes_lost,
            "congestion_events": quic.congestion_events,
            "datagrams_sent": quic.datagrams_sent,
            "datagrams_received": quic.datagrams_received,
            "sends": quic.sends,
            "gso_batch": quic.gso_batch(),
            "gso": quic.gso,
            "gro": quic.gro,
            "gso_failed": quic.gso_failed,
            "window_bytes": quic.window_bytes,
            "congestion": quic.congestion,
        })),
        "lasting": reading.lasting.as_deref().map(lasting),
        "users": reading.users.as_deref().map(users),
        "tcp_congestion": reading.tcp_congestion,
        "first_byte_us": reading.first_byte.quantiles(),
        "transfer_us": reading.transfer.quantiles(),
        "schedule_lag_us": match reading.pacing {
            Pacing::Closed => Quantiles::default(),
            Pacing::Open { .. } => reading.schedule_lag.quantiles(),
        },
        "receive_lag_us": reading.receive_lag.quantiles(),
        "offered": reading.offered,
        "overload": load.overload.as_ref().map(|overload| object!({
            "carried_per_s": overload.carried_per_s,
            "offered_per_s": overload.offered_per_s,
            "backlog_end": overload.backlog_end,
            "stage": overload.stage,
        })),
    });
    // The macro takes no more of them at once.
    let more = object!({
        "pauses": reading.pauses,
        "client": reading.client,
        "hosts": reading.hosts,
        "stages": reading.stages,
        "per_request": reading.per_request,
        "fairness": reading.fairness,
        "rows": reading.rows,
        "rows_left_out": reading.rows_left_out,
        "wrong": reading.wrong,
        "accept_queues": reading.accept_queues,
        "problems": flaws(&load.flaws),
        "histogram": reading.response.to_base64(),
    });
    let mut document = extra;
    for part in [own, more] {
        if let Value::Object(part) = part {
            document.extend(part);
        }
    }
    Value::Object(document)
}

fn users(reading: &UsersReading) -> Value {
    object!({
        "arrived": reading.arrived,
        "rounds": reading.rounds,
        "given_up": reading.given_up,
        "under_way": reading.under_way,
        "round_us": reading.round.quantiles(),
    })
}

fn lasting(reading: &LastingReading) -> Value {
    object!({
        "traffic": reading.traffic,
        "opened": reading.opened,
        "open_min": reading.open_min,
        "expected": reading.expected,
        "reach": reading.reach(),
        "messages": reading.messages,
        "message_bytes": reading.message_bytes,
        "first_message_us": reading.first_message.quantiles(),
        "gap_us": reading.gap.quantiles(),
        "answer_us": reading.answer.quantiles(),
        "lag_us": reading.lag.quantiles(),
        "lag_base": reading.lag_base,
        "stalls": reading.stalls,
        "stall_longest_s": reading.stall_longest_s,
        "lost": reading.lost,
        "overdue": reading.overdue,
        "without_message": reading.without_message,
        "merged": reading.merged,
        "reordered": reading.reordered,
        "repeated": reading.repeated,
        "ends": reading.ends,
        "reconnect_us": reading.reconnect.quantiles(),
        "connections": reading.connections,
    })
}

fn unresolved(q: &Quantiles) -> Vec<&'static str> {
    Quantiles::SHARES
        .into_iter()
        .filter(|(_, quantile)| !q.resolves(*quantile))
        .map(|(name, _)| name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use readings::Histogram;
    use testing::journals::load;

    #[test]
    fn the_contract_holds() {
        let reading = load(2_000.0, 400.0, Some(2_000.0));
        let mut extra = Map::new();
        extra.insert("url".into(), "http://127.0.0.1/".into());
        extra.insert("requests".into(), "nonsense".into());
        let doc = load_json(&JudgedLoad::of(&reading), extra);
        assert_eq!(doc["url"], "http://127.0.0.1/");
        assert_eq!(doc["requests"], 20_000);
        assert_eq!(doc["requests_per_s"], 2_000.0);
        for kind in ["connect", "read", "write", "timeout", "status", "verify"] {
            assert_eq!(doc["errors"][kind], 0);
        }
        let names = "latency_us service_us connect_us first_byte_us transfer_us schedule_lag_us \
                     receive_lag_us";
        for name in names.split(' ') {
            for key in [
                "min", "mean", "stdev", "p50", "p75", "p90", "p99", "p99_9", "p99_99", "max",
                "count",
            ] {
                assert!(doc[name][key].is_number(), "{name}.{key}");
            }
        }
        assert!(doc["overload"].is_null() && doc["pauses"].is_null());
        assert_eq!(doc["client"]["saturated"], false);
        assert_eq!(doc["client"]["threads"][0]["cpu"], 0.4);
        assert_eq!(
            doc["pacing"],
            object!({"kind": "open", "rate_per_s": 2_000.0})
        );
        assert_eq!(doc["latency_us_unresolved"], object!(["p99_9", "p99_99"]));
        let text = doc["histogram"].as_str().unwrap();
        let back = Histogram::from_base64(text).unwrap();
        assert_eq!(back.quantiles(), reading.response.quantiles());
    }
}
