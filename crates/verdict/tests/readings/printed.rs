//! Simulated runs as the tools print them.
use crate::run::Run;

fn wrk_time(us: f64) -> String {
    match us {
        _ if us >= 1e6 => format!("{:.2}s", us / 1e6),
        _ if us >= 1e3 => format!("{:.2}ms", us / 1e3),
        _ => format!("{us:.2}us"),
    }
}

/// wrk 4 adds, for each latency of twice the mean distance of a connection's requests or more, one
/// at each whole distance below.
fn corrected(run: &Run) -> Vec<f64> {
    let mut all = run.latencies_us.clone();
    let expected = (run.seconds * 1e6 / (run.requests / run.connections).max(1) as f64).floor();
    for &us in run.latencies_us.iter().filter(|us| **us >= 2.0 * expected) {
        let mut added = us - expected;
        while added > expected {
            all.push(added);
            added -= expected;
        }
    }
    all
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

pub fn stdev(values: &[f64]) -> f64 {
    let mean = mean(values);
    (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt()
}

pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = (share * sorted.len() as f64).ceil() as usize;
    sorted[at.clamp(1, sorted.len()) - 1]
}

pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

/// The command is left out, or has a script where one was used.
pub fn wrk(run: &Run, with_command: bool) -> String {
    let (c, s) = (run.connections, run.seconds);
    let all = sorted(&corrected(run));
    let script = if run.depth > 1 || run.pauses {
        " -s x.lua"
    } else {
        ""
    };
    let mut text = match with_command {
        true => format!("$ wrk -t1 -c{c} -d{s:.0}s --latency{script} http://a.example/\n"),
        false => String::new(),
    };
    text += &format!(
        "Running {s:.0}s test @ http://a.example/\n  1 threads and {c} connections\n  Thread Stats   Avg      \
         Stdev     Max   +/- Stdev\n    Latency   {}  {}   {}   70.00%\n    Req/Sec    31.26k     \
         7.06k   42.03k    59.09%\n  Latency Distribution\n",
        wrk_time(mean(&all)),
        wrk_time(stdev(&all)),
        wrk_time(all[all.len() - 1])
    );
    for share in [0.5, 0.75, 0.9, 0.99] {
        text += &format!(
            "     {:.0}%  {}\n",
            share * 100.0,
            wrk_time(quantile(&all, share))
        );
    }
    text += &format!("  {} requests in {s:.2}s, 55.47MB read\n", run.requests);
    if run.late > 0 || run.failed_connects > 0 {
        text += &format!(
            "  Socket errors: connect {}, read 0, write 0, timeout {}\n",
            run.failed_connects, run.late
        );
    }
    if run.wrong > 0 {
        text += &format!("  Non-2xx or 3xx responses: {}\n", run.wrong);
    }
    text + &format!(
        "Requests/sec: {:.2}\nTransfer/sec:     50.26MB\n",
        run.rate()
    )
}

pub fn wrk2(run: &Run, _: bool) -> String {
    let plain = wrk(run, false);
    let rest = plain.split_once("connections\n").unwrap();
    format!(
        "$ wrk -c{} -R{:.0} http://a.example/\n{}connections\n  Thread calibration: mean lat.: 1.204ms, rate \
         sampling interval: 10ms\n{}",
        run.connections,
        run.rate(),
        rest.0,
        rest.1
    )
}

pub fn ab(run: &Run, _: bool) -> String {
    let (c, s) = (run.connections, run.seconds);
    let (flag, kept) = match !run.reopens {
        true => ("-k ", format!("Keep-Alive requests:    {}\n", run.requests)),
        false => ("", String::new()),
    };
    let wrong = match run.wrong {
        0 => String::new(),
        wrong => format!("Non-2xx responses:      {wrong}\n"),
    };
    let all = sorted(&run.latencies_us);
    let ms = |us: f64| (us / 1e3).round();
    let row = |values: &[f64]| {
        let all = sorted(values);
        format!(
            "{} {} {:.1} {} {}",
            ms(all[0]),
            ms(mean(&all)),
            stdev(&all) / 1e3,
            ms(quantile(&all, 0.5)),
            ms(all[all.len() - 1])
        )
    };
    let both = run.latencies_us.iter().zip(&run.connecting_us);
    let processing: Vec<f64> = both.map(|(all, connecting)| all - connecting).collect();
    let mut text = format!(
        "$ ab {flag}-n {n} -c {c} http://a.example/\nThis is ApacheBench, Version 2.3\n\nBenchmarking \
         a.example (be patient)\n\nServer Software:        x\nServer Hostname:        a.example\nServer \
         Port:            80\n\nDocument Path:          /\nDocument Length:        512 bytes\n\nConcurrency \
         Level:      {c}\nTime taken for tests:   {s:.3} seconds\nComplete requests:      {n}\nFailed \
         requests:        0\n{wrong}{kept}Total transferred:      117400 bytes\nHTML transferred:       \
         102400 bytes\nRequests per second:    {:.2} [#/sec] (mean)\nTime per request:       {:.3} [ms] \
         (mean)\nTime per request:       {:.3} [ms] (mean, across all concurrent requests)\nTransfer \
         rate:          164.10 [Kbytes/sec] received\n\nConnection Times (ms)\n              min  \
         mean[+/-sd] median   max\nConnect:       {}\nProcessing:    {}\nWaiting:  \
             {}\nTotal:         {}\n\nPercentage of the requests served within a certain time (ms)\n",
        run.rate(),
        c as f64 * s * 1e3 / run.requests as f64,
        s * 1e3 / run.requests as f64,
        row(&run.connecting_us),
        row(&processing),
        row(&processing),
        row(&all),
        n = run.requests,
    );
    for percent in [50, 66, 75, 80, 90, 95, 98, 99] {
        let us = quantile(&all, f64::from(percent) / 100.0);
        text += &format!("  {percent}%    {}\n", ms(us));
    }
    text + &format!(" 100%    {} (longest request)\n", ms(all[all.len() - 1]))
}

pub fn hey(run: &Run, paced: bool) -> String {
    let rate = if paced { "-q 3 " } else { "" };
    let command = format!(
        "$ hey {rate}-z {:.0}s -c {} http://a.example/",
        run.seconds, run.connections
    );
    summary(
        run,
        &command,
        |us| format!("{:.4} secs", us / 1e6),
        "Latency distribution",
        false,
    )
}

pub fn oha(run: &Run, paced: bool) -> String {
    let rate = if paced { "-q 3 " } else { "" };
    let command = format!(
        "$ oha {rate}-z {:.0}s -c {} --no-tui http://a.example/",
        run.seconds, run.connections
    );
    let slowest = run.latencies_us.iter().copied().fold(0.0, f64::max);
    let time = move |us: f64| match slowest {
        _ if slowest >= 1e6 => format!("{:.4} sec", us / 1e6),
        _ => format!("{:.4} ms", us / 1e3),
    };
    summary(run, &command, time, "Response time distribution", true)
}

fn summary(
    run: &Run,
    command: &str,
    time: impl Fn(f64) -> String,
    heading: &str,
    is_oha: bool,
) -> String {
    let all = sorted(&run.latencies_us);
    let failed = run.late;
    // hey's are over all requests.
    let dialled = match is_oha {
        true => &run.opened_us,
        false => &run.connecting_us,
    };
    let dials = sorted(dialled);
    let success = if is_oha {
        "  Success rate:\t99.00%\n"
    } else {
        ""
    };
    let mut text = format!(
        "{command}\n\nSummary:\n{success}  Total:\t{}\n  Slowest:\t{}\n  Fastest:\t{}\n  Average:\t{}\n  \
         Requests/sec:\t{:.4}\n\n{heading}:\n",
        if is_oha {
            format!("{:.4} sec", run.seconds)
        } else {
            format!("{:.4} secs", run.seconds)
        },
        time(all[all.len() - 1]),
        time(all[0]),
        time(mean(&all)),
        (run.requests + failed) as f64 / run.seconds
    );
    for percent in [10, 25, 50, 75, 90, 95, 99] {
        let us = quantile(&all, f64::from(percent) / 100.0);
        text += &format!("  {percent}% in {}\n", time(us));
    }
    text += &format!(
        "\nDetails (average, fastest, slowest):\n  DNS+dialup:\t{}, {}, {}\n\nStatus code distribution:\n  \
         [200] {} responses\n",
        time(mean(dialled)),
        time(dials[0]),
        time(dials[dials.len() - 1]),
        run.requests - run.wrong
    );
    if run.wrong > 0 {
        text += &format!("  [500] {} responses\n", run.wrong);
    }
    if failed > 0 {
        text += &format!("\nError distribution:\n  [{failed}] context deadline exceeded\n");
    }
    text
}

/// `old` versions count errored requests as done, and have fewer columns.
pub fn h2load(run: &Run, old: bool) -> String {
    let time = |us: f64| match us {
        _ if us >= 1e6 => format!("{:.2}s", us / 1e6),
        _ if us >= 1e3 => format!("{:.2}ms", us / 1e3),
        _ => format!("{us:.0}us"),
    };
    let all = sorted(&run.latencies_us);
    let total = run.requests + run.late;
    let (n, late, good) = (run.requests, run.late, run.requests - run.wrong);
    let row = |values: &[f64]| {
        let all = sorted(values);
        let (low, high) = (time(all[0]), time(all[all.len() - 1]));
        let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|share| time(quantile(&all, share)));
        let spread = [time(mean(&all)), time(stdev(&all))].join("    ");
        match old {
            true => format!("{low}    {high}    {spread}    78.00%"),
            false => format!("{low}    {high}    {p50}    {p95}    {p99}    {spread}    78.00%"),
        }
    };
    let (columns, [request, connect, first]) = match old {
        true => (
            "min         max         mean         sd        +/- sd",
            ["time for request", "time for connect", "time to 1st byte"],
        ),
        false => (
            "min         max         median      p95         p99         mean        sd         +/- sd",
            ["request     ", "connect     ", "TTFB        "],
        ),
    };
    let (requests, connects) = (row(&all), row(&run.opened_us));
    format!(
        "$ h2load -n {total} -c {c} -m {} http://a.example/\nstarting benchmark...\nspawning thread #0: {c} \
         total client(s). {total} total requests\nApplication protocol: h2c\nprogress: 100% \
         done\n\nfinished in {:.2}s, {:.2} req/s, 123.65KB/s\nrequests: {total} total, {total} started, {} \
         done, {good} succeeded, {} failed, {late} errored, {late} timeout\nstatus codes: {good} 2xx, 0 \
         3xx, {} 4xx, 0 5xx\ntraffic: 115.63KB (118400) total, 9.57KB (9800) headers (space savings \
         0.00%), 100.00KB (102400) data\n                     {columns}\n{request}:    \
         {requests}\n{connect}:       {connects}\n{first}:    {requests}\nreq/s           :      26.74       \
         33.31       29.17        2.07   75.00%\n",
        run.depth,
        run.seconds,
        run.rate(),
        if old { total } else { n },
        run.wrong + late,
        run.wrong,
        c = run.connections,
    )
}

