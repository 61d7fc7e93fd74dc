//! A failure is counted by the kind that the tool tells, and otherwise by none.
use crate::support::output;
use readings::ErrorCounts;
use tools::{Tool, read_output};

fn errors(tool: Tool, text: &str) -> ErrorCounts {
    let readings = read_output(tool, text).unwrap_or_else(|e| panic!("{e}: {text}"));
    assert_eq!(readings.len(), 1, "{text}");
    readings[0].errors
}

fn unexplained(unexplained: u64) -> ErrorCounts {
    ErrorCounts {
        unexplained,
        ..ErrorCounts::default()
    }
}

#[test]
fn a_failure_that_a_tool_does_not_explain_is_of_no_kind() {
    let siege = output("siege.txt").replace(
        "Failed transactions:\t           0",
        "Failed transactions:\t        1024",
    );
    assert_eq!(errors(Tool::Siege, &siege), unexplained(1024));
    assert_eq!(errors(Tool::K6, &output("k6.txt")), unexplained(10));
    assert_eq!(errors(Tool::K6, &output("k6-old.txt")), unexplained(3));
    assert_eq!(errors(Tool::K6, &output("k6.json")), unexplained(4));
    let refused = output("h2load-refused.txt");
    assert_eq!(errors(Tool::H2load, &refused), unexplained(100));
    let other = output("httperf.txt").replace("ftab-full 0 other 0", "ftab-full 2 other 3");
    let expected = ErrorCounts {
        connect: 2,
        ..unexplained(3)
    };
    assert_eq!(errors(Tool::Httperf, &other), expected);
    // Versions before 2.3 did not always print the kinds.
    let ab = output("ab.txt").replace("Failed requests:        0", "Failed requests:        7");
    assert_eq!(errors(Tool::Ab, &ab), unexplained(7));
}

#[test]
fn the_words_of_an_error_tell_its_kind_and_those_of_a_url_do_not() {
    let of = |said: &str| {
        let text = output("hey-errors.txt");
        let (before, rest) = text.split_once("Error distribution:\n").unwrap();
        assert!(rest.contains("[60]"));
        let text = format!("{before}Error distribution:\n  [100]\t{said}\n");
        let mut errors = errors(Tool::Hey, &text);
        // Answers, and not failures on the way.
        errors.status = 0;
        errors
    };
    for (said, expected) in [
        (
            "Get \"http://a/timeout\": EOF",
            ErrorCounts {
                read: 100,
                ..ErrorCounts::default()
            },
        ),
        (
            "Get \"http://a/write?refused\": read tcp 1.2.3.4:5->1.2.3.4:6: read: connection reset by peer",
            ErrorCounts {
                read: 100,
                ..ErrorCounts::default()
            },
        ),
        (
            "Post \"http://a/reset\": write tcp 1.2.3.4:5->1.2.3.4:6: write: broken pipe",
            ErrorCounts {
                write: 100,
                ..ErrorCounts::default()
            },
        ),
        (
            "Get \"http://a/\": dial tcp: lookup a: no such host",
            ErrorCounts {
                connect: 100,
                ..ErrorCounts::default()
            },
        ),
        (
            "Get \"http://a/\": stopped after 10 redirects",
            unexplained(100),
        ),
    ] {
        assert_eq!(of(said), expected, "{said}");
    }
}
