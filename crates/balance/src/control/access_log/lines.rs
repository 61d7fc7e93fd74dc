//! Formats of log lines.

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::date::Date;
use crate::config::model::LogFormat;
use crate::engine::shared::events::RequestLine;

pub(super) enum Served<'l> {
    Connection,
    /// A connection that an HTTP request has upgraded.
    Upgraded,
    Request {
        /// `None`: its head could not be parsed.
        line: Option<&'l RequestLine>,
        status: u16,
    },
}

pub(super) struct Line<'l> {
    pub(super) client: IpAddr,
    pub(super) served: Served<'l>,
    /// Bytes from the client.
    pub(super) bytes_to: u64,
    /// Bytes to the client.
    pub(super) bytes_from: u64,
    pub(super) duration_ns: u64,
    /// The time limit that ended it too early.
    pub(super) cut: Option<&'static str>,
}

impl Line<'_> {
    /// Appends a line of the access log: Common or Combined Log Format, and further fields.
    /// `whose`: service and back end.
    pub(super) fn access(
        &self,
        form: LogFormat,
        unix_s: u64,
        whose: (&str, Option<&str>),
        out: &mut Vec<u8>,
    ) {
        // Writing into a vector cannot fail, here and below.
        let client = self.client.to_canonical();
        let _ = write!(out, "{client} - - [{}] \"", Date(unix_s));
        match &self.served {
            Served::Connection => out.extend_from_slice(b"TCP\" -"),
            Served::Upgraded => out.extend_from_slice(b"UPGRADED\" -"),
            Served::Request { line, status } => {
                match line {
                    None => out.push(b'-'),
                    Some(line) => {
                        quoted(line.method.as_bytes(), out);
                        out.push(b' ');
                        quoted(line.target.as_bytes(), out);
                        let _ = write!(out, " HTTP/{}", line.version);
                    }
                }
                let _ = write!(out, "\" {status}");
            }
        }
        let _ = write!(out, " {}", self.bytes_from);
        if form == LogFormat::Combined {
            let line = match &self.served {
                Served::Request { line, .. } => *line,
                Served::Connection | Served::Upgraded => None,
            };
            let fields = line.map(|line| [&line.referer, &line.user_agent]);
            for field in fields.unwrap_or([&None, &None]) {
                out.extend_from_slice(b" \"");
                quoted(field.as_deref().unwrap_or("-").as_bytes(), out);
                out.push(b'"');
            }
        }
        let (service, backend) = whose;
        let _ = write!(
            out,
            " duration_us={} service={service} backend={} bytes_to={}",
            self.duration_ns / 1_000,
            backend.unwrap_or("-"),
            self.bytes_to
        );
        if let Some(limit) = self.cut {
            let _ = write!(out, " cut={limit}");
        }
        out.push(b'\n');
    }

    /// Appends a line of the throughput log: Unix time, bytes from the client, bytes to the client,
    /// and microseconds.
    pub(super) fn throughput(&self, time: Duration, out: &mut Vec<u8>) {
        let _ = writeln!(
            out,
            "{}.{:06} {} {} {}",
            time.as_secs(),
            time.subsec_micros(),
            self.bytes_to,
            self.bytes_from,
            self.duration_ns / 1_000
        );
    }
}

/// Appends a line of the traffic log: Unix time, client, direction, back end, and data.
pub(super) fn traffic(
    time: Duration,
    client: SocketAddr,
    to_backend: bool,
    backend: &str,
    bytes: &[u8],
    out: &mut Vec<u8>,
) {
    let _ = write!(out, "{}.{:06} ", time.as_secs(), time.subsec_micros());
    let way = if to_backend { '>' } else { '<' };
    let _ = write!(out, "{client} {way} {backend} \"");
    quoted(bytes, out);
    out.extend_from_slice(b"\"\n");
}

/// Escapes a client's data as Apache and nginx do: no quotes, line ends or control characters.
fn quoted(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        match byte {
            b'"' | b'\\' | 0..=0x1f | 0x7f.. => drop(write!(out, "\\x{byte:02X}")),
            plain => out.push(plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_request_is_a_line_of_the_common_log_format_and_more() {
        let head = RequestLine {
            method: "GET".into(),
            target: "/a\"b\\c\r\n192.0.2.8 ä\u{7f}".into(),
            version: "1.1",
            referer: Some("http://a/\"".into()),
            user_agent: None,
        };
        let line = Line {
            cut: None,
            client: "::ffff:192.0.2.7".parse().unwrap(),
            served: Served::Request {
                line: Some(&head),
                status: 200,
            },
            bytes_to: 78,
            bytes_from: 2326,
            duration_ns: 1_532_999,
        };
        assert_eq!(
            text(|out| line.access(LogFormat::Common, 971_211_336, ("web", Some("one")), out)),
            "192.0.2.7 - - [10/Oct/2000:20:55:36 +0000] \
             \"GET /a\\x22b\\x5Cc\\x0D\\x0A192.0.2.8 \\xC3\\xA4\\x7F HTTP/1.1\" 200 2326 \
             duration_us=1532 service=web backend=one bytes_to=78\n"
        );
        assert_eq!(
            text(|out| line.access(LogFormat::Combined, 971_211_336, ("web", Some("one")), out)),
            "192.0.2.7 - - [10/Oct/2000:20:55:36 +0000] \
             \"GET /a\\x22b\\x5Cc\\x0D\\x0A192.0.2.8 \\xC3\\xA4\\x7F HTTP/1.1\" 200 2326 \
             \"http://a/\\x22\" \"-\" duration_us=1532 service=web backend=one bytes_to=78\n"
        );
        assert_eq!(
            text(|out| line.throughput(Duration::from_millis(1_500), out)),
            "1.500000 78 2326 1532\n"
        );
    }

    #[test]
    fn what_passed_stays_in_its_line() {
        let (time, client) = (
            Duration::from_micros(2_000_007),
            "192.0.2.7:40".parse().unwrap(),
        );
        assert_eq!(
            text(|out| traffic(time, client, true, "one", b"a\"\r\n\xff", out)),
            "2.000007 192.0.2.7:40 > one \"a\\x22\\x0D\\x0A\\xFF\"\n"
        );
    }

    #[test]
    fn a_connection_has_no_status() {
        let line = Line {
            cut: None,
            client: "2001:db8::1".parse().unwrap(),
            served: Served::Connection,
            bytes_to: 5,
            bytes_from: 7,
            duration_ns: 8_000,
        };
        assert_eq!(
            text(|out| line.access(LogFormat::Common, 0, ("mail", None), out)),
            "2001:db8::1 - - [01/Jan/1970:00:00:00 +0000] \"TCP\" - 7 \
             duration_us=8 service=mail backend=- bytes_to=5\n"
        );
        let cut = Line {
            served: Served::Upgraded,
            cut: Some("client_idle"),
            ..line
        };
        assert_eq!(
            text(|out| cut.access(LogFormat::Common, 0, ("web", Some("one")), out)),
            "2001:db8::1 - - [01/Jan/1970:00:00:00 +0000] \"UPGRADED\" - 7 \
             duration_us=8 service=web backend=one bytes_to=5 cut=client_idle\n"
        );
    }
}
