//! A command line's words and options.

use crate::Tool;

/// A line's words; quotes hold words together and are dropped.
pub(crate) fn shell_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    for c in line.chars() {
        match quote {
            Some(q) if c == q => quote = None,
            Some(_) => word.push(c),
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c.is_whitespace() => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            None => word.push(c),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Which of a tool's options take a value.
struct Grammar {
    /// One-letter options with a value.
    short: &'static str,
    /// Long options with a value, when it does not stand after `=`; spaces part them.
    long: &'static str,
    /// Long options have one dash only, as Go's.
    one_dash: bool,
}

fn grammar(tool: Tool) -> Grammar {
    let (short, long) = match tool {
        Tool::Wrk | Tool::Wrk2 => (
            "cdtsHR",
            "connections duration threads script header timeout rate",
        ),
        Tool::Ab => ("ncstbBpumvTCHAPXfZgexyzE", ""),
        Tool::Httperf => (
            "",
            "server port uri num-conns num-conn num-calls num-call rate timeout hog wsess \
             client method add-header http-version",
        ),
        Tool::H2load => (
            "nctimwWHpdrDTNB",
            "requests clients threads rate rate-period duration warm-up-time rps header \
             max-concurrent-streams base-uri data connection-active-timeout \
             connection-inactivity-timeout npn-list alpn-list ciphers tls13-ciphers groups",
        ),
        Tool::Hey => ("", "n c q z o m H t A d D T a x U host cpus"),
        Tool::Oha => (
            "ncpzqmHtAdDTaro",
            "burst-delay burst-rate max-repeat fps method http-version host redirect \
             connect-to output-format time-unit output db-url",
        ),
        Tool::K6 => ("udiseo", "vus duration iterations stage env out"),
        Tool::Siege => (
            "crtdRmHAfT",
            "concurrent reps time delay rc mark header user-agent file content-type",
        ),
        Tool::Autocannon => (
            "cpdaLSwmtTbFiHBMOrRDsEx",
            "connections pipelining duration amount socketPath workers method timeout title body \
             form input headers har bailout maxConnectionRequests maxOverallRequests \
             connectionRate overallRate reconnectRate servername expectBody cert key ca",
        ),
        Tool::Vegeta => (
            "",
            "body cert connections dns-ttl duration format h2c header key laddr lazy max-body \
             max-connections max-workers name output proxy-header rate redirects resolvers \
             root-certs targets timeout unix-socket workers prometheus-addr",
        ),
        Tool::Bombardier => (
            "ctmbfHndrpo",
            "connections timeout method body body-file cert key header requests duration rate \
             print format",
        ),
        Tool::Locust => (
            "fHurti",
            "locustfile host users spawn-rate run-time iterations csv logfile loglevel html \
             tags exclude-tags config processes stop-timeout web-port master-host",
        ),
        Tool::Gatling => ("rsfd", "simulation results-folder run-description run-mode"),
        Tool::Jmeter => (
            "tljqpGePoHNuadJDL",
            "testfile logfile jmeterlogfile propfile",
        ),
        Tool::Artillery => (
            "opteqvk",
            "output payload target environment overrides variables config key",
        ),
        Tool::Ghz => (
            "CicnrztdDbBmMOoxlDe",
            "proto protoset call import-paths cacert cert key cname authority concurrency total \
             rps duration timeout data data-file binary-file metadata metadata-file connections \
             connect-timeout keepalive name tags cpus format output load-schedule skipFirst \
             duration-stop stream-interval reflect-metadata max-duration config",
        ),
        // Its document says all.
        Tool::Weigh => ("", ""),
        Tool::Time => ("fo", ""),
        Tool::RedisBenchmark => ("hpsacndkrPtu", "user threads dbnum pass"),
    };
    Grammar {
        short,
        long,
        one_dash: matches!(tool, Tool::Hey | Tool::Vegeta),
    }
}

/// A command's options with their values (empty for those without) and its other words.
pub(crate) fn options<'a>(
    tool: Tool,
    words: &[&'a str],
) -> (Vec<(&'a str, &'a str)>, Vec<&'a str>) {
    let grammar = grammar(tool);
    let mut options = Vec::new();
    let mut others = Vec::new();
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        let long = match word.strip_prefix("--") {
            Some(name) => Some(name),
            None if grammar.one_dash => word.strip_prefix('-'),
            None => None,
        };
        if let Some(name) = long {
            match name.split_once('=') {
                Some((name, value)) => options.push((name, value)),
                None if grammar.long.split_whitespace().any(|long| long == name) => {
                    options.push((name, words.next().unwrap_or("")));
                }
                None => options.push((name, "")),
            }
        } else if let Some(letters) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) {
            for (at, letter) in letters.char_indices() {
                let rest = &letters[at + letter.len_utf8()..];
                let name = &letters[at..at + letter.len_utf8()];
                if !grammar.short.contains(letter) {
                    options.push((name, ""));
                } else {
                    let value = match rest {
                        "" => words.next().unwrap_or(""),
                        rest => rest.strip_prefix('=').unwrap_or(rest),
                    };
                    options.push((name, value));
                    break;
                }
            }
        } else {
            others.push(word);
        }
    }
    (options, others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_after_their_options_in_every_way() {
        let read = |tool, line| {
            let words = shell_words(line);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let (options, others) = options(tool, &words);
            format!("{options:?} {others:?}")
        };
        assert_eq!(
            read(Tool::Wrk, "-t12 -c 400 --rate=1k --latency -H 'A: b c' u"),
            r#"[("t", "12"), ("c", "400"), ("rate", "1k"), ("latency", ""), ("H", "A: b c")] ["u"]"#
        );
        assert_eq!(
            read(Tool::Ab, "-kn 50 -c"),
            r#"[("k", ""), ("n", "50"), ("c", "")] []"#
        );
        assert_eq!(
            read(Tool::Hey, "-n=5 -disable-keepalive -host a u"),
            r#"[("n", "5"), ("disable-keepalive", ""), ("host", "a")] ["u"]"#
        );
    }
}