pub fn siege(run: &Run, benchmark: bool) -> String {
    let all = sorted(&run.latencies_us);
    let flag = if benchmark { "-b " } else { "" };
    format!(
        "$ siege {flag}-c {} -t {:.0}S http://a.example/\nTransactions:\t\t{} hits\nAvailability:\t\t99.03 \
         %\nElapsed time:\t\t{:.2} secs\nData transferred:\t18.93 MB\nResponse time:\t\t{:.2} \
         secs\nTransaction rate:\t{:.2} trans/sec\nThroughput:\t\t1.01 \
         MB/sec\nConcurrency:\t\t{:.2}\nSuccessful transactions:\t{}\nFailed transactions:\t{}\nLongest \
         transaction:\t{:.2}\nShortest transaction:\t{:.2}\n",
        run.connections,
        run.seconds,
        run.requests,
        run.seconds,
        mean(&all) / 1e6,
        run.rate(),
        mean(&all) * run.requests as f64 / 1e6 / run.seconds,
        run.requests - run.wrong,
        run.late,
        all[all.len() - 1] / 1e6,
        all[0] / 1e6
    )
}

pub fn redis_benchmark(run: &Run, with_command: bool) -> String {
    let all = sorted(&run.latencies_us);
    let mut text = match with_command {
        true => format!(
            "$ redis-benchmark -h db.example -n {} -c {} -P {} -t set\n",
            run.requests, run.connections, run.depth
        ),
        false => String::new(),
    };
    let ms = |us: f64| format!("{:.3}", us / 1e3);
    text += &format!(
        "====== SET ======\n  {} requests completed in {:.2} seconds\n  {} parallel clients\n  3 bytes \
         payload\n  keep alive: 1\n  multi-thread: no\n\nLatency by percentile distribution:\n0.000% <= {} \
         milliseconds (cumulative count 1)\n50.000% <= {} milliseconds (cumulative count 1079)\n100.000% \
         <= {} milliseconds (cumulative count 2000)\n\nSummary:\n  throughput summary: {:.2} requests per \
         second\n  latency summary (msec):\n          avg       min       p50       p95       p99       \
         max\n",
        run.requests,
        run.seconds,
        run.connections,
        ms(all[0]),
        ms(quantile(&all, 0.5)),
        ms(all[all.len() - 1]),
        run.rate()
    );
    let (p50, p95, p99) = (
        quantile(&all, 0.5),
        quantile(&all, 0.95),
        quantile(&all, 0.99),
    );
    let row = [mean(&all), all[0], p50, p95, p99, all[all.len() - 1]].map(ms);
    text + &format!("        {}\n", row.join("     "))
}

