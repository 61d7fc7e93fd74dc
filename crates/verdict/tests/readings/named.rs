//! Simulated runs as the tools print them whose figures have names.
use serde_json::{Value, json};

use crate::printed::{mean, quantile, sorted, stdev};
use crate::run::Run;

const URL: &str = "http://a.example/";

fn last(sorted: &[f64]) -> f64 {
    sorted[sorted.len() - 1]
}

/// Whole milliseconds, rounded down.
fn whole_ms(values: &[f64]) -> Vec<f64> {
    values.iter().map(|us| (us / 1e3).floor()).collect()
}

fn grouped(n: f64) -> String {
    let digits = format!("{n:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Tables, or JSON. It rounds failures to thousands, so there are fewer.
pub fn autocannon(run: &Run, as_json: bool) -> String {
    let (c, s, depth) = (run.connections, run.seconds, run.depth);
    let ms = whole_ms(&sorted(&run.latencies_us));
    let good = run.requests - run.wrong;
    if as_json || run.late >= 1000 {
        let at = |share| quantile(&ms, share);
        return json!({
            "url": URL, "connections": c, "sampleInt": s * 1e3, "pipelining": depth, "workers": 0,
            "duration": s, "errors": run.late, "timeouts": run.late, "mismatches": 0,
            "non2xx": run.wrong, "2xx": good, "4xx": 0, "5xx": run.wrong,
            "latency": {"average": mean(&ms), "mean": mean(&ms), "stddev": stdev(&ms), "min": ms[0],
                "max": last(&ms), "p50": at(0.5), "p97_5": at(0.975), "p99": at(0.99)},
            "requests": {"average": run.requests, "total": run.requests, "sent": run.all()},
            "throughput": {"average": 1e5, "total": 100_000},
        })
        .to_string();
    }
    let pipelining = match depth {
        1 => String::new(),
        depth => format!(" with {depth} pipelining factor"),
    };
    let mut text = format!(
        "$ autocannon -c {c} -p {depth} -d {s} --renderStatusCodes {URL}\nRunning {s}s test @ {URL}\n{c} \
         connections{pipelining}\n\n│ Stat    │ 2.5% │ 50% │ 97.5% │ 99% │ Avg │ Stdev │ Max │\n│ Latency │ \
         {} ms │ {} ms │ {} ms │ {} ms │ {:.2} ms │ {:.2} ms │ {} ms │\n│ Stat │ 1% │ 2.5% │ 50% │ 97.5% │ Avg │ \
         Stdev │ Min │\n│ Req/Sec │ {n} │ {n} │ {n} │ {n} │ {n} │ 0 │ {n} │\n│ Bytes/Sec │ 1 kB │ 1 kB │ 1 kB │ 1 kB │ \
         1 kB │ 0 B │ 1 kB │\n│ Code │ Count │\n",
        quantile(&ms, 0.025),
        quantile(&ms, 0.5),
        quantile(&ms, 0.975),
        quantile(&ms, 0.99),
        mean(&ms),
        stdev(&ms),
        last(&ms),
        n = grouped(run.requests as f64),
    );
    for (code, count) in [(200, good), (500, run.wrong)] {
        if count > 0 {
            text += &format!("│ {code} │ {count} │\n");
        }
    }
    text += &format!("\nReq/Bytes counts sampled every {s} seconds.\n# of samples: 1\n\n");
    if run.wrong > 0 {
        text += &format!("{good} 2xx responses, {} non 2xx responses\n", run.wrong);
    }
    let sent = match run.all() {
        all if all < 1000 => all.to_string(),
        all => format!("{}k", all / 1000),
    };
    text += &format!("{sent} requests in {s:.2}s, 6.54 MB read\n");
    if run.late > 0 {
        text += &format!("{0} errors ({0} timeouts)\n", run.late);
    }
    text
}

/// An open loop at a rate that came about by itself.
pub fn vegeta(run: &Run, as_json: bool) -> String {
    let (n, s) = (run.all(), run.seconds);
    let all = sorted(&run.all_us());
    let good = run.requests - run.wrong;
    let codes = [(0, run.late), (200, good), (500, run.wrong)];
    let codes = codes.into_iter().filter(|(_, count)| *count > 0);
    let late = format!("Get \"{URL}\": context deadline exceeded (Client.Timeout exceeded)");
    let errors = [
        (run.wrong, "500 Internal Server Error"),
        (run.late, late.as_str()),
    ];
    let errors: Vec<&str> = errors
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(_, words)| words)
        .collect();
    let at = |share| quantile(&all, share);
    let (rate, throughput) = (n as f64 / s, good as f64 / s);
    if as_json {
        let ns = |us: f64| (us * 1e3) as u64;
        let codes: serde_json::Map<String, Value> = codes
            .map(|(code, count)| (code.to_string(), count.into()))
            .collect();
        return json!({
            "latencies": {"total": 1, "mean": ns(mean(&all)), "50th": ns(at(0.5)), "90th": ns(at(0.9)),
                "95th": ns(at(0.95)), "99th": ns(at(0.99)), "max": ns(last(&all)), "min": ns(all[0])},
            "bytes_in": {"total": 100, "mean": 1}, "bytes_out": {"total": 0, "mean": 0},
            "duration": ns(s * 1e6 * 0.99), "wait": ns(s * 1e6 * 0.01), "requests": n, "rate": rate,
            "throughput": throughput, "success": 0.9, "status_codes": codes, "errors": errors,
        })
        .to_string();
    }
    let codes: Vec<String> = codes
        .map(|(code, count)| format!("{code}:{count}"))
        .collect();
    let us = |us: f64| format!("{us:.3}µs");
    let mut text = format!(
        "$ echo 'GET {URL}' | vegeta attack -rate {rate:.0} -duration {s}s | vegeta report\n\
         Requests      [total, rate, throughput]         {n}, {rate:.2}, {throughput:.2}\n\
         Duration      [total, attack, wait]             {s}s, {:.3}s, {:.3}s\n\
         Latencies     [min, mean, 50, 90, 95, 99, max]  {}, {}, {}, {}, {}, {}, {}\n\
         Bytes In      [total, mean]                     39000, 39.00\n\
         Bytes Out     [total, mean]                     0, 0.00\n\
         Success       [ratio]                           93.20%\n\
         Status Codes  [code:count]                      {}  \nError Set:\n",
        s * 0.99,
        s * 0.01,
        us(all[0]),
        us(mean(&all)),
        us(at(0.5)),
        us(at(0.9)),
        us(at(0.95)),
        us(at(0.99)),
        us(last(&all)),
        codes.join("  "),
    );
    for error in errors {
        text += &format!("{error}\n");
    }
    text
}

/// Its rate is a mean of samples, and may be twice the true one.
pub fn bombardier(run: &Run, as_json: bool) -> String {
    let (c, s) = (run.connections, run.seconds);
    let all = sorted(&run.all_us());
    let good = run.requests - run.wrong;
    let at = |share| quantile(&all, share);
    if as_json {
        let errors = match run.late {
            0 => json!([]),
            late => json!([{"description": "timeout", "count": late}]),
        };
        return json!({
            "spec": {"numberOfConnections": c, "testType": "timed", "testDurationSeconds": s,
                "method": "GET", "url": URL, "timeoutSeconds": 2, "client": "fasthttp"},
            "result": {"bytesRead": 1000, "bytesWritten": 1000, "timeTakenSeconds": s, "req1xx": 0,
                "req2xx": good, "req3xx": 0, "req4xx": 0, "req5xx": run.wrong, "others": run.late,
                "errors": errors,
                "latency": {"mean": mean(&all), "stddev": stdev(&all), "max": last(&all),
                    "percentiles": {"50": at(0.5), "90": at(0.9), "99": at(0.99)}},
                "rps": {"mean": 2.0 * run.rate(), "stddev": 1, "max": 1}},
        })
        .to_string();
    }
    let time = |us: f64| match us {
        _ if us >= 1e6 => format!("{:.2}s", us / 1e6),
        _ if us >= 1e3 => format!("{:.2}ms", us / 1e3),
        _ => format!("{us:.2}us"),
    };
    let mut text = format!(
        "$ bombardier -c {c} -d {s}s -l {URL}\nBombarding {URL} for {s}s using {c} connection(s)\nDone!\n\
         Statistics        Avg      Stdev        Max\n  Reqs/sec     {:.2}   14097.82   60175.06\n  \
         Latency      {}     {}   {}\n  Latency Distribution\n",
        run.rate() * (1.0 + (run.requests % 100) as f64 / 100.0),
        time(mean(&all)),
        time(stdev(&all)),
        time(last(&all)),
    );
    for share in [50, 75, 90, 95, 99] {
        text += &format!("     {share}%   {}\n", time(at(f64::from(share) / 100.0)));
    }
    text += &format!(
        "  HTTP codes:\n    1xx - 0, 2xx - {good}, 3xx - 0, 4xx - 0, 5xx - {}\n    others - {}\n",
        run.wrong, run.late
    );
    if run.late > 0 {
        text += &format!("  Errors:\n       timeout - {}\n", run.late);
    }
    text + "  Throughput:     4.78MB/s\n"
}

/// Two digits of milliseconds, as Locust rounds its quantiles.
fn two_digits(us: f64) -> f64 {
    let ms = us / 1e3;
    match ms {
        _ if ms < 100.0 => ms.round(),
        _ if ms < 1000.0 => (ms / 10.0).round() * 10.0,
        _ if ms < 10_000.0 => (ms / 100.0).round() * 100.0,
        _ => (ms / 1000.0).round() * 1000.0,
    }
}

/// The tables, or `_stats.csv`, which does not say how requests failed.
pub fn locust(run: &Run, as_csv: bool) -> String {
    let (n, s) = (run.all(), run.seconds);
    let failed = run.late + run.wrong;
    let all = sorted(&run.all_us());
    let rates = [n as f64 / s, failed as f64 / s];
    let shares = [
        0.5, 0.66, 0.75, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, 0.9999, 1.0,
    ];
    let quantiles = shares.map(|share| format!("{:.0}", two_digits(quantile(&all, share))));
    if as_csv {
        let row = format!(
            "{n},{failed},{},{},{},{},39.0,{},{},{}\n",
            two_digits(quantile(&all, 0.5)),
            mean(&all) / 1e3,
            all[0] / 1e3,
            last(&all) / 1e3,
            rates[0],
            rates[1],
            quantiles.join(",")
        );
        return format!(
            "Type,Name,Request Count,Failure Count,Median Response Time,Average Response Time,Min Response \
             Time,Max Response Time,Average Content Size,Requests/s,Failures/s,\
             50%,66%,75%,80%,90%,95%,98%,99%,99.9%,99.99%,100%\nGET,/,{row},Aggregated,{row}"
        );
    }
    let ms = whole_ms(&all);
    let row = format!(
        "{n} {failed}({:.2}%) | {:.0} {} {} {:.0} | {:.2} {:.2}\n",
        failed as f64 / n as f64 * 100.0,
        (mean(&all) / 1e3).floor(),
        ms[0],
        last(&ms),
        two_digits(quantile(&all, 0.5)),
        rates[0],
        rates[1]
    );
    let rule = "--------|------------|-------|-------------|-------|-------|--------|-----------\n";
    let mut text = format!(
        "$ locust --headless -u {c} -r {c} --host http://a.example\n[2026-11-27 14:49:57,298] \
         vm/INFO/locust.main: Starting Locust 2.47.0\n[2026-11-27 14:49:57,331] vm/INFO/locust.runners: All users \
         spawned: {{\"U\": {c}}} ({c} total users)\nType     Name  # reqs  # fails |  Avg  Min  Max  Med |  req/s  \
         failures/s\n{rule}GET      /    {row}{rule}         Aggregated  {row}\nResponse time percentiles \
         (approximated)\nType  Name  50%  66%  75%  80%  90%  95%  98%  99%  99.9%  99.99%  100%  # \
         reqs\n{rule}GET  /  {q}  {n}\n{rule}      Aggregated  {q}  {n}\n\n",
        c = run.connections,
        q = quantiles.join("  "),
    );
    if failed > 0 {
        text += &format!("Error report\n# occurrences      Error\n{rule}");
    }
    if run.late > 0 {
        text += &format!("{}  GET /: ReadTimeout('timed out')\n", run.late);
    }
    if run.wrong > 0 {
        let said = "HTTPError('500 Server Error: Internal Server Error for url: /')";
        text += &format!("{}  GET /: {said}\n", run.wrong);
    }
    if failed > 0 {
        text += rule;
    }
    text
}

/// The layout since 3.11, or the one before.
pub fn gatling(run: &Run, old: bool) -> String {
    let (n, failed) = (run.all(), run.late + run.wrong);
    let ms = whole_ms(&sorted(&run.all_us()));
    let at = |share| quantile(&ms, share);
    let rate = n as f64 / run.seconds;
    let figures = [
        ("min response time", ms[0]),
        ("max response time", last(&ms)),
        ("mean response time", mean(&ms).floor()),
        ("response time std deviation", stdev(&ms).floor()),
        ("response time 50th percentile", at(0.5)),
        ("response time 75th percentile", at(0.75)),
        ("response time 95th percentile", at(0.95)),
        ("response time 99th percentile", at(0.99)),
    ];
    let line = |name: &str, [all, ok, ko]: [String; 3]| match old {
        true => format!("> {name}        {all} (OK={ok}     KO={ko}    )\n"),
        false => format!("> {name}      |   {all} |     {ok} |      {ko}\n"),
    };
    let number = |value: f64| match old {
        true => format!("{value:.0}"),
        false => grouped(value),
    };
    let mut text = format!(
        "---- Global Information ----------------------------------------\n{}",
        line(
            "request count",
            [n, n - failed, failed].map(|n| number(n as f64))
        )
    );
    for (name, value) in figures {
        let (name, unit) = match (old, name) {
            (true, "response time std deviation") => ("std deviation", ""),
            (true, name) => (name, ""),
            (false, name) => (name, " (ms)"),
        };
        let each = [number(value), number(value), "-".to_owned()];
        text += &line(&format!("{name}{unit}"), each);
    }
    let name = if old {
        "mean requests/sec"
    } else {
        "mean throughput (rps)"
    };
    let rate = format!("{rate:.2}");
    text += &line(name, [rate.clone(), rate, "0".to_owned()]);
    text += "---- Response Time Distribution ----------------------------------------\n";
    if failed > 0 {
        text += "---- Errors ------------------------------------------------------------\n";
        let share = |count: u64| format!("{:.2}%", count as f64 / failed as f64 * 100.0);
        for (words, count) in [
            ("status.find.in(200), found 500", run.wrong),
            (
                "i.g.h.c.i.RequestTimeoutException: Request timeout",
                run.late,
            ),
        ] {
            if count > 0 {
                let count_of = number(count as f64);
                text += &format!("> {words}        {count_of} ({})\n", share(count));
            }
        }
    }
    text + "========================================================================\n"
}

/// The lines of its summariser, or `statistics.json`.
pub fn jmeter(run: &Run, as_json: bool) -> String {
    let (n, failed, s) = (run.all(), run.late + run.wrong, run.seconds);
    let ms = whole_ms(&sorted(&run.all_us()));
    let rate = n as f64 / s;
    if as_json {
        let at = |share| quantile(&ms, share);
        let total = json!({
            "transaction": "Total", "sampleCount": n, "errorCount": failed, "errorPct": 1.0,
            "meanResTime": mean(&ms), "medianResTime": at(0.5), "minResTime": ms[0],
            "maxResTime": last(&ms), "pct1ResTime": at(0.9), "pct2ResTime": at(0.95),
            "pct3ResTime": at(0.99), "throughput": rate, "receivedKBytesPerSec": 284.4,
            "sentKBytesPerSec": 115.0,
        });
        return json!({ "Total": total }).to_string();
    }
    let figures = format!(
        "{n} in 00:{:02}:{:02} = {rate:.1}/s Avg: {:.0} Min: {} Max: {} Err: {failed} (1.00%)",
        s as u64 / 60,
        s as u64 % 60,
        mean(&ms).floor(),
        ms[0],
        last(&ms)
    );
    let c = run.connections;
    format!(
        "Creating summariser <summary>\nStarting standalone test @ 2026 Nov 27 14:56:06 UTC (1)\nsummary + \
         {figures} Active: {c} Started: {c} Finished: 0\nsummary = {figures}\nTidying up ...    @ 2026 Nov 27 \
         14:56:15 UTC (2)\n... end of run\n"
    )
}

/// The summary report, or the JSON of `--output`.
pub fn artillery(run: &Run, as_json: bool) -> String {
    let good = run.requests - run.wrong;
    let counters = [
        ("errors.ETIMEDOUT", run.late),
        ("http.codes.200", good),
        ("http.codes.500", run.wrong),
        ("http.downloaded_bytes", 6732),
        ("http.requests", run.all()),
        ("http.responses", run.requests),
        ("vusers.created", run.all()),
    ];
    let counters = counters.into_iter().filter(|(_, count)| *count > 0);
    let rate = (run.all() as f64 / run.seconds).round();
    let ms: Vec<f64> = sorted(&run.latencies_us)
        .iter()
        .map(|us| (us / 1e3).round())
        .collect();
    let at = |share| quantile(&ms, share);
    let times = [
        ("min", ms[0]),
        ("max", last(&ms)),
        ("mean", (mean(&ms) * 10.0).round() / 10.0),
        ("median", at(0.5)),
        ("p95", at(0.95)),
        ("p99", at(0.99)),
    ];
    if as_json {
        let counters: serde_json::Map<String, Value> = counters
            .map(|(name, count)| (name.to_owned(), count.into()))
            .collect();
        let times: serde_json::Map<String, Value> = times
            .map(|(name, ms)| (name.to_owned(), ms.into()))
            .into_iter()
            .collect();
        return json!({"aggregate": {"counters": counters, "rates": {"http.request_rate": rate},
            "summaries": {"http.response_time": times}}})
        .to_string();
    }
    let dots = "....................";
    let rule = "--------------------------------\n";
    let mut text = format!("{rule}Summary report @ 14:54:56(+0000)\n{rule}\n");
    for (name, count) in counters {
        text += &format!("{name}: {dots} {count}\n");
        if name == "http.downloaded_bytes" {
            text += &format!("http.request_rate: {dots} {rate}/sec\n");
        }
        if name == "http.requests" {
            text += "http.response_time:\n";
            for (name, ms) in times {
                text += &format!("  {name}: {dots} {ms}\n");
            }
        }
    }
    text += "vusers.session_length:\n";
    for (name, ms) in times {
        text += &format!("  {name}: {dots} {ms}\n");
    }
    text
}

/// The workers share one connection.
pub fn ghz(run: &Run, as_json: bool) -> String {
    let (n, s) = (run.all(), run.seconds);
    let answered = sorted(&run.latencies_us);
    let at = |share| quantile(&answered, share);
    let good = run.requests - run.wrong;
    let mean_us = mean(&run.all_us());
    let (later, late) = (
        "rpc error: code = Unavailable desc = try later",
        "rpc error: code = DeadlineExceeded desc = context deadline exceeded",
    );
    let codes = [
        ("OK", good, ""),
        ("Unavailable", run.wrong, later),
        ("DeadlineExceeded", run.late, late),
    ];
    let codes = codes.into_iter().filter(|(_, count, _)| *count > 0);
    let shares = [10, 25, 50, 75, 90, 95, 99];
    if as_json {
        let ns = |us: f64| (us * 1e3) as u64;
        let errors: serde_json::Map<String, Value> = codes
            .clone()
            .filter(|(_, _, words)| !words.is_empty())
            .map(|(_, count, words)| (words.to_owned(), count.into()))
            .collect();
        let codes: serde_json::Map<String, Value> = codes
            .map(|(code, count, _)| (code.to_owned(), count.into()))
            .collect();
        let latencies = shares
            .map(|share| json!({"percentage": share, "latency": ns(at(f64::from(share) / 100.0))}));
        return json!({
            "options": {"call": "a.B.C", "host": "a.example:50051", "concurrency": run.connections,
                "connections": 1, "total": n},
            "count": n, "total": ns(s * 1e6), "average": ns(mean_us), "fastest": ns(answered[0]),
            "slowest": ns(last(&answered)), "rps": n as f64 / s, "errorDistribution": errors,
            "statusCodeDistribution": codes, "latencyDistribution": latencies,
        })
        .to_string();
    }
    let ms = |us: f64| format!("{:.2} ms", us / 1e3);
    let mut text = format!(
        "$ ghz --insecure --call a.B.C -z {s}s -c {} a.example:50051\n\nSummary:\n  Count:\t{n}\n  \
         Total:\t{s:.2} s\n  Slowest:\t{}\n  Fastest:\t{}\n  Average:\t{}\n  Requests/sec:\t{:.2}\n\nResponse \
         time histogram:\n\nLatency distribution:\n",
        run.connections,
        ms(last(&answered)),
        ms(answered[0]),
        ms(mean_us),
        n as f64 / s
    );
    for share in shares {
        text += &format!("  {share} % in {} \n", ms(at(f64::from(share) / 100.0)));
    }
    text += "\nStatus code distribution:\n";
    for (code, count, _) in codes.clone() {
        text += &format!("  [{code}]   {count} responses   \n");
    }
    if run.wrong + run.late > 0 {
        text += "\nError distribution:\n";
    }
    for (_, count, words) in codes.filter(|(_, _, words)| !words.is_empty()) {
        text += &format!("  [{count}]   {words}   \n");
    }
    text
}
