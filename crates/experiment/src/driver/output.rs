//! What a driver printed, as one reading.

use tools::{ReadError, Tool, ToolReading, read_output};

/// Reads what one run of a driver printed.
///
/// The reading has a number of requests and a duration: what a tool leaves out of `requests`,
/// `duration_s` and `requests_per_s` follows from the other two. Requests that failed are none.
///
/// # Errors
/// Why it is not a result: it cannot be read, has several results, or lacks the number of requests
/// or the duration.
pub fn read_driver_output(tool: Tool, text: &str) -> Result<ToolReading, String> {
    let mut readings = read_output(tool, text).map_err(|e: ReadError| e.to_string())?;
    let count = readings.len();
    let Some(mut reading) = readings.pop() else {
        return Err("expected a result, found none".to_owned());
    };
    if count > 1 {
        return Err(format!("expected one result, found {count}"));
    }
    let (requests, duration, rate) = (
        reading.requests,
        reading.duration_s.filter(|s| *s > 0.0),
        reading.requests_per_s.filter(|r| *r > 0.0),
    );
    reading.requests = requests.or(rate.zip(duration).map(|(r, s)| (r * s).round() as u64));
    reading.duration_s = duration.or(requests.zip(rate).map(|(n, r)| n as f64 / r));
    if reading.requests.is_none() || reading.duration_s.is_none() {
        return Err("its output lacks the number of requests or the duration".to_owned());
    }
    if reading.tool.counts_failures() {
        let failed = reading.errors.unexplained;
        reading.requests = reading.requests.map(|all| all.saturating_sub(failed));
    }
    Ok(reading)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The form is the tool's own; the figures are made up.
    const OUTPUT: &str = "Running 2s test @ http://127.0.0.1:8080/\n  \
         1 threads and 8 connections\n  \
         Thread Stats   Avg      Stdev     Max   +/- Stdev\n    \
         Latency   144.71us  129.53us   3.08ms   95.31%\n    \
         Req/Sec    23.24k     1.00k   24.29k    60.00%\n  \
         Latency Distribution\n     50%  119.00us\n     99%  423.00us\n  \
         46122 requests in 2.00s, 2.14MB read\nRequests/sec:  23061.00\nTransfer/sec:      2.14MB\n";

    #[test]
    fn one_result_is_read_and_nonsense_is_told() {
        let tool: Tool = Tool::ALL[0];
        let reading = read_driver_output(tool, OUTPUT).unwrap();
        assert_eq!(reading.requests, Some(46_122));
        assert_eq!(reading.duration_s, Some(2.0));
        let twice = read_driver_output(tool, &OUTPUT.repeat(2)).unwrap_err();
        assert_eq!(twice, "expected one result, found 2");
        assert!(read_driver_output(tool, "hello\n").is_err());
    }

    #[test]
    fn failures_that_a_driver_counts_as_requests_are_no_answers() {
        let text = "http_req_failed...: 1.50% 18 out of 1240\nhttp_reqs......: 1240 62/s\n\
                    iterations...: 1240 62/s\ndata_sent...: 1 kB 1 B/s\n";
        let tool = Tool::ALL.into_iter().find(|tool| tool.counts_failures());
        let reading = read_driver_output(tool.unwrap(), text).unwrap();
        assert_eq!(
            (reading.requests, reading.errors.total()),
            (Some(1_222), 18)
        );
        assert_eq!(reading.duration_s, Some(20.0));
    }
}