pub fn httperf(run: &Run, _: bool) -> String {
    let all = sorted(&run.latencies_us);
    let (n, rate) = (run.requests, run.rate());
    format!(
        "httperf --client=0/1 --server=a.example --port=80 --uri=/ --rate={rate:.0} --send-buffer=4096 \
         --recv-buffer=16384 --num-conns={n} --num-calls=1\nMaximum connect burst length: 1\n\nTotal: \
         connections {n} requests {n} replies {n} test-duration {:.3} s\n\nConnection rate: {rate:.1} conn/s \
         (15.3 ms/conn, <={} concurrent connections)\nConnection time [ms]: min {:.1} avg {:.1} max {:.1} \
         median {:.1} stddev {:.1}\nConnection time [ms]: connect 0.2\nConnection length [replies/conn]: \
         1.000\n\nRequest rate: {rate:.1} req/s (15.3 ms/req)\nRequest size [B]: 62.0\n\nReply rate \
         [replies/s]: min 65.6 avg {rate:.1} max 65.6 stddev 0.0 (1 samples)\nReply time [ms]: response \
         34.4 transfer 0.0\nReply size [B]: header 80.0 content 512.0 footer 0.0 (total 592.0)\nReply \
         status: 1xx=0 2xx={} 3xx=0 4xx={} 5xx=0\n\nCPU time [s]: user 0.88 system 5.23 (user 14.3% system \
         85.6% total 99.9%)\nNet I/O: 41.8 KB/s (0.3*10^6 bps)\n\nErrors: total {late} client-timo {late} \
         socket-timo 0 connrefused 0 connreset 0\nErrors: fd-unavail 0 addrunavail 0 ftab-full 0 other 0\n",
        run.seconds,
        run.connections,
        all[0] / 1e3,
        mean(&all) / 1e3,
        all[all.len() - 1] / 1e3,
        quantile(&all, 0.5) / 1e3,
        stdev(&all) / 1e3,
        n - run.wrong,
        run.wrong,
        late = run.late,
    )
}

pub fn k6(run: &Run, _: bool) -> String {
    let all = sorted(&run.all_us());
    let time = |us: f64| format!("{:.2}ms", us / 1e3);
    let trend = format!(
        "avg={} min={} med={} max={} p(90)={} p(95)={}",
        time(mean(&all)),
        time(all[0]),
        time(quantile(&all, 0.5)),
        time(all[all.len() - 1]),
        time(quantile(&all, 0.9)),
        time(quantile(&all, 0.95))
    );
    let (n, c, s) = (run.all(), run.connections, run.seconds);
    let rate = n as f64 / s;
    format!(
        "     execution: local\n        script: x.js\n\n  █ TOTAL RESULTS\n\n    HTTP\n    \
         http_req_duration....: {trend}\n    http_req_failed......: 1.00%  {} out of {n}\n    \
         http_reqs............: {n}   {rate:.6}/s\n\n    EXECUTION\n    iteration_duration...: {trend}\n    \
         iterations...........: {n}   {rate:.6}/s\n    vus..................: {c}     min={c}         \
         max={c}\n    vus_max..............: {c}     min={c}         max={c}\n\n    NETWORK\n    \
         data_received........: 2.1 MB 211 kB/s\n    data_sent............: 210 kB 21 kB/s\n\n\nrunning \
         ({s:.1}s), 0/{c} VUs, {n} complete and 0 interrupted iterations\ndefault ✓ \
         [======================================] {c} VUs  {s:.0}s\n",
        run.wrong + run.late
    )
}
